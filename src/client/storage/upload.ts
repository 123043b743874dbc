import type { ClientContext } from "../context.ts";
import { createPatience, reporting, sendingOf, type UploadTask } from "./sending.ts";
import type { FileEntry, Uploadable, UploadOptions } from "./types.ts";
import { uploadInParts } from "./upload-parts.ts";

/** Limit of a single request. Larger files are sent in parts. */
const SINGLE_MAX_BYTES = 8 * 1024 * 1024;

/** Implements `upload` of `Bucket`. */
export async function upload(
  context: ClientContext,
  bucket: string,
  key: string,
  given: Uploadable,
  { contentType, metadata, onProgress, signal = new AbortController().signal }: UploadOptions = {},
): Promise<FileEntry> {
  signal.throwIfAborted();
  await context.session.ready;
  const file = given instanceof Blob ? given : new Blob([given]);
  const total = file.size;
  const type = contentType ?? (file.type || "application/octet-stream");
  return reporting(total, onProgress, (onLoaded) => {
    const task = { bucket, key, file, contentType: type, metadata, onLoaded, signal };
    return total > SINGLE_MAX_BYTES ? uploadInParts(context, task) : uploadAtOnce(context, task);
  });
}

async function uploadAtOnce(context: ClientContext, task: UploadTask): Promise<FileEntry> {
  const { bucket, key, file, contentType, metadata, onLoaded, signal } = task;
  const form = new FormData();
  form.append("key", key);
  if (metadata !== undefined) form.append("metadata", JSON.stringify(metadata));
  form.append("file", file.type === contentType ? file : new Blob([file], { type: contentType }), "file");
  // All attempts share the key, so that one whose response was lost is not stored again.
  const headers = { "Idempotency-Key": context.runtime.uuid() };
  const { size, uploaded } = await createPatience(context, signal).run(() => {
    const sending = sendingOf(context, file.size, onLoaded);
    return context.transport.request<FileEntry>("POST", `${bucket}/upload`, {
      body: form,
      headers,
      signal,
      ...sending,
    });
  });
  return { key, size, uploaded };
}
