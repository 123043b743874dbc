import { Type } from "typebox";

// What several endpoints answer or take.

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
/** What a change of a file is answered with: who may not read the file learns what it has sent. [ST333] */
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

/** Bytes of any type, as a body or an answer. */
export const Bytes = Type.String({ format: "binary" });
export const BYTES_TYPE = "application/octet-stream";
