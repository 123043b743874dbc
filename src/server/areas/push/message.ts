import { type Static, Type } from "typebox";
import { noProblems } from "../../../kernel/errors.ts";
import { requireJsonSize, throwProblems } from "../../../kernel/fields.ts";
import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";
import { AnyObject, optional } from "../../../kernel/schema/types.ts";
import {
  BADGE_MAX,
  COLLAPSE_ID_LENGTH_MAX,
  IMAGE_LENGTH_MAX,
  MESSAGE_MAX_BYTES,
  OVERRIDES_MAX_BYTES,
  SOUND_LENGTH_MAX,
  TTL_MAX_SECONDS,
} from "./limits.ts";
import type { Message } from "./types.ts";

const text = (maxLength: number) => optional(Type.String({ maxLength }));

const OPTIONS = {
  image: text(IMAGE_LENGTH_MAX),
  sound: text(SOUND_LENGTH_MAX),
  badge: optional(Type.Integer({ minimum: 0, maximum: BADGE_MAX, description: "The number on the app's icon (iOS)" })),
  data: Type.Optional(
    Type.Unsafe<JsonObject>({ ...AnyObject, description: "Values that are no text are sent as JSON" }),
  ),
  silent: Type.Optional(Type.Boolean({ description: "Shows no notification; the app gets `data` only" })),
  collapseId: optional(Type.String({ minLength: 1, maxLength: COLLAPSE_ID_LENGTH_MAX })),
  ttl: optional(Type.Integer({ minimum: 0, maximum: TTL_MAX_SECONDS, description: "Seconds" })),
  fcm: Type.Optional(
    Type.Unsafe<JsonObject>({
      ...AnyObject,
      description: "Raw members of the FCM message, which override all others; not `token`, `topic` or `condition`",
    }),
  ),
};

const Title = Type.String({ minLength: 1, maxLength: MESSAGE_MAX_BYTES });

/** The members of a message that always has a title and a body. */
export const TITLED = { title: Title, body: Title, ...OPTIONS };

export const Payload = Type.Object(
  { title: text(MESSAGE_MAX_BYTES), body: text(MESSAGE_MAX_BYTES), ...OPTIONS },
  { description: "Title and body are required unless it is `silent`" },
);

/** The members that address an FCM message: the server sets them. */
const FCM_ADDRESS_MEMBERS = ["token", "topic", "condition"];

/**
 * The message in a request. `place` precedes the names of fields in errors. Errors: 400 for a message to be shown without
 * title or body, and for overrides of the address; 413 for a message larger than providers accept.
 */
export function messageOf(members: Static<typeof Payload>, place: "" | "payload." = ""): Message {
  const { title = null, body = null, silent = false, data = {}, fcm = {} } = members;
  const problems = noProblems();
  for (const [name, value] of Object.entries({ title, body })) {
    const field = place + name;
    if (!silent && (value ?? "") === "") problems[field] = { code: "required", message: `${field} is required` };
  }
  for (const name of FCM_ADDRESS_MEMBERS) {
    const field = `${place}fcm.${name}`;
    if (Object.hasOwn(fcm, name)) problems[field] = { code: "invalid_value", message: `${field} must not be set` };
  }
  throwProblems(problems);
  const { image = null, sound = null, badge = null, collapseId = null, ttl = null } = members;
  const message = { title, body, image, sound, badge, data: asTexts(data), silent, collapseId, ttl, fcm };
  requireMessageSize(message);
  return message;
}

function requireMessageSize({ fcm, ...message }: Message): void {
  requireJsonSize("data", message.data, MESSAGE_MAX_BYTES);
  const parts = Object.entries(message).filter(([, value]) => value !== null && value !== false);
  requireJsonSize("payload", Object.fromEntries(parts), MESSAGE_MAX_BYTES);
  requireJsonSize("fcm", fcm, OVERRIDES_MAX_BYTES);
}

/** Providers transmit text only, so all other values are sent as JSON. */
function asTexts(data: JsonObject): Record<string, string> {
  const asText = (value: JsonValue): string => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, asText(value)]));
}
