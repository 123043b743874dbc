import type { ClientContext } from "../context.ts";
import { onWake } from "../listeners.ts";
import { createRetries } from "../live/failures.ts";
import { liveOf, type SeenQueries } from "../live/live.ts";
import type { View } from "../live/view.ts";
import type { Runtime } from "../runtime.ts";
import type { TableWrite } from "../tables/writes.ts";
import { joinTabs, type News, WriteQueue } from "./queue.ts";
import type { OfflineStorage } from "./storage.ts";
import type { RefusedListener } from "./types.ts";

/** The characters of the JSON of a query's records; larger ones are not kept. */
export const SEEN_LENGTH_MAX = 4_000_000;

/** Queries whose records are kept for the next start; those that were seen longest ago go first. */
export const SEEN_QUERIES_MAX = 100;

/** Records are stored this long after a change, together with those that follow it. */
const STORE_AFTER_MS = 1_000;

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

export { openIndexedDb } from "./storage.ts";

/** Sends a write now or when it can be sent, and gives its answer. */
export type Deliver = ClientContext["deliver"];

interface Parts {
  name: string;
  storage: OfflineStorage;
  refused: RefusedListener;
  /** Sends a write at once. */
  direct: Deliver;
}

/** Takes over the writes of a client, and what its live queries start from. */
export async function startOffline(context: ClientContext, parts: Parts): Promise<Deliver> {
  const { name, storage, refused, direct } = parts;
  const { session, transport, runtime } = context;
  const live = liveOf(context);
  await session.ready;
  const seen = keepQueries(storage, runtime, transport);
  const { store } = context;
  const hear = (news: News) => {
    if (news.type === "added") void queue.resume();
    else queue.ended(news);
  };
  const tabs = joinTabs({ runtime, store, name, hear });
  const queue = new WriteQueue({ context, live, retries: createRetries(runtime), storage, tabs, refused });

  /** What belongs to another user, or to one who has signed out, goes. */
  const settleOwner = async () => {
    const userId = transport.userId();
    if ((await storage.owner()) === userId && userId !== null) return;
    await storage.clear();
    if (userId !== null) await storage.setOwner(userId);
  };
  let settled = settleOwner();
  const stopListening = transport.onAuth(() => {
    seen.drop();
    queue.forget();
    settled = settled.then(settleOwner, settleOwner);
    // The next write is sent without being kept then.
    settled.catch(() => {});
  });
  await settled;

  live.useSeen(seen);
  const socket = await context.socket();
  const stopWatching = socket.subscribe((status) => {
    if (status === "connected") queue.send();
  });
  const stopWaking = onWake({ isBack: () => queue.send(), isLost: () => {} });
  context.onClose(() => {
    stopListening();
    stopWatching();
    seen.drop();
    queue.stop();
    tabs.close();
    storage.close();
    stopWaking();
  });
  await queue.resume();

  return async (write: TableWrite) => {
    const userId = transport.userId();
    // Only a user's writes can be sent twice and be done once.
    return userId === null ? direct(write) : queue.add(write, userId, settled);
  };
}
