import { SLICED_LENGTH_MIN } from "../http/limits.ts";
import { isJsonObject, type JsonFault, type JsonValue } from "../kernel/json.ts";
import { JsonRefused, parseInSlices } from "../kernel/json-slices.ts";
import { jsonTextFault } from "../kernel/json-text.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import type { Turns } from "../kernel/turns.ts";

/** `fault`: what the value of a text holds that no message may; null: the text is not JSON. */
export type MessageText = { kind: "value"; value: JsonValue } | { kind: "refused"; fault: JsonFault | null };

/** What a message says. A long one is parsed over several turns of the event loop. */
export function parseMessage(text: string, turns: Turns): MaybePromise<MessageText> {
  if (text.length >= SLICED_LENGTH_MIN && /^[ \t\n\r]*[[{]/.test(text)) {
    return turns.run(parseInSlices(text)).then((value) => ({ kind: "value", value }), refused);
  }
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "refused", fault: null };
  }
  const fault = jsonTextFault(text, value);
  return fault === null ? { kind: "value", value } : { kind: "refused", fault };
}

function refused(cause: unknown): MessageText {
  if (!(cause instanceof JsonRefused)) throw cause;
  return { kind: "refused", fault: cause.fault };
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
