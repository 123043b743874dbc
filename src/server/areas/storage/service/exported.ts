import { AppError } from "../../../../kernel/errors.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { Gate, Gates } from "../gates.ts";
import { factsOf } from "../model/types.ts";
import type { StorageStore } from "../store/store.ts";
import type { Signing } from "./signing.ts";

/** Keys that are read at once. */
const FILES_PER_STEP = 200;
/** Validity of the URLs. */
const URLS_SECONDS = 3_600;

/** A file that belongs to the export of a user. */
export interface ExportedFile {
  bucket: string;
  key: string;
  size: number;
  contentType: string;
  uploaded: string;
  url: string;
}

interface ExportDeps {
  buckets: Iterable<string>;
  store: StorageStore;
  gates: Gates;
  signing: Signing;
  paces: () => Pace;
}

/**
 * Yields the files that a user has uploaded, as far as the caller may read them, with URLs that act for the caller and are good for
 * an hour, a few milliseconds in each turn of the event loop.
 */
export async function* exportedFiles(
  { buckets, store, gates, signing, paces }: ExportDeps,
  principal: Principal,
  { userId, origin }: { userId: string; origin: string },
  signal: AbortSignal,
): AsyncGenerator<ExportedFile, void> {
  const pace = paces();
  for (const bucket of buckets) {
    const gate = await enter(gates, principal, bucket);
    if (gate === null) continue;
    for (let after = ""; ; ) {
      await pace.next();
      signal.throwIfAborted();
      const page = store.keysOf(userId, { bucket, after, limit: FILES_PER_STEP });
      for (const key of page) {
        if (pace.isDue()) await pace.next();
        const object = store.find({ bucket, key });
        if (object === null || object.uploadedBy !== userId || !(await gate.ask(factsOf(object)))) continue;
        const { size, contentType } = object;
        const uploaded = new Date(object.uploaded).toISOString();
        const url = signing.urlOf(principal, { bucket, key }, URLS_SECONDS, origin);
        yield { bucket, key, size, contentType, uploaded, url };
      }
      const last = page.at(-1);
      if (last === undefined || page.length < FILES_PER_STEP) break;
      after = last;
    }
  }
}

/** Returns the gate of a bucket; null where the caller may read none of its files. */
async function enter(gates: Gates, principal: Principal, bucket: string): Promise<Gate | null> {
  try {
    return await gates.enter(principal, bucket, "read");
  } catch (cause) {
    if (cause instanceof AppError && (cause.status === 401 || cause.status === 403)) return null;
    throw cause;
  }
}
