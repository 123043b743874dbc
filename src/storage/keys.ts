import { badField } from "../kernel/errors.ts";
import { KEY_MAX_BYTES } from "./limits.ts";

const CONTROL = /\p{Cc}/u;
const PARTS_PATH = /^uploads\/[^/]+\/parts$/;

/** Why this cannot be the key of a file, in words; null when it can. Decisions 13. */
export function keyProblem(key: string): string | null {
  if (!key.isWellFormed()) return "must be valid Unicode";
  const sizeBytes = Buffer.byteLength(key);
  if (sizeBytes > KEY_MAX_BYTES) return `must be at most ${KEY_MAX_BYTES} bytes of UTF-8, got ${sizeBytes}`;
  if (CONTROL.test(key)) return "must not contain control characters";
  if (key.includes("\\")) return "must not contain backslashes";
  const segments = key.split("/");
  if (segments.includes("")) return "must not begin or end with a slash, or have empty segments";
  if (segments.some((segment) => segment === "." || segment === "..")) return 'must not have segments "." or ".."';
  // These would be other endpoints' paths.
  if (segments.at(-1) === "metadata") return 'must not end in the segment "metadata"';
  if (PARTS_PATH.test(key)) return 'must not be of the form "uploads/ID/parts"';
  return null;
}

/** Errors: 400 naming `field`. */
export function parseKey(value: unknown, field = "key"): string {
  if (value === undefined || value === null || value === "") throw badField(field, "required", `${field} is required`);
  if (typeof value !== "string") throw badField(field, "invalid_type", `${field} must be a string`);
  const problem = keyProblem(value);
  if (problem !== null) throw badField(field, "invalid_value", `${field} ${problem}`);
  return value;
}

/**
 * What follows `/api/storage/BUCKET/` in the path, decoded once. The router's own decoding is not used: it would turn
 * malformed escapes into other characters. Errors: 400.
 */
export function pathRest(url: string): string {
  const query = url.indexOf("?");
  const path = query < 0 ? url : url.slice(0, query);
  const begin = path.indexOf(BASE) + BASE.length;
  const rest = path.slice(path.indexOf("/", begin) + 1);
  try {
    return decodeURIComponent(rest);
  } catch {
    throw badField("key", "invalid_value", "The path is not valid percent-encoding");
  }
}

const BASE = "/api/storage/";

/** The path of a file's endpoint. Slashes stay as they are, so that links read well. */
export function objectPath({ bucket, key }: { bucket: string; key: string }): string {
  return `${BASE}${encodeURIComponent(bucket)}/${key.split("/").map(encodeURIComponent).join("/")}`;
}
