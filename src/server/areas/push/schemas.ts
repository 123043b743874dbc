import { type Static, Type } from "typebox";
import type { pushDevices, pushLogs } from "../../../../schema/push.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { AnyObject, nullable, optional, refine } from "../../../kernel/schema/types.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import {
  DEVICE_ID_LENGTH_MAX,
  TOKEN_LENGTH_MAX,
  TOPIC_LENGTH_MAX,
  USER_ID_LENGTH_MAX,
  USER_IDS_MAX,
} from "./limits.ts";
import { Payload, TITLED } from "./message.ts";

// The bodies of requests, which also check the arguments of `app.push`, and the records in answers.

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\0-\x1f\x7f]/;

/** Text that logs and headers can contain. */
const printable = (maxLength: number, description: string) =>
  refine(
    Type.String({ minLength: 1, maxLength, description }),
    (text) => !CONTROL.test(text),
    (field) => ({ code: "invalid_value", message: `${field} must not contain control characters` }),
  );

const Token = printable(TOKEN_LENGTH_MAX, "An FCM token, or a browser's subscription as JSON");
const Platform = Type.Enum(["android", "ios", "web"]);
const Topic = Type.String({ minLength: 1, maxLength: TOPIC_LENGTH_MAX, pattern: "^[A-Za-z0-9_.~%-]+$" });
const UserId = Type.String({ minLength: 1, maxLength: USER_ID_LENGTH_MAX });

/** `items` is inside of `allOf` so that a fault is named `userIds`, not `userIds.3`. */
const UserIds = refine(
  refine(
    Type.Unsafe<string[]>({ type: "array", maxItems: USER_IDS_MAX, allOf: [{ items: UserId }] }),
    (ids) => ids.length > 0,
    (field) => ({ code: "required", message: `${field} must name at least one user` }),
  ),
  (ids) => ids.every((id: unknown) => typeof id === "string" && id !== "" && id.length <= USER_ID_LENGTH_MAX),
  (field) => ({ code: "invalid_type", message: `${field} must be a list of user ids` }),
);

export const Registration = Type.Object({
  deviceId: printable(DEVICE_ID_LENGTH_MAX, "Identifies the device among those of the user"),
  token: Token,
  platform: Platform,
});
export type Registration = Static<typeof Registration>;

export const OfToken = Type.Object({ token: Type.String({ minLength: 1, maxLength: TOKEN_LENGTH_MAX }) });
export const OfTopic = Type.Object({ topic: Topic });
export const Recipients = Type.Object({ userIds: UserIds });

export const Send = Type.Object({ userId: UserId, ...TITLED });
export const SendMany = Type.Object({ userIds: UserIds, ...TITLED });
export const SendToToken = Type.Object({
  token: Token,
  payload: Payload,
  platform: optional(Type.Enum(["android", "ios", "web"], { default: "web" })),
});
export const SendToTopic = Type.Object({ topic: Topic, payload: Payload });
export const Broadcast = Type.Object({ payload: Payload });

export const SetMetadata = Type.Object({
  userId: UserId,
  deviceId: Type.String({ minLength: 1, maxLength: DEVICE_ID_LENGTH_MAX }),
  metadata: Type.Unsafe<JsonObject>(AnyObject),
});

const Time = Type.String({ format: "date-time" });

export const DeviceRecord = Type.Object({
  id: Type.String({ description: "The `deviceId` of the registration" }),
  token: Type.String(),
  platform: Platform,
  createdAt: Time,
});
type DeviceRecord = Static<typeof DeviceRecord>;

type DeviceColumns = Pick<typeof pushDevices.$inferSelect, "deviceId" | "token" | "platform" | "createdAt">;

export const deviceRecord = ({ deviceId, token, platform, createdAt }: DeviceColumns): DeviceRecord => ({
  id: deviceId,
  token,
  platform,
  createdAt: isoTime(createdAt),
});

export const LogRecord = Type.Object({
  id: Type.String(),
  userId: nullable(Type.String({ description: "null: sent to a token" })),
  status: Type.Enum(["sent", "failed", "removed"]),
  platform: Type.String(),
  title: Type.String(),
  body: Type.String(),
  error: nullable(Type.String({ description: "What the provider answered" })),
  timestamp: Time,
});
type LogRecord = Static<typeof LogRecord>;

export const logRecord = ({ seq: _, timestamp, ...columns }: typeof pushLogs.$inferSelect): LogRecord => ({
  ...columns,
  timestamp: isoTime(timestamp),
});
