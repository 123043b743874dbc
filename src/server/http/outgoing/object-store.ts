import { S3Client } from "bun";
import { S3_NOTE_MAX_BYTES } from "../limits.ts";
import { beginningOf } from "./call.ts";

/** An S3-compatible object store; without `region` that of its endpoint. */
export interface ObjectStoreAccess {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region?: string | undefined;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** A client of an object store. It finds no host by itself without holding a thread: `findHost` comes first. */
export function openObjectStore({
  endpoint,
  bucket,
  region,
  accessKeyId,
  secretAccessKey,
}: ObjectStoreAccess): S3Client {
  const access = { endpoint, bucket, accessKeyId, secretAccessKey };
  return new S3Client(region === undefined ? access : { ...access, region });
}

/** A small text in an object store; null: there is no such object. Errors: those of the store; a longer text. */
export async function readS3Note(file: Bun.S3File): Promise<string | null> {
  const { bytes, isCut, cause } = await beginningOf(file.stream(), { maxBytes: S3_NOTE_MAX_BYTES });
  if (cause instanceof Error && "code" in cause && cause.code === "NoSuchKey") return null;
  if (cause !== undefined) throw cause;
  if (isCut) throw new Error(`"${file.name}" in the object store has more than ${S3_NOTE_MAX_BYTES} bytes`);
  return new TextDecoder().decode(bytes);
}
