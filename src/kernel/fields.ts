import { AppError, badRequest, type FieldProblems } from "./errors.ts";
import type { JsonObject } from "./json/json.ts";

/** What is said of a text that UTF-8 cannot hold. */
export const illFormed = (name: string): string => `${name} holds half of a surrogate pair`;

/** Whether `text` has more than `count` characters; counted only where the length does not tell. */
export function isLonger(text: string, count: number): boolean {
  if (text.length <= count) return false;
  if (text.length > 2 * count) return true;
  return Array.from(text).length > count;
}

/** The 400 that names the fields at fault; a single problem's message is the whole error's. Null when there are no problems. */
export function fieldsError(problems: FieldProblems): AppError | null {
  const messages = Object.values(problems);
  const [first] = messages;
  if (first === undefined) return null;
  return badRequest(messages.length === 1 ? first.message : `${messages.length} fields are not valid`, problems);
}

/** Nothing when there are no problems. Errors: `fieldsError`. */
export function throwProblems(problems: FieldProblems): void {
  const error = fieldsError(problems);
  if (error !== null) throw error;
}

/** Errors: 413 when `value` takes more than `maxBytes` as JSON. */
export function requireJsonSize(name: string, value: JsonObject, maxBytes: number): void {
  const sizeBytes = Buffer.byteLength(JSON.stringify(value));
  if (sizeBytes <= maxBytes) return;
  const message = `${name} must be at most ${maxBytes} bytes of JSON, got ${sizeBytes}`;
  throw new AppError(413, message, { data: { [name]: { code: "too_large", message } } });
}
