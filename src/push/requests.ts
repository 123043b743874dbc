import type { PushPlatform } from "../config/app-access.ts";
import { Fields, requireJsonSize } from "../kernel/fields.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import {
  DEVICE_ID_LENGTH_MAX,
  METADATA_MAX_BYTES,
  TOKEN_LENGTH_MAX,
  TOPIC_LENGTH_MAX,
  USER_IDS_MAX,
} from "./limits.ts";
import { parseMessage, requireMessageSize } from "./message.ts";
import type { Message } from "./types.ts";

// What the bodies say. Errors: 400 naming every member at fault, 413. Spec: Push endpoints; decisions 11.

/** Record ids have as many characters at most; a longer one is nobody's. */
const USER_ID_LENGTH_MAX = 256;
const TOPIC = /^[A-Za-z0-9_.~%-]+$/;
const PLATFORMS: readonly string[] = ["android", "ios", "web"] satisfies PushPlatform[];

export interface Registration {
  deviceId: string;
  token: string;
  platform: PushPlatform;
}

export function parseRegistration(body: JsonObject): Registration {
  const fields = new Fields(body);
  const deviceId = printable(fields, "deviceId", DEVICE_ID_LENGTH_MAX);
  const token = printable(fields, "token", TOKEN_LENGTH_MAX);
  fields.requiredText("platform", TOKEN_LENGTH_MAX);
  // Where it is missing, `finish` does not come back.
  const platform = parsePlatform(fields) ?? "web";
  fields.finish();
  return { deviceId, token, platform };
}

export function parseToken(body: JsonObject): string {
  const fields = new Fields(body);
  const token = fields.requiredText("token", TOKEN_LENGTH_MAX);
  fields.finish();
  return token;
}

export function parseTopic(body: JsonObject): string {
  const fields = new Fields(body);
  const topic = readTopic(fields);
  fields.finish();
  return topic;
}

export function parseSend(body: JsonObject): { userId: string; message: Message } {
  const fields = new Fields(body);
  const userId = fields.requiredText("userId", USER_ID_LENGTH_MAX);
  const message = parseMessage(fields, { titled: true });
  return { userId, message: finished(fields, message) };
}

/** Each user once, in the order given. */
export function parseSendMany(body: JsonObject): { userIds: string[]; message: Message } {
  const fields = new Fields(body);
  const userIds = parseUserIds(fields);
  const message = parseMessage(fields, { titled: true });
  return { userIds, message: finished(fields, message) };
}

export function parseRecipients(body: JsonObject): string[] {
  const fields = new Fields(body);
  const userIds = parseUserIds(fields);
  fields.finish();
  return userIds;
}

export function parseSendToToken(body: JsonObject): { token: string; platform: PushPlatform; message: Message } {
  const fields = new Fields(body);
  const token = printable(fields, "token", TOKEN_LENGTH_MAX);
  const platform = parsePlatform(fields) ?? "web";
  const message = parsePayload(fields);
  return { token, platform, message: finished(fields, message) };
}

export function parseSendToTopic(body: JsonObject): { topic: string; message: Message } {
  const fields = new Fields(body);
  const topic = readTopic(fields);
  const message = parsePayload(fields);
  return { topic, message: finished(fields, message) };
}

export function parseBroadcast(body: JsonObject): Message {
  const fields = new Fields(body);
  return finished(fields, parsePayload(fields));
}

export function parseMetadata(body: JsonObject): { userId: string; deviceId: string; metadata: JsonObject } {
  const fields = new Fields(body);
  const userId = fields.requiredText("userId", USER_ID_LENGTH_MAX);
  const deviceId = fields.requiredText("deviceId", DEVICE_ID_LENGTH_MAX);
  const metadata = requiredObject(fields, "metadata");
  fields.finish();
  requireJsonSize("metadata", metadata, METADATA_MAX_BYTES);
  return { userId, deviceId, metadata };
}

function finished(fields: Fields, message: Message): Message {
  fields.finish();
  requireMessageSize(message);
  return message;
}

/** The member `payload`; its problems are named `payload.title` and so on, beside those of the body. */
function parsePayload(fields: Fields): Message {
  const payload = requiredObject(fields, "payload");
  if (fields.problems["payload"] !== undefined) return parseMessage(new Fields({}), { titled: false });
  const members = new Fields(payload, { prefix: "payload.", problems: fields.problems });
  const message = parseMessage(members, { titled: false });
  members.refuseUnknown();
  return message;
}

function requiredObject(fields: Fields, name: string): JsonObject {
  const value = fields.value(name);
  if (value === undefined || value === null) fields.problem(name, "required", `${name} is required`);
  else if (!isJsonObject(value)) fields.problem(name, "invalid_type", `${name} must be an object`);
  else return value;
  return {};
}

/** Text that logs and headers can hold. */
function printable(fields: Fields, name: string, maxLength: number): string {
  const text = fields.requiredText(name, maxLength);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\0-\x1f\x7f]/.test(text)) {
    fields.problem(name, "invalid_value", `${name} must not have control characters`);
  } else if (!text.isWellFormed()) {
    fields.problem(name, "invalid_value", `${name} is not valid Unicode`);
  }
  return text;
}

function parsePlatform(fields: Fields): PushPlatform | undefined {
  const platform = fields.text("platform", { maxLength: TOKEN_LENGTH_MAX });
  if (platform === undefined) return undefined;
  if (isPlatform(platform)) return platform;
  return fields.problem("platform", "invalid_value", `platform must be ${PLATFORMS.join(", ")}, got "${platform}"`);
}

const isPlatform = (text: string): text is PushPlatform => PLATFORMS.includes(text);

function readTopic(fields: Fields): string {
  const topic = fields.requiredText("topic", TOPIC_LENGTH_MAX);
  if (topic !== "" && !TOPIC.test(topic)) {
    fields.problem("topic", "pattern_mismatch", "topic may have letters, digits and _ . ~ % - alone");
  }
  return topic;
}

function parseUserIds(fields: Fields): string[] {
  const value = fields.value("userIds");
  const wrong = (code: "required" | "invalid_type" | "too_long", message: string): string[] => {
    fields.problem("userIds", code, `userIds ${message}`);
    return [];
  };
  if (value === undefined || value === null) return wrong("required", "is required");
  if (!Array.isArray(value)) return wrong("invalid_type", "must be a list of user ids");
  if (value.length === 0) return wrong("required", "must name at least one user");
  if (value.length > USER_IDS_MAX) return wrong("too_long", `must be at most ${USER_IDS_MAX}, got ${value.length}`);
  const ids = value.filter((id) => typeof id === "string" && id !== "" && id.length <= USER_ID_LENGTH_MAX);
  if (ids.length < value.length) return wrong("invalid_type", "must be a list of user ids");
  // The filter has let nothing but strings through.
  return [...new Set(ids as string[])];
}
