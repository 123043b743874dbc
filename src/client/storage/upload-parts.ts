import { inTurn } from "../auth/lease.ts";
import type { ClientContext } from "../context.ts";
import { listen } from "../listeners.ts";
import { orNull } from "../transport/errors.ts";
import { createPatience, sendingOf, type UploadTask } from "./sending.ts";
import type { FileEntry } from "./types.ts";

/** Uploads that can go on after a reload, the latest ones, as long as the server keeps their parts. */
const UNFINISHED_MAX = 50;
const UNFINISHED_TTL_MS = 24 * 60 * 60 * 1000;

/** A multipart upload that the server knows. */
export interface Unfinished {
  /** Whose, where to, and which file. */
  of: string;
  uploadId: string;
  partBytes: number;
  beganAt: number;
}

/** The uploads of this store that have begun and not ended. */
interface UnfinishedUploads {
  find(of: string): Promise<Unfinished | null>;
  /** What is known of one from now on; without `upload` nothing. */
  set(of: string, ...upload: Unfinished[]): Promise<void>;
}

export function createUnfinishedUploads({ store, runtime, transport }: ClientContext): UnfinishedUploads {
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
      // Each change reads all uploads and writes them, also those of other tabs.
      return inTurn({ store, runtime, key: `${key}.turn`, work });
    },
  };
}

/** One part. Larger where a file would have more parts than the server takes. */
const PART_BYTES = 4 * 1024 * 1024;
const PARTS_MAX = 10_000;
const PARTS_AT_ONCE = 4;
/** The server joins the parts of a large file. */
const COMPLETE_TIMEOUT_MS = 600_000;

interface Part {
  partNumber: number;
  etag: string;
  size: number;
}

/** What an upload is known by after a reload; null for bytes, which have no name and date. */
function identityOf(
  { transport }: ClientContext,
  { file, onLoaded: _, signal: __, ...about }: UploadTask,
): string | null {
  if (!(file instanceof File)) return null;
  // The type and metadata too: the server stores those that the upload began with.
  return JSON.stringify([transport.userId(), about, file.name, file.size, file.lastModified]);
}

/** Uploads a file in parts, and goes on where an earlier call stopped. */
export async function uploadInParts(context: ClientContext, task: UploadTask): Promise<FileEntry> {
  const { transport, runtime } = context;
  const { bucket, key, file, contentType, metadata, signal } = task;
  const unfinished = createUnfinishedUploads(context);
  const of = identityOf(context, task);
  /** What is known of it from now on. */
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
  /** Goes on with the parts that the server has. */
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
    // Answered again where the answer was lost.
    const entry = await patience.run(() =>
      transport.request<FileEntry>("POST", `${bucket}/multipart/complete`, options),
    );
    await note();
    return entry;
  };

  const known = of === null ? null : await unfinished.find(of);
  if (known !== null) {
    // It may be removed, or completed by another tab, also while parts of it are sent.
    const entry = await orNull(goOn(known));
    if (entry !== null) return entry;
    await note();
  }
  const upload = await begin();
  try {
    return await finish(upload, []);
  } catch (error) {
    const body = { uploadId: upload.uploadId, key };
    // Nothing can go on with it: its parts need not stay for a day.
    if (of === null) void transport.request("POST", `${bucket}/multipart/abort`, { body }).catch(() => {});
    throw error;
  }
}

/** Sends what is missing, four parts at a time. Gives all parts by number. The first failure ends the others. */
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
