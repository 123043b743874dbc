import { isJsonObject, type JsonFault, type JsonValue } from "../../kernel/json/json.ts";
import { JsonRefused, parseInSlices } from "../../kernel/json/slices.ts";
import { jsonTextFault } from "../../kernel/json/text.ts";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Turns } from "../../kernel/time/turns.ts";
import { SLICED_LENGTH_MIN } from "../http/limits.ts";

/** What a message says. `fault`: what it holds that no message may; `value` is null where it was found before the end. */
export type MessageText = { isJson: false } | { isJson: true; value: JsonValue; fault: JsonFault | null };

const NOT_JSON: MessageText = { isJson: false };

/** Parses a message, over several turns of the event loop where it is long. */
export function parseMessage(text: string, turns: Turns): MaybePromise<MessageText> {
  if (text.length >= SLICED_LENGTH_MIN && /^[ \t\n\r]*[[{]/.test(text)) {
    return turns.run(parseInSlices(text)).then((value) => ({ isJson: true, value, fault: null }), refused);
  }
  try {
    const value: JsonValue = JSON.parse(text);
    return { isJson: true, value, fault: jsonTextFault(text, value) };
  } catch {
    return NOT_JSON;
  }
}

function refused(cause: unknown): MessageText {
  if (!(cause instanceof JsonRefused)) throw cause;
  return cause.fault === null ? NOT_JSON : { isJson: true, value: null, fault: cause.fault };
}

/** Whether a short message asks for a `pong`. Nearly all others are told apart without being parsed. */
export function isPing(text: string): boolean {
  if (!text.includes('"ping"')) return false;
  try {
    const message: unknown = JSON.parse(text);
    return isJsonObject(message) && message["type"] === "ping";
  } catch {
    return false;
  }
}
