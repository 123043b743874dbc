import { quotaExceeded } from "../../../kernel/errors.ts";
import { PAGE_BYTES } from "../limits.ts";
import type { Sync, Transaction } from "../types.ts";

/** What each instance of a namespace may hold. */
export interface InstanceQuota {
  /** The namespace, for messages. */
  name: string;
  bytesMax: number;
}

/**
 * `work`, which throws a 413 at its end if it has made the file hold more than the quota allows. A write that needs no more room than
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

/** Pages in use, so that what was deleted no longer counts, although the file keeps its length. */
function usedBytes(tx: Transaction): number {
  const pages = tx.query<{ page_count: number }>("PRAGMA page_count").get()?.page_count ?? 0;
  const free = tx.query<{ freelist_count: number }>("PRAGMA freelist_count").get()?.freelist_count ?? 0;
  return (pages - free) * PAGE_BYTES;
}

/** Counts instances for their creators. */
export interface InstanceCreations {
  /** Before the file of a new instance is made. `creator`: a user's id; null: it counts for nobody. Errors: 413, and none is made. */
  begin(instanceId: string, creator: string | null): Promise<void>;
  /** The instance exists. */
  done(instanceId: string): void;
  /** It was not created after all. Never rejects. */
  undone(instanceId: string): Promise<void>;
  /** It was deleted. Never rejects. */
  removed(instanceId: string): Promise<void>;
}

/** Creations of instances that are counted, one at a time for each instance. */
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

  /** Runs the first write of an instance, which is counted before its file is made: there is no file without its count. [TB452] */
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
      // A deletion that has begun takes the count back itself, once the file is gone.
      const isMade = this.#instances.exists(instanceId) || this.#instances.deletion(instanceId) !== undefined;
      if (isMade) this.#creations.done(instanceId);
      else await this.#creations.undone(instanceId);
    }
  }
}
