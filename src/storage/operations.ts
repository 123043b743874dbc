import { Type } from "typebox";
import { operation, optional } from "../http/operation.ts";
import {
  BATCH_DELETE_KEYS_MAX,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  PART_NUMBER_MAX,
  SIGNED_URL_DEFAULT_SECONDS,
  SIGNED_URL_KEYS_MAX,
  SIGNED_URL_MAX_SECONDS,
} from "./limits.ts";

const tag = "Storage";
const bucket = "A bucket declared under `storage.buckets`";
const key = "The file's key; slashes as they are, or as %2F";
const inBucket = { bucket };
const ofFile = { bucket, key };
/** The routes end in a wildcard, since keys hold slashes; a document can only name the key. */
const FILE = "/api/storage/:bucket/:key";
const METADATA = `${FILE}/metadata`;

const Uploaded = Type.String({ format: "date-time" });
const StoredFile = Type.Object({
  key: Type.String(),
  size: Type.Integer({ description: "Bytes" }),
  httpMetadata: Type.Object({ contentType: Type.String() }),
  customMetadata: Type.Record(Type.String(), Type.String()),
  uploaded: Uploaded,
});
const Ok = Type.Object({ ok: Type.Literal(true) });
const Key = Type.String({ minLength: 1, description: "1 to 1024 bytes of UTF-8" });
const Bytes = Type.String({ format: "binary" });
const Part = Type.Object({ partNumber: Type.Integer({ minimum: 1, maximum: PART_NUMBER_MAX }), etag: Type.String() });
const NamedPart = Type.Object({ ...Part.properties, size: Type.Optional(Type.Integer()) });
const StoredPart = Type.Object({ ...Part.properties, size: Type.Integer({ description: "Bytes" }) });
const Expiry = optional(
  Type.Integer({
    minimum: 1,
    maximum: SIGNED_URL_MAX_SECONDS,
    default: SIGNED_URL_DEFAULT_SECONDS,
    description: "Seconds",
  }),
);
const NamedUpload = { uploadId: Type.String(), key: Key };
const json = (description: string, schema: ReturnType<typeof Type.Object>) => ({ description, schema });

