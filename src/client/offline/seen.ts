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

/** `isKept`: whether there is somebody to keep them for. */
export function keepQueries(
  storage: OfflineStorage,
  runtime: Runtime,
  { isKept }: { isKept: () => boolean },
): KeptQueries {
  const changed = new Set<View>();
  let cancel: (() => void) | null = null;

  const store = async (view: View) => {
    const { records, hasMore } = view.seen;
    const { key } = view.plan;
    if (JSON.stringify(records).length > SEEN_LENGTH_MAX) return storage.forget(key);
    await storage.setSeen({ key, records, hasMore, at: runtime.now() });
    const keys = await storage.seenKeys();
    for (const old of keys.slice(0, Math.max(0, keys.length - SEEN_QUERIES_MAX))) await storage.forget(old);
  };
  const storeAll = () => {
    cancel = null;
    const views = [...changed];
    changed.clear();
    if (!isKept()) return;
    // A full disk costs what would have been seen at the next start.
    for (const view of views) store(view).catch(() => {});
  };
  return {
    read: (key) => storage.seen(key).catch(() => null),
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
