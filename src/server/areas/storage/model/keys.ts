import { type TString, Type } from "typebox";
import { badField } from "../../../../kernel/errors.ts";
import { refine } from "../../../../kernel/schema/types.ts";
import { KEY_MAX_BYTES } from "../limits.ts";

const CONTROL = /\p{Cc}/u;
const PARTS_PATH = /^uploads\/[^/]+\/parts$/;

/** Rules that a key must satisfy, [ST10]. */
const RULES: readonly { problem: string; holds(key: string, segments: readonly string[]): boolean }[] = [
  { problem: "must be valid Unicode", holds: (key) => key.isWellFormed() },
  {
    problem: `must be at most ${KEY_MAX_BYTES} bytes of UTF-8`,
    holds: (key) => Buffer.byteLength(key) <= KEY_MAX_BYTES,
  },
  { problem: "must not contain control characters", holds: (key) => !CONTROL.test(key) },
  { problem: "must not contain backslashes", holds: (key) => !key.includes("\\") },
  {
    problem: "must not begin or end with a slash, or have empty segments",
    holds: (_, segments) => !segments.includes(""),
  },
  {
    problem: 'must not have segments "." or ".."',
    holds: (_, segments) => !segments.includes(".") && !segments.includes(".."),
  },
  // These are paths of other endpoints.
  { problem: 'must not end in the segment "metadata"', holds: (_, segments) => segments.at(-1) !== "metadata" },
  { problem: 'must not be of the form "uploads/ID/parts"', holds: (key) => !PARTS_PATH.test(key) },
];

/** Schema of a file's key in a body or a query. */
export const Key = RULES.reduce<TString>(
  (schema, { problem, holds }) => {
    const refined = refine(
      schema,
      (key) => holds(key, key.split("/")),
      (name) => ({ code: "invalid_value", message: `${name} ${problem}` }),
    );
    return refined as TString; // A refinement only adds conditions.
  },
  Type.String({ minLength: 1, description: `1 to ${KEY_MAX_BYTES} bytes of UTF-8` }),
);

/** Parses a key from a path, a form or a list of keys. Errors: 400 naming `key`. */
export function parseKey(value: unknown): string {
  if (value === undefined || value === null || value === "") throw badField("key", "required", "key is required");
  if (typeof value !== "string") throw badField("key", "invalid_type", "key must be a string");
  const segments = value.split("/");
  const broken = RULES.find(({ holds }) => !holds(value, segments));
  if (broken !== undefined) throw badField("key", "invalid_value", `key ${broken.problem}`);
  return value;
}

/** Returns the path of a file's endpoint. Slashes stay as they are, so that links read well. */
export function objectPath({ bucket, key }: { bucket: string; key: string }): string {
  return `/api/storage/${encodeURIComponent(bucket)}/${key.split("/").map(encodeURIComponent).join("/")}`;
}
