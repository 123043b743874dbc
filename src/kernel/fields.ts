import { AppError, badRequest, type FieldProblems } from "./errors.ts";
import type { JsonObject } from "./json/json.ts";

/** Returns the message for a text that UTF-8 cannot represent. */
export const illFormed = (name: string): string => `${name} holds half of a surrogate pair`;

/** Reports whether `text` has more than `count` characters; they are counted only when the length does not decide. */
export function isLonger(text: string, count: number): boolean {
  if (text.length <= count) return false;
  if (text.length > 2 * count) return true;
  return Array.from(text).length > count;
}

/**
 * Returns the 400 error that names the fields at fault; a single problem's message is that of the whole error. Null when there are
 * no problems.
 */
export function fieldsError(problems: FieldProblems): AppError | null {
  const messages = Object.values(problems);
  const [first] = messages;
  if (first === undefined) return null;
  return badRequest(messages.length === 1 ? first.message : `${messages.length} fields are not valid`, problems);
}

/** Throws the `fieldsError` of the problems; does nothing when there are none. */
export function throwProblems(problems: FieldProblems): void {
  const error = fieldsError(problems);
  if (error !== null) throw error;
}

/** Throws a 413 error when `value` takes more than `maxBytes` as JSON. */
export function requireJsonSize(name: string, value: JsonObject, maxBytes: number): void {
  const sizeBytes = Buffer.byteLength(JSON.stringify(value));
  if (sizeBytes <= maxBytes) return;
  const message = `${name} must be at most ${maxBytes} bytes of JSON, got ${sizeBytes}`;
  throw new AppError(413, message, { data: { [name]: { code: "too_large", message } } });
}
