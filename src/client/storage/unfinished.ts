import { inTurn } from "../auth/lease.ts";
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
