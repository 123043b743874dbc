import type { ClientContext } from "../context.ts";
import { listen } from "../listeners.ts";
import { orNull } from "../transport/errors.ts";
import { createPatience, sendingOf, type UploadTask } from "./sending.ts";
import type { FileEntry } from "./types.ts";

/** Bound of the uploads that can resume after a reload, latest first; they expire with their parts on the server. */
const UNFINISHED_MAX = 50;
const UNFINISHED_TTL_MS = 24 * 60 * 60 * 1000;

/** Multipart upload that the server knows. */
export interface Unfinished {
  /** Identity of the upload: user, target and file. */
  of: string;
  uploadId: string;
  partBytes: number;
  beganAt: number;
}

/** Unfinished uploads of this store. */
interface UnfinishedUploads {
  find(of: string): Promise<Unfinished | null>;
  /** Replaces the record of an upload; without `upload` it is removed. */
  set(of: string, ...upload: Unfinished[]): Promise<void>;
}

export function createUnfinishedUploads({ store, runtime, transport, inTurn }: ClientContext): UnfinishedUploads {
  const key = `platform.uploads@${transport.url("")}`;
  const read = async (): Promise<Unfinished[]> => {
    const text = await store.get(key);
    try {
      const all = JSON.parse(text ?? "[]") as Unfinished[];
      return all.filter(({ beganAt }) => beganAt + UNFINISHED_TTL_MS > runtime.now());
    } catch {
      return [];
    }
  };
  const write = (uploads: readonly Unfinished[]) =>
    uploads.length === 0 ? store.remove(key) : store.set(key, JSON.stringify(uploads.slice(-UNFINISHED_MAX)));
  return {
    find: async (of) => (await read()).find((upload) => upload.of === of) ?? null,
    set(of, ...upload) {
      const work = async () => write([...(await read()).filter((other) => other.of !== of), ...upload]);
      // Each change rewrites the records of all uploads, including those of other tabs.
      return inTurn({ key: `${key}.turn`, work });
    },
  };
}

/** Size of a part. Larger if a file would otherwise exceed the server's number of parts. */
const PART_BYTES = 4 * 1024 * 1024;
const PARTS_MAX = 10_000;
const PARTS_AT_ONCE = 4;
/** Timeout of the completion, in which the server joins the parts of a large file. */
const COMPLETE_TIMEOUT_MS = 600_000;

interface Part {
  partNumber: number;
  etag: string;
  size: number;
}

/** Returns the identity of an upload across reloads; null for bytes, which have no name and date. */
function identityOf(
  { transport }: ClientContext,
  { file, onLoaded: _, signal: __, ...about }: UploadTask,
): string | null {
  if (!(file instanceof File)) return null;
  // Includes the type and metadata, as the server stores those that the upload began with.
  return JSON.stringify([transport.userId(), about, file.name, file.size, file.lastModified]);
}

/** Uploads a file in parts, and resumes an earlier call. */
export async function uploadInParts(context: ClientContext, task: UploadTask): Promise<FileEntry> {
  const { transport, runtime } = context;
  const { bucket, key, file, contentType, metadata, signal } = task;
  const unfinished = createUnfinishedUploads(context);
  const of = identityOf(context, task);
  /** Records the state of the upload. */
  const note = async (...upload: Unfinished[]) => {
    if (of !== null) await unfinished.set(of, ...upload);
  };
  const patience = createPatience(context, signal);

  const begin = async (): Promise<Unfinished> => {
    const body = { key, contentType, metadata };
    const { uploadId } = await patience.run(() =>
      transport.request<{ uploadId: string }>("POST", `${bucket}/multipart/create`, { body, signal }),
    );
    const partBytes = Math.max(PART_BYTES, Math.ceil(file.size / PARTS_MAX));
    const upload = { of: of ?? "", uploadId, partBytes, beganAt: runtime.now() };
    await note(upload);
    return upload;
  };
  /** Resumes with the parts that the server has. */
  const goOn = async (upload: Unfinished): Promise<FileEntry> => {
    const path = `${bucket}/uploads/${encodeURIComponent(upload.uploadId)}/parts`;
    const { parts } = await patience.run(() =>
      transport.request<{ parts: Part[] }>("GET", path, { query: { key }, signal }),
    );
    return finish(upload, parts);
  };
  const finish = async (upload: Unfinished, parts: readonly Part[]): Promise<FileEntry> => {
    const { uploadId } = upload;
    const sent = await sendParts(context, task, upload, parts);
    const body = { uploadId, key, parts: sent.map(({ partNumber, etag }) => ({ partNumber, etag })) };
    const options = { body, signal, timeoutMs: COMPLETE_TIMEOUT_MS };
    // Idempotent: a lost response is returned again.
    const entry = await patience.run(() =>
      transport.request<FileEntry>("POST", `${bucket}/multipart/complete`, options),
    );
    await note();
    return entry;
  };

  const known = of === null ? null : await unfinished.find(of);
  if (known !== null) {
    // The upload may be removed, or completed by another tab, even while parts are sent.
    const entry = await orNull(goOn(known));
    if (entry !== null) return entry;
    await note();
  }
  const upload = await begin();
  try {
    return await finish(upload, []);
  } catch (error) {
    const body = { uploadId: upload.uploadId, key };
    // The upload cannot be resumed, so its parts need not stay for a day.
    if (of === null) void transport.request("POST", `${bucket}/multipart/abort`, { body }).catch(() => {});
    throw error;
  }
}

/** Sends the missing parts, four at a time, and returns all parts by number. The first failure aborts the others. */
async function sendParts(
  context: ClientContext,
  { bucket, key, file, onLoaded, signal }: UploadTask,
  { uploadId, partBytes }: Unfinished,
  stored: readonly Part[],
): Promise<Part[]> {
  const count = Math.ceil(file.size / partBytes);
  const bytesOf = (partNumber: number) => file.slice((partNumber - 1) * partBytes, partNumber * partBytes);
  const parts = stored.filter(({ partNumber, size }) => partNumber <= count && size === bytesOf(partNumber).size);
  const present = new Set(parts.map(({ partNumber }) => partNumber));
  const missing = Array.from({ length: count }, (_, index) => index + 1).filter((number) => !present.has(number));
  const ending = new AbortController();
  const stopListening = listen(signal, "abort", () => ending.abort(signal.reason));
  const patience = createPatience(context, ending.signal);
  const sending = new Map<number, number>();
  const report = () => {
    const done = parts.reduce((sum, { size }) => sum + size, 0);
    onLoaded([...sending.values()].reduce((sum, bytes) => sum + bytes, done));
  };

  const send = async (partNumber: number): Promise<void> => {
    const body = bytesOf(partNumber);
    const progress = (bytes: number) => {
      sending.set(partNumber, bytes);
      report();
    };
    const { etag } = await patience.run(() =>
      context.transport.request<Part>("POST", `${bucket}/multipart/upload-part`, {
        query: { uploadId, key, partNumber },
        body,
        signal: ending.signal,
        ...sendingOf(context, body.size, progress),
      }),
    );
    sending.delete(partNumber);
    parts.push({ partNumber, etag, size: body.size });
    report();
  };
  const work = async (): Promise<void> => {
    for (let next = missing.shift(); next !== undefined; next = missing.shift()) await send(next);
  };
  report();
  try {
    await Promise.all(Array.from({ length: PARTS_AT_ONCE }, work));
  } catch (error) {
    ending.abort(error);
    throw error;
  } finally {
    stopListening();
  }
  return parts.sort((a, b) => a.partNumber - b.partNumber);
}
