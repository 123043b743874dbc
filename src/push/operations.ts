import { type TSchema, Type } from "typebox";
import { operation } from "../http/operation.ts";
import {
  BADGE_MAX,
  COLLAPSE_ID_LENGTH_MAX,
  DEVICE_ID_LENGTH_MAX,
  IMAGE_LENGTH_MAX,
  LOGS_LIMIT_DEFAULT,
  LOGS_LIMIT_MAX,
  SOUND_LENGTH_MAX,
  TOKEN_LENGTH_MAX,
  TOPIC_LENGTH_MAX,
  TTL_MAX_SECONDS,
  USER_IDS_MAX,
} from "./limits.ts";

const tag = "Push";
const AnyObject = Type.Record(Type.String(), Type.Unknown());
const Token = Type.String({
  minLength: 1,
  maxLength: TOKEN_LENGTH_MAX,
  description: "FCM's, or of a browser the subscription as JSON",
});
const Platform = Type.Union([Type.Literal("android"), Type.Literal("ios"), Type.Literal("web")]);
const Topic = Type.String({ minLength: 1, maxLength: TOPIC_LENGTH_MAX, pattern: "^[A-Za-z0-9_.~%-]+$" });
const UserId = Type.String({ minLength: 1 });
const Time = Type.String({ format: "date-time" });
const Ok = Type.Literal(true);
const Count = Type.Integer({ minimum: 0 });

const OPTIONS = {
  image: Type.Optional(Type.String({ maxLength: IMAGE_LENGTH_MAX })),
  sound: Type.Optional(Type.String({ maxLength: SOUND_LENGTH_MAX })),
  badge: Type.Optional(Type.Integer({ minimum: 0, maximum: BADGE_MAX, description: "The number on the icon (iOS)" })),
  data: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: "Other values than text go as JSON" })),
  silent: Type.Optional(Type.Boolean({ description: "Nothing is shown; the app gets `data` alone" })),
  collapseId: Type.Optional(Type.String({ minLength: 1, maxLength: COLLAPSE_ID_LENGTH_MAX })),
  ttl: Type.Optional(Type.Integer({ minimum: 0, maximum: TTL_MAX_SECONDS, description: "Seconds" })),
  fcm: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: "Raw members of an FCM message, over everything else; not `token`, `topic` or `condition`",
    }),
  ),
};
const TITLED = { title: Type.String({ minLength: 1 }), body: Type.String({ minLength: 1 }), ...OPTIONS };
const Payload = Type.Object(
  { title: Type.Optional(Type.String()), body: Type.Optional(Type.String()), ...OPTIONS },
  { description: "Title and body are required unless it is `silent`" },
);

const DeviceRecord = { id: Type.String(), token: Type.String(), platform: Platform, createdAt: Time };
const LogEntry = Type.Object({
  id: Type.String(),
  userId: Type.Union([Type.String(), Type.Null()], { description: "null: sent to a bare token" }),
  status: Type.Union([Type.Literal("sent"), Type.Literal("failed"), Type.Literal("removed")]),
  platform: Platform,
  title: Type.String(),
  body: Type.String(),
  timestamp: Time,
  error: Type.Union([Type.String(), Type.Null()]),
});

interface Endpoint {
  summary: string;
  description?: string;
  body?: Record<string, TSchema>;
  answer: Record<string, TSchema>;
  errors: readonly number[];
}

const describe = (security: "user" | "serviceKey", { body, answer, errors, ...texts }: Endpoint) =>
  operation({
    ...{ tag, security, ...texts },
    errors: body === undefined ? errors : [...errors, 413, 415],
    ...(body === undefined ? {} : { body: { schema: Type.Object(body) } }),
    answers: { 200: { description: "Done", schema: Type.Object(answer) } },
  });
