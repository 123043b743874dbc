import { quotaExceeded } from "../../../kernel/errors.ts";
import { PAGE_BYTES } from "../limits.ts";
import type { Sync, Transaction } from "../types.ts";

/** Quota of each instance of a namespace. */
export interface InstanceQuota {
  /** The namespace, for messages. */
  name: string;
  bytesMax: number;
}

/**
 * Wraps `work` to throw a 413 error at its end if it has grown the file beyond the quota. A write that needs no more room than
 * there was, or only deletes records, is never refused.
 */
export const withinQuota =
  <T>({ name, bytesMax }: InstanceQuota, work: (tx: Transaction) => Sync<T>) =>
  (tx: Transaction): Sync<T> => {
    const before = usedBytes(tx);
    const result = work(tx);
    const after = usedBytes(tx);
    if (after <= bytesMax || after <= before) return result;
    const isDeletion = tx.changes.length > 0 && tx.changes.every((change) => change.after === null);
    if (isDeletion) return result;
    throw quotaExceeded(
      `An instance of "${name}" may hold ${bytesMax} bytes: ${before} are in use, and this write needs ${after - before} more`,
    );
  };

/** Counts the pages in use, so that deleted records no longer count, although the file keeps its length. */
function usedBytes(tx: Transaction): number {
  const pages = tx.query<{ page_count: number }>("PRAGMA page_count").get()?.page_count ?? 0;
  const free = tx.query<{ freelist_count: number }>("PRAGMA freelist_count").get()?.freelist_count ?? 0;
  return (pages - free) * PAGE_BYTES;
}

/** Counts instances by creator. */
export interface InstanceCreations {
  /**
   * Runs before the file of a new instance is made. `creator`: a user's id; null: it counts for nobody. Errors: 413, and none is
   * made.
   */
  begin(instanceId: string, creator: string | null): Promise<void>;
  /** Notes that the instance exists. */
  done(instanceId: string): void;
  /** Takes the count back: the instance was not created after all. Never rejects. */
  undone(instanceId: string): Promise<void>;
  /** Takes the count back: the instance was deleted. Never rejects. */
  removed(instanceId: string): Promise<void>;
}

/** Counts creations of instances, one at a time for each instance. */
export class CountedCreations {
  readonly #creations: InstanceCreations;
  readonly #instances: { exists(id: string): boolean; deletion(id: string): Promise<unknown> | undefined };
  readonly #running = new Map<string, Promise<unknown>>();

  /** `deletion`: settles when the deletion that is under way has ended; undefined: none is. */
  constructor(
    creations: InstanceCreations,
    instances: { exists(id: string): boolean; deletion(id: string): Promise<unknown> | undefined },
  ) {
    this.#creations = creations;
    this.#instances = instances;
  }

  /** Runs the first write of an instance, which is counted before its file is made: no file exists without its count. [TB452] */
  async run<T>(instanceId: string, creator: string | null, write: () => Promise<T>): Promise<T> {
    for (;;) {
      const other = this.#running.get(instanceId) ?? this.#instances.deletion(instanceId);
      if (other === undefined) break;
      await other.catch(() => null);
    }
    if (this.#instances.exists(instanceId)) return write();
    const creation = this.#create(instanceId, creator, write);
    this.#running.set(instanceId, creation);
    try {
      return await creation;
    } finally {
      this.#running.delete(instanceId);
    }
  }

  async #create<T>(instanceId: string, creator: string | null, write: () => Promise<T>): Promise<T> {
    await this.#creations.begin(instanceId, creator);
    try {
      return await write();
    } finally {
      // A deletion under way takes the count back itself, once the file is gone.
      const isMade = this.#instances.exists(instanceId) || this.#instances.deletion(instanceId) !== undefined;
      if (isMade) this.#creations.done(instanceId);
      else await this.#creations.undone(instanceId);
    }
  }
}