/** What the routes say of themselves in the OpenAPI document. */
export const DESCRIPTIONS = {
  list: operation({
    ...{ tag, summary: "List the files that the caller may read, by key", security: "caller", path: inBucket },
    query: [
      { name: "prefix", description: "Keys that begin with this" },
      {
        name: "limit",
        description: `Default ${LIST_LIMIT_DEFAULT}; more than ${LIST_LIMIT_MAX} counts as that`,
        schema: Type.Integer({ minimum: 1 }),
      },
      { name: "cursor", description: "Of the page before" },
    ],
    answers: {
      200: json(
        "A page. Where a rule hides many files it may be short and still be truncated",
        Type.Object({
          objects: Type.Array(Type.Object({ key: Type.String(), size: Type.Integer(), uploaded: Uploaded })),
          truncated: Type.Boolean(),
          cursor: Type.Union([Type.String(), Type.Null()]),
        }),
      ),
    },
    errors: [400, 401, 403, 404],
  }),
  download: operation({
    ...{ tag, summary: "Download a file", security: "rules", path: ofFile },
    at: FILE,
    also: [
      {
        ...{ tag, summary: "Whether a file exists", security: "rules", path: ofFile },
        ...{ method: "HEAD", at: FILE },
        query: [{ name: "token", description: "Of a signed URL" }],
        answers: {
          200: { description: "It does; the headers of its download" },
          304: { description: "The file has this ETag" },
        },
        errors: [400, 401, 403, 404],
      },
      {
        ...{ tag, summary: "What is known of a file", security: "caller", path: ofFile },
        ...{ method: "GET", at: METADATA },
        answers: { 200: json("The stored file", StoredFile) },
        errors: [400, 401, 403, 404],
      },
      {
        ...{ tag, summary: "List the parts of a multipart upload", security: "caller" },
        ...{ method: "GET", at: "/api/storage/:bucket/uploads/:uploadId/parts" },
        path: { bucket, uploadId: "Of a multipart upload that is not finished" },
        query: [{ name: "key", required: true, description: "The file's key" }],
        answers: { 200: json("By number", Type.Object({ parts: Type.Array(StoredPart) })) },
        errors: [400, 401, 403, 404],
      },
    ],
    query: [
      { name: "token", description: "Of a signed URL" },
      { name: "thumb", description: "A size that the bucket declares, such as 200x200" },
    ],
    headers: [{ name: "Range" }, { name: "If-None-Match" }, { name: "If-Range" }],
    answers: {
      200: { description: "The file", schema: Bytes, contentType: "application/octet-stream" },
      206: { description: "The bytes of the range", schema: Bytes, contentType: "application/octet-stream" },
      304: { description: "The file has this ETag" },
    },
    errors: [400, 401, 403, 404, 413, 415, 416, 503],
  }),
  signedUpload: operation({
    ...{ tag, summary: "Upload to a signed URL", security: "public", path: ofFile },
    at: FILE,
    query: [{ name: "token", required: true, description: "Of the signed URL; good once" }],
    body: { schema: Bytes, contentType: "application/octet-stream" },
    answers: { 200: json("The stored file", StoredFile) },
    errors: [400, 401, 403, 404, 408, 413],
  }),
  remove: operation({
    ...{ tag, summary: "Delete a file", security: "caller", path: ofFile },
    at: FILE,
    answers: { 200: json("It is gone", Ok) },
    errors: [400, 401, 403, 404],
  }),
  patchMetadata: operation({
    ...{ tag, summary: "Set custom metadata", security: "caller", path: ofFile },
    at: METADATA,
    description: "Members not named stay; null removes one.",
    body: { schema: Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()])) },
    answers: { 200: json("The stored file", StoredFile) },
    errors: [400, 401, 403, 404, 413, 415],
  }),
  upload: operation({
    ...{ tag, summary: "Upload a file", security: "caller", path: inBucket },
    body: {
      contentType: "multipart/form-data",
      schema: Type.Object({
        file: Bytes,
        key: Key,
        metadata: Type.Optional(Type.String({ description: "JSON: an object of strings" })),
      }),
    },
    answers: { 201: json("The stored file", StoredFile) },
    errors: [400, 401, 403, 404, 408, 409, 413, 415],
  }),
  removeBatch: operation({
    ...{ tag, summary: "Delete several files, each by the delete rule", security: "caller", path: inBucket },
    description: "What cannot be a key is among `failed`.",
    body: { schema: Type.Object({ keys: Type.Array(Type.String(), { maxItems: BATCH_DELETE_KEYS_MAX }) }) },
    answers: {
      200: json(
        "What was deleted and what was not",
        Type.Object({
          deleted: Type.Array(Type.String()),
          failed: Type.Array(Type.Object({ key: Type.String(), error: Type.String() })),
        }),
      ),
    },
    errors: [400, 401, 403, 404, 415],
  }),
  signedUrl: operation({
    ...{ tag, summary: "Sign a download URL", security: "caller", path: inBucket },
    body: { schema: Type.Object({ key: Key, expiresIn: Expiry }) },
    answers: { 200: json("Good for GET and HEAD until it expires", Type.Object({ url: Type.String() })) },
    errors: [400, 401, 403, 404, 415],
  }),
  signedUrls: operation({
    ...{ tag, summary: "Sign several download URLs", security: "caller", path: inBucket },
    description: "Files that do not exist are left out; one that may not be read denies the request.",
    body: {
      schema: Type.Object({
        keys: Type.Array(Type.String(), { maxItems: SIGNED_URL_KEYS_MAX }),
        expiresIn: optional(Type.String({ description: "`30m`, `1h`, `7d`; default `1h`, at most `7d`" })),
      }),
    },
    answers: {
      200: json(
        "The URLs",
        Type.Object({
          urls: Type.Array(Type.Object({ key: Type.String(), url: Type.String(), expiresAt: Uploaded })),
        }),
      ),
    },
    errors: [400, 401, 403, 404, 415],
  }),
  signedUploadUrl: operation({
    ...{ tag, summary: "Sign an upload URL, good for one PUT", security: "caller", path: inBucket },
    body: {
      schema: Type.Object({
        key: Key,
        expiresIn: Expiry,
        contentType: optional(Type.String({ description: "What the PUT has to declare; whatever it likes without" })),
      }),
    },
    answers: { 200: json("The URL to PUT the bytes to", Type.Object({ url: Type.String() })) },
    errors: [400, 401, 403, 404, 415],
  }),
  createUpload: operation({
    ...{ tag, summary: "Begin a multipart upload", security: "caller", path: inBucket },
    body: {
      schema: Type.Object({
        key: Key,
        contentType: optional(Type.String()),
        metadata: optional(Type.Record(Type.String(), Type.String())),
      }),
    },
    answers: { 200: json("Its id", Type.Object(NamedUpload)) },
    errors: [400, 401, 403, 404, 409, 413, 415],
  }),
  putPart: operation({
    ...{ tag, summary: "Upload one part; parts may come in parallel", security: "caller", path: inBucket },
    query: [
      { name: "uploadId", required: true },
      { name: "partNumber", required: true, schema: Type.Integer({ minimum: 1, maximum: PART_NUMBER_MAX }) },
      { name: "key", required: true },
    ],
    body: { schema: Bytes, contentType: "application/octet-stream" },
    answers: { 200: json("Name both when completing", Part) },
    errors: [400, 401, 403, 404, 408, 413],
  }),
  completeUpload: operation({
    ...{ tag, summary: "Make the parts one file", security: "caller", path: inBucket },
    body: { schema: Type.Object({ ...NamedUpload, parts: Type.Array(NamedPart) }) },
    answers: {
      200: json("The file", Type.Object({ key: Type.String(), size: Type.Integer(), uploaded: Uploaded })),
    },
    errors: [400, 401, 403, 404, 409, 413, 415],
  }),
  abortUpload: operation({
    ...{ tag, summary: "Give a multipart upload up", security: "caller", path: inBucket },
    body: { schema: Type.Object(NamedUpload) },
    answers: { 200: json("It is gone", Ok) },
    errors: [400, 401, 403, 404, 415],
  }),
} as const;
