import type { SeenQueries } from "../live/live.ts";
import type { View } from "../live/view.ts";
import type { Runtime } from "../runtime.ts";
import { SEEN_LENGTH_MAX, SEEN_QUERIES_MAX, STORE_AFTER_MS } from "./limits.ts";
import type { OfflineStorage } from "./storage.ts";

/** Keeps the records of live queries as they were seen last. */
export interface KeptQueries extends SeenQueries {
  /** What has changed is not stored any more. */
  drop(): void;
}

/** `userId`: for whom they are kept; null: for nobody. */
export function keepQueries(
  storage: OfflineStorage,
  runtime: Runtime,
  { userId }: { userId: () => string | null },
): KeptQueries {
  const changed = new Set<View>();
  let cancel: (() => void) | null = null;
  /** A tab that has not heard yet of another user may still store what the one before has seen. */
  const keyOf = (key: string) => `${userId()} ${key}`;

  const store = async (view: View) => {
    const { records, hasMore } = view.seen;
    const key = keyOf(view.plan.key);
    if (JSON.stringify(records).length > SEEN_LENGTH_MAX) return storage.forget(key);
    await storage.setSeen({ key, records, hasMore, at: runtime.now() });
    const keys = await storage.seenKeys();
    for (const old of keys.slice(0, -SEEN_QUERIES_MAX)) await storage.forget(old);
  };
  const storeAll = () => {
    cancel = null;
    const views = [...changed];
    changed.clear();
    if (userId() === null) return;
    // A full disk costs what would have been seen at the next start.
    for (const view of views) store(view).catch(() => {});
  };
  return {
    read: (key) => storage.seen(keyOf(key)).catch(() => null),
    changed(view) {
      changed.add(view);
      cancel ??= runtime.after(STORE_AFTER_MS, storeAll);
    },
    drop() {
      cancel?.();
      cancel = null;
      changed.clear();
    },
  };
}
