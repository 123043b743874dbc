import { noProblems, unreachable } from "../../../kernel/errors.ts";
import { requireJsonSize, throwProblems } from "../../../kernel/fields.ts";
import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";
import { MESSAGE_MAX_BYTES, type PushPayload, type PushPlatform, type PushStatus } from "../../config/shapes/push.ts";
import { OVERRIDES_MAX_BYTES } from "./limits.ts";

/** A validated message. Absent members are null; the values of `data` are text, as providers require. */
export interface Message {
  /** null only if `silent`. */
  title: string | null;
  body: string | null;
  image: string | null;
  sound: string | null;
  badge: number | null;
  data: Readonly<Record<string, string>>;
  /** Whether no notification is shown; the app gets `data` only. */
  silent: boolean;
  /** A device that was offline gets only the last of several messages with the same value. */
  collapseId: string | null;
  /** Seconds that the provider keeps the message for an offline device; null: the provider's default. */
  ttl: number | null;
  /** Raw members of the FCM message, which override all others. */
  fcm: JsonObject;
}

/** The recipient of a message: a registered device, or a token (`userId` null). */
export interface Target {
  userId: string | null;
  token: string;
  platform: PushPlatform;
}

/** The result of one call to a provider. */
export type CallResult =
  | { kind: "sent" }
  /** A drill sends nothing; it is counted and logged as sent, with this note. */
  | { kind: "held"; note: string }
  /** The token is no longer valid: its device is removed. */
  | { kind: "unregistered"; error: string }
  | { kind: "failed"; error: string }
  /** No connection, or no answer in time: other messages to this service would fail too. */
  | { kind: "unreachable"; error: string }
  /** Another attempt may succeed; `retryAfterMs` null: no `Retry-After`. */
  | { kind: "busy"; error: string; retryAfterMs: number | null };

/** FCM or Web Push: one call for one device. An exception counts as a failure. */
export interface Provider {
  /** The service that delivers to the target. All targets of a site are unavailable together. */
  siteOf(target: Target): string;
  send(target: Target, message: Message, signal: AbortSignal): Promise<CallResult>;
}

/** The result for one target. */
export interface Outcome {
  target: Target;
  status: PushStatus;
  error: string | null;
}

/** Numbers of targets by result. */
export interface Counts {
  sent: number;
  failed: number;
}

export function outcomeOf(target: Target, result: CallResult): Outcome {
  switch (result.kind) {
    case "sent":
      return { target, status: "sent", error: null };
    case "held":
      return { target, status: "sent", error: result.note };
    case "unregistered":
      return { target, status: "removed", error: result.error };
    case "failed":
    case "unreachable":
    case "busy":
      return { target, status: "failed", error: result.error };
    default:
      return unreachable(result);
  }
}

/** Members that address an FCM message, which only the server may set. */
const FCM_ADDRESS_MEMBERS = ["token", "topic", "condition"];

/**
 * Returns the message in a request. `place` precedes the names of fields in errors. Errors: 400 for a message to be shown without
 * title or body, and for overrides of the address; 413 for a message larger than providers accept.
 */
export function messageOf(members: PushPayload, place: "" | "payload." = ""): Message {
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

/** Converts values to text: providers transmit text only, so all other values are sent as JSON. */
function asTexts(data: JsonObject): Record<string, string> {
  const asText = (value: JsonValue): string => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, asText(value)]));
}
