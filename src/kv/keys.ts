import { badField } from "../kernel/errors.ts";
import { KEY_LENGTH_MAX } from "./limits.ts";

const CODE_POINT_MAX = 0x10ffff;
const LAST_BEFORE_SURROGATES = 0xd7ff;
const FIRST_AFTER_SURROGATES = 0xe000;

/** Errors: 400 for what is no text, is too long, or has a half of a surrogate pair, which UTF-8 cannot hold. */
export function parseKey(value: unknown, field: string, lengthMin: 0 | 1): string {
  if (value === undefined || value === null) throw badField(field, "required", `"${field}" is required`);
  if (typeof value !== "string") throw badField(field, "invalid_type", `"${field}" must be a string`);
  if (!value.isWellFormed()) throw badField(field, "invalid_value", `"${field}" is not valid Unicode`);
  if (value.length < lengthMin) throw badField(field, "too_short", `"${field}" must not be empty`);
  // No text has more code points than UTF-16 units, so most keys need no count.
  if (value.length > KEY_LENGTH_MAX && [...value].length > KEY_LENGTH_MAX) {
    throw badField(field, "too_long", `"${field}" must be at most ${KEY_LENGTH_MAX} characters`);
  }
  return value;
}

/**
 * The first text, in the byte order of UTF-8, after everything that begins with `prefix`; null when nothing comes after.
 * Code points sort as their bytes do, so the last one that can grow is raised by one.
 */
export function endOfPrefix(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  for (let point = points.pop(); point !== undefined; point = points.pop()) {
    if (point === CODE_POINT_MAX) continue;
    const next = point === LAST_BEFORE_SURROGATES ? FIRST_AFTER_SURROGATES : point + 1;
    return points.map((kept) => String.fromCodePoint(kept)).join("") + String.fromCodePoint(next);
  }
  return null;
}

export const encodeCursor = (key: string): string => Buffer.from(key, "utf8").toString("base64url");

/** Errors: 400 for what `encodeCursor` has not made. */
export function decodeCursor(cursor: unknown): string {
  if (typeof cursor === "string") {
    const key = Buffer.from(cursor, "base64url").toString("utf8");
    if (key !== "" && encodeCursor(key) === cursor) return key;
  }
  throw badField("cursor", "invalid_value", '"cursor" must be one that a list has returned');
}
