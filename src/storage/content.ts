import { AppError, badField } from "../kernel/errors.ts";
import { isJsonObject } from "../kernel/json.ts";
import { CONTENT_TYPE_LENGTH_MAX, METADATA_MAX_BYTES } from "./limits.ts";

const DEFAULT_CONTENT_TYPE = "application/octet-stream";
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/** RFC 9110, 8.3.1: type, subtype, parameters with tokens or quoted strings. */
const MEDIA_TYPE = new RegExp(
  `^${TOKEN}/${TOKEN}(?:[ \\t]*;[ \\t]*(?:${TOKEN}=(?:${TOKEN}|"[\\x20-\\x21\\x23-\\x5b\\x5d-\\x7e]*"))?)*$`,
);

/** A declared content type, or the default for none. Errors: 400 for what is no media type. */
export function parseContentType(declared: unknown): string {
  if (declared === undefined || declared === null || declared === "") return DEFAULT_CONTENT_TYPE;
  if (typeof declared !== "string") throw badField("contentType", "invalid_type", "contentType must be a string");
  const text = declared.trim();
  if (text.length > CONTENT_TYPE_LENGTH_MAX || !MEDIA_TYPE.test(text)) {
    throw badField("contentType", "invalid_value", "contentType must be a media type such as image/png");
  }
  return text;
}

/**
 * What a browser shows and never runs with the rights of the origin. A list of what is safe: a list of what is not (HTML,
 * SVG, every kind of XML) would miss what some browser takes for one of those.
 */
const SHOWN_INLINE: ReadonlySet<string> = new Set([
  ...["image/apng", "image/avif", "image/bmp", "image/gif", "image/heic", "image/heif", "image/jpeg", "image/jxl"],
  ...["image/png", "image/tiff", "image/vnd.microsoft.icon", "image/webp", "image/x-icon"],
  ...["audio/aac", "audio/flac", "audio/midi", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm"],
  ...["video/mp4", "video/mpeg", "video/ogg", "video/quicktime", "video/webm"],
  ...["application/json", "application/pdf", "text/csv", "text/plain"],
  ...["font/otf", "font/ttf", "font/woff", "font/woff2"],
]);

/** Whether a file of this type may be shown in the browser, where the bucket does not let all of them. */
export const isShownInline = (contentType: string): boolean =>
  SHOWN_INLINE.has((contentType.split(";")[0] ?? "").trim().toLowerCase());

type Metadata = { [key: string]: string };

/** Errors: 400 for anything but an object of strings, 413 when it is too large. */
export function parseMetadata(value: unknown): Metadata {
  if (value === undefined || value === null) return {};
  if (!isJsonObject(value)) throw badField("metadata", "invalid_type", "metadata must be an object of strings");
  const entries = Object.entries(value).map(([name, member]): [string, string] => {
    if (typeof member === "string") return [name, member];
    throw badField("metadata", "invalid_type", `metadata must be an object of strings, "${name}" is not a string`);
  });
  return bounded(Object.fromEntries(entries));
}

/** The JSON of a form's `metadata` field. Errors: as `parseMetadata`. */
export function parseMetadataText(text: string | null): Metadata {
  if (text === null || text === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw badField("metadata", "invalid_value", "metadata must be JSON: an object of strings");
  }
  if (value === null) throw badField("metadata", "invalid_type", "metadata must be an object of strings");
  return parseMetadata(value);
}

/** `changes` over `present`: a string sets, null removes. Errors: 400 naming the member, 413. */
export function mergeMetadata(present: Metadata, changes: { [key: string]: unknown }): Metadata {
  const merged = new Map(Object.entries(present));
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) merged.delete(name);
    else if (typeof value === "string") merged.set(name, value);
    else throw badField(name, "invalid_type", `${name} must be a string, or null to remove it`);
  }
  return bounded(Object.fromEntries(merged));
}

function bounded(metadata: Metadata): Metadata {
  const sizeBytes = Buffer.byteLength(JSON.stringify(metadata));
  if (sizeBytes <= METADATA_MAX_BYTES) return metadata;
  throw metadataTooLarge(`got ${sizeBytes}`);
}

export function metadataTooLarge(found: string): AppError {
  const message = `metadata must be at most ${METADATA_MAX_BYTES} bytes of JSON, ${found}`;
  return new AppError(413, message, { data: { metadata: { code: "too_large", message } } });
}
