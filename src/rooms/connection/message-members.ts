import type { JsonObject } from "../../kernel/json.ts";

/** Characters of a name that an error repeats. */
const NAME_SHOWN_LENGTH = 64;
/** Of every message: an error that answers it carries `requestId`. */
const ALWAYS = ["type", "requestId"];
const MEMBERS = new Map<unknown, readonly string[]>([
  ["auth", ["token"]],
  ["join", ["lastSharedState", "lastSharedVersion", "lastPlayerState", "lastPlayerVersion"]],
  ["send", ["actionType", "payload"]],
]);

/** A member that the message's type has not, shortened; null: there is none, or no such type. `ping` may carry anything. */
export function unknownMember(message: JsonObject): string | null {
  const members = MEMBERS.get(message["type"]);
  if (members === undefined) return null;
  const unknown = Object.keys(message).find((name) => !ALWAYS.includes(name) && !members.includes(name));
  return unknown?.slice(0, NAME_SHOWN_LENGTH) ?? null;
}
