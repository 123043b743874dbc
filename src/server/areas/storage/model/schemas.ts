import { type Static, Type } from "typebox";
import { badField } from "../../../../kernel/errors.ts";
import { optional, refine } from "../../../../kernel/schema/types.ts";
import { parseDuration, SECOND_MS } from "../../../../kernel/time/duration.ts";
import { PART_NUMBER_MAX, SIGNED_URL_DEFAULT_SECONDS, SIGNED_URL_KEYS_MAX, SIGNED_URL_MAX_SECONDS } from "../limits.ts";
import { Metadata } from "./content.ts";
import { Key } from "./keys.ts";

// Schemas that several endpoints accept or return.

export const TAG = "Storage";
export const IN_BUCKET = { bucket: "A bucket declared under `storage.buckets`" };
export const OF_FILE = { bucket: IN_BUCKET.bucket, key: "The file's key; slashes as they are, or as %2F" };

export const UploadTime = Type.String({ format: "date-time" });
export const StoredFile = Type.Object(
  {
    key: Type.String(),
    size: Type.Integer({ description: "Bytes" }),
    httpMetadata: Type.Object({ contentType: Type.String() }),
    customMetadata: Type.Record(Type.String(), Type.String()),
    uploaded: UploadTime,
  },
  { description: "The stored file" },
);
/** Response to a change of a file: a caller who may not read the file gets back what it has sent. [ST333] */
export const ChangedFile = Type.Object(
  {
    key: Type.String(),
    size: Type.Optional(Type.Integer({ description: "Bytes" })),
    httpMetadata: Type.Optional(Type.Object({ contentType: Type.String() })),
    customMetadata: Type.Record(Type.String(), Type.String()),
    uploaded: Type.Optional(UploadTime),
  },
  { description: "The stored file; for who may not read it, its key and the members that were set" },
);
export const Ok = Type.Object({ ok: Type.Literal(true) });

/** Bytes of any type, as a body or a response. */
export const Bytes = Type.String({ format: "binary" });
export const BYTES_TYPE = "application/octet-stream";

const UploadId = Type.String({ minLength: 1 });
export const PartNumber = Type.Integer({ minimum: 1, maximum: PART_NUMBER_MAX });
const PartSize = Type.Integer({ description: "Bytes" });

export const NewUpload = Type.Object({
  key: Key,
  contentType: optional(Type.String()),
  metadata: optional(Metadata),
});

export const NamedUpload = Type.Object({ uploadId: UploadId, key: Key });

/** Query parameters that name a part of an upload. */
export const NAMED_PART = { uploadId: UploadId, partNumber: PartNumber, key: Key };
export interface NamedPart {
  uploadId: string;
  partNumber: number;
  key: string;
}

const WantedPart = Type.Object({ partNumber: PartNumber, etag: Type.String(), size: optional(PartSize) });
/** A part named by a request to complete the upload; with its size when copied from the list of parts. */
export type WantedPart = Static<typeof WantedPart>;

export const CompletedUpload = Type.Object({
  uploadId: UploadId,
  key: Key,
  parts: Type.Array(WantedPart, {
    minItems: 1,
    maxItems: PART_NUMBER_MAX,
    description: "In ascending order of `partNumber`",
  }),
});

/** Checks that part numbers ascend. Errors: 400. */
export function requireAscending(parts: readonly WantedPart[]): void {
  let last = 0;
  for (const [index, { partNumber }] of parts.entries()) {
    if (partNumber <= last) {
      throw badField(`parts.${index}`, "invalid_value", "parts must be in ascending order of partNumber");
    }
    last = partNumber;
  }
}

/** Lifetime of a signed URL in seconds. */
const Seconds = Type.Integer({
  minimum: 1,
  maximum: SIGNED_URL_MAX_SECONDS,
  default: SIGNED_URL_DEFAULT_SECONDS,
  description: "Seconds",
});

const isDuration = (text: string): boolean => parseDuration(text) !== null;
// A text that is not a duration passes here; the first condition refuses it.
const isLongEnough = (text: string): boolean => (secondsOf(text) ?? 1) >= 1;
const isShortEnough = (text: string): boolean => (secondsOf(text) ?? 1) <= SIGNED_URL_MAX_SECONDS;

const Text = Type.String({ description: "`30m`, `1h`, `7d`; default `1h`, at most `7d`" });

/** Lifetime of a signed URL as a text such as `1h`. */
const Duration = refine(
  refine(
    refine(Text, isDuration, (name) => ({
      code: "invalid_type",
      message: `${name} must be a duration such as "1h"`,
    })),
    isLongEnough,
    (name) => ({ code: "too_small", message: `${name} must be at least 1 second` }),
  ),
  isShortEnough,
  (name) => ({ code: "too_large", message: `${name} must be at most ${SIGNED_URL_MAX_SECONDS} seconds (7 days)` }),
);

export const SignOne = Type.Object({ key: Key, expiresIn: optional(Seconds) });
export const SignSeveral = Type.Object({
  keys: Type.Array(Type.String(), { maxItems: SIGNED_URL_KEYS_MAX }),
  expiresIn: optional(Duration),
});
export const SignUpload = Type.Object({
  key: Key,
  expiresIn: optional(Seconds),
  contentType: optional(Type.String({ description: "What the PUT has to declare; without it, any type" })),
});

/** Parses a duration to seconds; null for no text and for a text that is not a duration. */
export function secondsOf(text: string | null): number | null {
  const milliseconds = text === null ? null : parseDuration(text);
  return milliseconds === null ? null : milliseconds / SECOND_MS;
}
