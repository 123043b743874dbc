import { type Static, Type } from "typebox";
import { AppError, badField } from "../../../../kernel/errors.ts";
import { throwProblems } from "../../../../kernel/fields.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { createParser } from "../../../../kernel/schema/parser.ts";
import { nullable } from "../../../../kernel/schema/types.ts";
import { CONTENT_TYPE_LENGTH_MAX, METADATA_MAX_BYTES } from "../limits.ts";

const DEFAULT_CONTENT_TYPE = "application/octet-stream";
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/**
 * RFC 9110, 8.3.1: type, subtype, parameters with tokens or quoted strings. The spaces after a semicolon belong to its
 * parameter, or to the next semicolon when there is none: with two ways to read each of them, `; ; ; ;` would take
 * exponential time.
 */
const MEDIA_TYPE = new RegExp(
  `^${TOKEN}/${TOKEN}(?:[ \\t]*;(?:[ \\t]*${TOKEN}=(?:${TOKEN}|"[\\x20-\\x21\\x23-\\x5b\\x5d-\\x7e]*"))?)*$`,
);

/** Parses a declared content type; returns the default for none. Errors: 400 for what is not a media type. */
export function parseContentType(declared: string | null | undefined): string {
  if (declared === undefined || declared === null || declared === "") return DEFAULT_CONTENT_TYPE;
  const text = declared.trim();
  if (text.length > CONTENT_TYPE_LENGTH_MAX || !MEDIA_TYPE.test(text)) {
    throw badField("contentType", "invalid_value", "contentType must be a media type such as image/png");
  }
  return text;
}

/**
 * Types that a browser shows and never runs with the rights of the origin. A list of safe types: a list of unsafe ones (HTML,
 * SVG, every kind of XML) would miss a type that some browser treats as one of those.
 */
const SHOWN_INLINE: ReadonlySet<string> = new Set(
  [
    "image/apng image/avif image/bmp image/gif image/heic image/heif image/jpeg image/jxl",
    "image/png image/tiff image/vnd.microsoft.icon image/webp image/x-icon",
    "audio/aac audio/flac audio/midi audio/mp4 audio/mpeg audio/ogg audio/wav audio/webm",
    "video/mp4 video/mpeg video/ogg video/quicktime video/webm",
    "application/json application/pdf text/csv text/plain",
    "font/otf font/ttf font/woff font/woff2",
  ].flatMap((line) => line.split(" ")),
);

/** Whether a file of this type may be shown in the browser, where the bucket does not allow every type. */
export const isShownInline = (contentType: string): boolean =>
  SHOWN_INLINE.has((contentType.split(";")[0] ?? "").trim().toLowerCase());

export const Metadata = Type.Record(Type.String(), Type.String());
export type Metadata = Static<typeof Metadata>;
/** Changes to metadata: null removes a member. */
export const MetadataChanges = Type.Record(Type.String(), nullable(Type.String()));
export type MetadataChanges = Static<typeof MetadataChanges>;

const parser = createParser(Metadata, { member: "a member of metadata" });

/**
 * Parses custom metadata; absent or null is none. Errors: 400 for anything but an object of strings, 413 when it is too
 * large.
 */
export function parseMetadata(value: JsonValue | undefined): Metadata {
  if (value === undefined || value === null) return {};
  const problems = parser.problemsOf(value, "metadata");
  if (problems !== null) throwProblems(problems);
  return requireSmall(value as Metadata); // The parser has found no problem.
}

/** Parses the JSON of a form's `metadata` field. Errors: as `parseMetadata`. */
export function parseMetadataText(text: string | null): Metadata {
  if (text === null || text === "") return {};
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    throw badField("metadata", "invalid_value", "metadata must be JSON: an object of strings");
  }
  if (value === null) throw badField("metadata", "invalid_type", "metadata must be an object of strings");
  return parseMetadata(value);
}

/** Applies changes to the present metadata. Errors: 413 when the result is too large. */
export function mergeMetadata(present: Metadata, changes: MetadataChanges): Metadata {
  const merged = new Map(Object.entries(present));
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) merged.delete(name);
    else merged.set(name, value);
  }
  const metadata: Metadata = Object.fromEntries(merged);
  // Does not say by how much: the caller need not be allowed to read what is there.
  if (sizeOf(metadata) > METADATA_MAX_BYTES) throw metadataTooLarge("with those that are there");
  return metadata;
}

const sizeOf = (metadata: Metadata): number => Buffer.byteLength(JSON.stringify(metadata));

function requireSmall(metadata: Metadata): Metadata {
  const sizeBytes = sizeOf(metadata);
  if (sizeBytes <= METADATA_MAX_BYTES) return metadata;
  throw metadataTooLarge(`got ${sizeBytes}`);
}

export function metadataTooLarge(found: string): AppError {
  const message = `metadata must be at most ${METADATA_MAX_BYTES} bytes of JSON, ${found}`;
  return new AppError(413, message, { data: { metadata: { code: "too_large", message } } });
}