const client = (endpoint: Endpoint) => describe("user", { ...endpoint, errors: [400, 401, ...endpoint.errors] });
const admin = (endpoint: Endpoint) =>
  describe("serviceKey", { ...endpoint, errors: [400, 401, 403, ...endpoint.errors] });

const RESULT = { ok: Ok, sent: Count, failed: Count };

/** What `/swagger` says of the endpoints. Spec: Push endpoints. */
export const DESCRIPTIONS = {
  register: client({
    summary: "Register this device, or its new token",
    description: "A device that is new joins the topic `all`. A token that another device had moves to this one.",
    body: {
      deviceId: Type.String({ minLength: 1, maxLength: DEVICE_ID_LENGTH_MAX }),
      token: Token,
      platform: Platform,
    },
    answer: { ...DeviceRecord, userId: Type.String() },
    errors: [],
  }),
  unregister: client({
    summary: "Remove the device with this token, if it is one's own",
    body: { token: Token },
    answer: { ok: Ok },
    errors: [],
  }),
  subscribe: client({
    summary: "Subscribe all of the user's devices to a topic",
    body: { topic: Topic },
    answer: { ok: Ok, subscribed: Count, failed: Count },
    errors: [404],
  }),
  unsubscribe: client({
    summary: "Unsubscribe all of the user's devices from a topic",
    body: { topic: Topic },
    answer: { ok: Ok, unsubscribed: Count, failed: Count },
    errors: [404],
  }),
  send: admin({
    summary: "Send to every device of a user",
    description: "Answered when each device is decided. `failed` counts devices, removed ones included.",
    body: { userId: UserId, ...TITLED },
    answer: RESULT,
    errors: [404, 503],
  }),
  sendMany: admin({
    summary: "Send to every device of several users",
    description: "Users without devices are skipped.",
    body: { userIds: Type.Array(UserId, { minItems: 1, maxItems: USER_IDS_MAX }), ...TITLED },
    answer: RESULT,
    errors: [503],
  }),
  sendToToken: admin({
    summary: "Send to a token, registered or not",
    body: {
      token: Token,
      payload: Payload,
      platform: Type.Optional(
        Type.Union([Type.Literal("android"), Type.Literal("ios"), Type.Literal("web")], { default: "web" }),
      ),
    },
    answer: { sent: Count, failed: Count },
    errors: [503],
  }),
  sendToTopic: admin({
    summary: "Send to every device that is subscribed to a topic",
    description: "Answered when the message waits to be sent; the log has what became of it.",
    body: { topic: Topic, payload: Payload },
    answer: { success: Ok },
    errors: [503],
  }),
  broadcast: admin({
    summary: "Send to the topic `all`",
    description: "Answered when the message waits to be sent; the log has what became of it.",
    body: { payload: Payload },
    answer: { success: Ok },
    errors: [503],
  }),
  setMetadata: admin({
    summary: "Replace the metadata of a device",
    body: { userId: UserId, deviceId: Type.String({ minLength: 1 }), metadata: AnyObject },
    answer: { ok: Ok },
    errors: [404],
  }),
  tokens: operation({
    ...{ tag, summary: "The devices of a user", security: "serviceKey", errors: [400, 401, 403] },
    query: [{ name: "userId", required: true }],
    answers: {
      200: { description: "The devices", schema: Type.Object({ tokens: Type.Array(Type.Object(DeviceRecord)) }) },
    },
  }),
  logs: operation({
    ...{ tag, summary: "What became of messages in the last 24 hours", security: "serviceKey" },
    errors: [400, 401, 403],
    query: [
      { name: "userId", description: "Of this user alone" },
      {
        name: "limit",
        description: `${LOGS_LIMIT_DEFAULT} by default; more than ${LOGS_LIMIT_MAX} counts as ${LOGS_LIMIT_MAX}`,
        schema: Type.Integer({ minimum: 1 }),
      },
    ],
    answers: { 200: { description: "Newest first", schema: Type.Object({ logs: Type.Array(LogEntry) }) } },
  }),
};
