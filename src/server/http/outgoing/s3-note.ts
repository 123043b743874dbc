import { S3_NOTE_MAX_BYTES } from "../limits.ts";
import { beginningOf } from "./call.ts";

/** A small text in an object store; null: there is no such object. Errors: those of the store; a longer text. */
export async function readS3Note(file: Bun.S3File): Promise<string | null> {
  const { bytes, isCut, cause } = await beginningOf(file.stream(), { maxBytes: S3_NOTE_MAX_BYTES });
  if (cause instanceof Error && "code" in cause && cause.code === "NoSuchKey") return null;
  if (cause !== undefined) throw cause;
  if (isCut) throw new Error(`"${file.name}" in the object store has more than ${S3_NOTE_MAX_BYTES} bytes`);
  return new TextDecoder().decode(bytes);
}
