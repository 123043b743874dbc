import { type Static, Type } from "typebox";
import type { pushDevices, pushLogs } from "../../../../schema/push.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { projection } from "../../../kernel/schema/projection.ts";
import { AnyObject, optional, refine } from "../../../kernel/schema/types.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import { DeviceRecord, type LogRecord, PushPayload, PushPlatform, TITLED } from "../../config/shapes/push.ts";
import {
  DEVICE_ID_LENGTH_MAX,
  TOKEN_LENGTH_MAX,
  TOPIC_LENGTH_MAX,
  USER_ID_LENGTH_MAX,
  USER_IDS_MAX,
} from "./limits.ts";

// Schemas of request bodies, which also check the arguments of `app.push`, and of records in answers.

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\0-\x1f\x7f]/;

/** Schema of text that logs and headers can contain. */
const printable = (maxLength: number, description: string) =>
  refine(
    Type.String({ minLength: 1, maxLength, description }),
    (text) => !CONTROL.test(text),
    (field) => ({ code: "invalid_value", message: `${field} must not contain control characters` }),
  );

const Token = printable(TOKEN_LENGTH_MAX, "An FCM token, or a browser's subscription as JSON");
const Topic = Type.String({ minLength: 1, maxLength: TOPIC_LENGTH_MAX, pattern: "^[A-Za-z0-9_.~%-]+$" });
const UserId = Type.String({ minLength: 1, maxLength: USER_ID_LENGTH_MAX });

/** Schema of a list of user ids. `items` is inside `allOf` so that errors name `userIds`, not `userIds.3`. */
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
  platform: PushPlatform,
});
export type Registration = Static<typeof Registration>;

export const OfToken = Type.Object({ token: Type.String({ minLength: 1, maxLength: TOKEN_LENGTH_MAX }) });
export const OfTopic = Type.Object({ topic: Topic });
export const Recipients = Type.Object({ userIds: UserIds });

export const Send = Type.Object({ userId: UserId, ...TITLED });
export const SendMany = Type.Object({ userIds: UserIds, ...TITLED });
export const SendToToken = Type.Object({
  token: Token,
  payload: PushPayload,
  platform: optional(Type.Enum(["android", "ios", "web"], { description: "web by default" })),
});
export const SendToTopic = Type.Object({ topic: Topic, payload: PushPayload });
export const Broadcast = Type.Object({ payload: PushPayload });

export const SetMetadata = Type.Object({
  userId: UserId,
  deviceId: Type.String({ minLength: 1, maxLength: DEVICE_ID_LENGTH_MAX }),
  metadata: Type.Unsafe<JsonObject>(AnyObject),
});

type DeviceColumns = Pick<typeof pushDevices.$inferSelect, "deviceId" | "token" | "platform" | "createdAt">;

const shownDevice = projection(DeviceRecord);
export const deviceRecord = ({ deviceId, ...columns }: DeviceColumns): DeviceRecord =>
  shownDevice({ id: deviceId, ...columns });

export const logRecord = ({ seq: _, timestamp, ...columns }: typeof pushLogs.$inferSelect): LogRecord => ({
  ...columns,
  timestamp: isoTime(timestamp),
});
