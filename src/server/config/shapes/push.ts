import { type Static, Type } from "typebox";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { AnyObject, nullable, optional } from "../../../kernel/schema/types.ts";

// Schemas of push messages, devices and the log. The types of `app.push` and of the client follow from them.

/** Bytes of a message as JSON, without its raw overrides: the maximum of FCM. */
export const MESSAGE_MAX_BYTES = 4096;
/** Characters of an image URL, of the name of a sound, and of `collapseId` (at most 64 bytes for APNs). */
const IMAGE_LENGTH_MAX = 2048;
const SOUND_LENGTH_MAX = 256;
const COLLAPSE_ID_LENGTH_MAX = 64;
/** The maximum TTL of FCM and of push services: four weeks. */
export const TTL_MAX_SECONDS = 28 * 24 * 3600;
const BADGE_MAX = 2 ** 31 - 1;

const Time = Type.String({ format: "date-time" });

export const PushPlatform = Type.Enum(["android", "ios", "web"]);
export type PushPlatform = Static<typeof PushPlatform>;

export const PushStatus = Type.Enum(["sent", "failed", "removed"]);
export type PushStatus = Static<typeof PushStatus>;

const options = {
  /** The URL of a picture. */
  image: optional(Type.String({ maxLength: IMAGE_LENGTH_MAX })),
  sound: optional(Type.String({ maxLength: SOUND_LENGTH_MAX })),
  /** The number on the app's icon (iOS). */
  badge: optional(Type.Integer({ minimum: 0, maximum: BADGE_MAX, description: "The number on the app's icon (iOS)" })),
  /** The data; values other than strings arrive as JSON. */
  data: Type.Optional(
    Type.Unsafe<JsonObject>({ ...AnyObject, description: "Values that are no text are sent as JSON" }),
  ),
  /** The key by which messages replace one another: a device that was offline receives only the last one of each. */
  collapseId: optional(Type.String({ minLength: 1, maxLength: COLLAPSE_ID_LENGTH_MAX })),
  /** Seconds for which the provider keeps the message for an offline device; four weeks at most. */
  ttl: optional(Type.Integer({ minimum: 0, maximum: TTL_MAX_SECONDS, description: "Seconds" })),
  /** Raw members of the FCM message, which override all others. */
  fcm: Type.Optional(
    Type.Unsafe<JsonObject>({
      ...AnyObject,
      description: "Raw members of the FCM message, which override all others; not `token`, `topic` or `condition`",
    }),
  ),
};
const Options = Type.Object(options);
/** The options of both kinds of message. */
export type PushOptions = Static<typeof Options>;

const silent = Type.Optional(Type.Boolean({ description: "Shows no notification; the app gets `data` only" }));
const Title = Type.String({ minLength: 1, maxLength: MESSAGE_MAX_BYTES });

/** The members of a message that always has a title and a body. */
export const TITLED = { title: Title, body: Title, ...options, silent };

const text = optional(Type.String({ maxLength: MESSAGE_MAX_BYTES }));
export const PushPayload = Type.Object(
  { title: text, body: text, ...options, silent },
  { description: "Title and body are required unless it is `silent`" },
);
export type PushPayload = Static<typeof PushPayload>;

const device = {
  id: Type.String({ description: "The `deviceId` of the registration" }),
  token: Type.String(),
  platform: PushPlatform,
  createdAt: Time,
};
export const DeviceRecord = Type.Object(device);
export type DeviceRecord = Static<typeof DeviceRecord>;

export const LogRecord = Type.Object({
  id: Type.String(),
  userId: nullable(Type.String({ description: "null: sent to a token" })),
  status: PushStatus,
  platform: Type.String(),
  title: Type.String(),
  body: Type.String(),
  error: nullable(Type.String({ description: "What the provider answered" })),
  timestamp: Time,
});
export type LogRecord = Static<typeof LogRecord>;
