import type { ClientContext } from "../context.ts";
import { UNFINISHED_MAX, UNFINISHED_TTL_MS } from "./limits.ts";

/** A multipart upload that the server knows. */
export interface Unfinished {
  /** Whose, where to, and which file. */
  of: string;
  uploadId: string;
  partBytes: number;
  beganAt: number;
}

/** The uploads of this store that have begun and not ended. */
export interface UnfinishedUploads {
  find(of: string): Promise<Unfinished | null>;
  add(upload: Unfinished): Promise<void>;
  remove(of: string): Promise<void>;
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
  const others = async (of: string) => (await read()).filter((upload) => upload.of !== of);
  return {
    find: async (of) => (await read()).find((upload) => upload.of === of) ?? null,
    add: async (upload) => write([...(await others(upload.of)), upload]),
    remove: async (of) => write(await others(of)),
  };
}
