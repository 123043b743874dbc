import { isJsonObject, type JsonObject, type JsonValue } from "../kernel/json.ts";
import { isEventName } from "./broadcasts.ts";
import type { ErrorCode } from "./encoding.ts";
import { CHANNEL_LENGTH_MAX, EVENT_LENGTH_MAX, PRESENCE_STATE_MAX_BYTES } from "./limits.ts";

/** What a client can send, checked for its form. Spec: Realtime, client to server. */
export type ClientMessage =
  | { type: "auth"; token: string }
  | { type: "subscribe"; channel: string; filters: unknown; orFilters: unknown; since: number | null }
  | { type: "unsubscribe"; channel: string }
  /** undefined keeps what there was, null clears it. */
  | { type: "update_filters"; channel: string; filters: unknown; orFilters: unknown }
  /** `state` is JSON. */
  | { type: "track"; channel: string; state: string }
  | { type: "untrack"; channel: string }
  | { type: "broadcast"; channel: string; event: string; payload: JsonObject; excludeSelf: boolean }
  | { type: "ping" };

/** Characters of a name that an error repeats. */
const NAME_SHOWN_LENGTH = 64;

export interface MessageProblem {
  type: "problem";
  code: ErrorCode;
  message: string;
  channel: string | null;
}

/** `defaultChannel` is the connection's own, which track, untrack and broadcast act on. Decisions 10. */
export function parseClientMessage(message: JsonValue, defaultChannel: string | null): ClientMessage | MessageProblem {
  if (!isJsonObject(message)) return malformed("a message must be a JSON object, in a text frame");
  const type = message["type"];
  const named = message["channel"] ?? null;
  const problem = (text: string, code: ErrorCode = "INVALID_MESSAGE"): MessageProblem => ({
    type: "problem",
    code,
    message: text,
    channel: typeof named === "string" && named.length <= CHANNEL_LENGTH_MAX ? named : null,
  });
  // Whatever it carries: its answer says that the connection lives, and nothing else.
  if (type === "ping") return { type };
  const unknown = unknownMember(type, message);
  if (unknown !== null) return problem(`there is no member "${unknown}" in "${String(type)}"`);
  if (type === "auth") {
    const token = message["token"];
    return typeof token === "string" ? { type, token } : problem("token is required");
  }
  const ownChannel = type === "track" || type === "untrack" || type === "broadcast" ? defaultChannel : null;
  const channel = named ?? ownChannel;
  switch (type) {
    case "subscribe":
    case "unsubscribe":
    case "update_filters":
    case "track":
    case "untrack":
    case "broadcast":
      if (typeof channel !== "string") return problem("channel is required");
      return withChannel(type, channel, message, problem);
    default:
      return problem(
        typeof type === "string" ? `there is no message "${type.slice(0, NAME_SHOWN_LENGTH)}"` : "type is required",
      );
  }
}

/** Members of each type beside `type`. */
const MEMBERS = new Map<unknown, readonly string[]>([
  ["auth", ["token"]],
  ["subscribe", ["channel", "filters", "orFilters", "since"]],
  ["unsubscribe", ["channel"]],
  ["update_filters", ["channel", "filters", "orFilters"]],
  ["track", ["channel", "state"]],
  ["untrack", ["channel"]],
  ["broadcast", ["channel", "event", "data", "excludeSelf"]],
]);

/** A member that its type has not, shortened; null: there is none, or no such type. */
function unknownMember(type: unknown, message: JsonObject): string | null {
  const members = MEMBERS.get(type);
  if (members === undefined) return null;
  const unknown = Object.keys(message).find((name) => name !== "type" && !members.includes(name));
  return unknown?.slice(0, NAME_SHOWN_LENGTH) ?? null;
}

export const malformed = (message: string): MessageProblem => ({
  ...{ type: "problem", code: "INVALID_MESSAGE", message, channel: null },
});

function withChannel(
  type: Exclude<ClientMessage["type"], "auth" | "ping">,
  channel: string,
  message: JsonObject,
  problem: (text: string, code?: ErrorCode) => MessageProblem,
): ClientMessage | MessageProblem {
  const { filters, orFilters } = message;
  switch (type) {
    case "subscribe": {
      const since = message["since"] ?? null;
      if (since !== null && !(typeof since === "number" && Number.isSafeInteger(since) && since >= 0)) {
        return problem("since must be a seq that the server sent");
      }
      return { type, channel, filters, orFilters, since };
    }
    case "update_filters":
      return { type, channel, filters, orFilters };
    case "unsubscribe":
    case "untrack":
      return { type, channel };
    case "track": {
      if (!isJsonObject(message["state"])) return problem("state is required, and must be an object");
      const state = JSON.stringify(message["state"]);
      const sizeBytes = Buffer.byteLength(state);
      if (sizeBytes <= PRESENCE_STATE_MAX_BYTES) return { type, channel, state };
      return problem(`state must be at most ${PRESENCE_STATE_MAX_BYTES} bytes, got ${sizeBytes}`, "STATE_TOO_LARGE");
    }
    case "broadcast": {
      const { event, data, excludeSelf = true } = message;
      if (!isEventName(event)) return problem(`event is required: 1 to ${EVENT_LENGTH_MAX} characters`);
      if (!isJsonObject(data)) return problem("data is required, and must be an object");
      if (typeof excludeSelf !== "boolean") return problem("excludeSelf must be true or false");
      // Within a message that came out of JSON.
      return { type, channel, event, payload: data as JsonObject, excludeSelf };
    }
  }
}
