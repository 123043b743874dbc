import type { ClientContext } from "../context.ts";
import { createListeners, onWake } from "../listeners.ts";
import { createRetries } from "../live/failures.ts";
import { liveOf, type SeenQueries } from "../live/live.ts";
import type { View } from "../live/view.ts";
import type { Runtime } from "../runtime.ts";
import type { TableWrite } from "../tables/writes.ts";
import type { PlatformError } from "../transport/errors.ts";
import { joinTabs, type News, WriteQueue } from "./queue.ts";
import { type OfflineStorage, openIndexedDb } from "./storage.ts";
import type { Offline, RefusedListener } from "./types.ts";

/** Limit of the JSON of a query's records, in characters; larger results are not kept. */
export const SEEN_LENGTH_MAX = 4_000_000;

/** Number of queries whose records are kept for the next start, by LRU. */
export const SEEN_QUERIES_MAX = 100;

/** Debounce of storing records after a change. */
const STORE_AFTER_MS = 1_000;

/** Store of the records that live queries last showed. */
export interface KeptQueries extends SeenQueries {
  /** Discards changes that are not stored yet. */
  drop(): void;
}

/** Creates the store. `userId`: the owner of the records; null: nobody. */
export function keepQueries(
  storage: OfflineStorage,
  runtime: Runtime,
  { userId }: { userId: () => string | null },
): KeptQueries {
  const changed = new Set<View>();
  let cancel: (() => void) | null = null;
  /** A tab that is not yet aware of another user may still store the previous user's records. */
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
    // A full disk only costs the records of the next start.
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

/** Sends a write now, or once it can be sent, and returns its response. */
export type Deliver = ClientContext["deliver"];

interface Parts {
  name: string;
  storage: OfflineStorage;
  refused: RefusedListener;
  /** Sends a write at once. */
  direct: Deliver;
}

/** Starts offline support in IndexedDB. `started` rejects where the browser refuses it. */
export function openOffline(
  context: ClientContext,
  name: string,
  direct: Deliver,
): Offline & { started: Promise<Deliver> } {
  const listeners = createListeners<Parameters<RefusedListener>>();
  const unheard: [TableWrite, PlatformError][] = [];
  const refused: RefusedListener = (write, error) => {
    // Writes lost at the end of a session are not reported to the next user's listeners.
    if (listeners.size === 0 && error.code !== "unauthenticated") unheard.push([write, error]);
    listeners.tell(write, error);
  };
  context.transport.onAuth(() => {
    unheard.length = 0;
  });
  return {
    started: openIndexedDb(name).then((storage) => startOffline(context, { name, storage, refused, direct })),
    onRefused(listener) {
      for (const [write, error] of unheard.splice(0)) listener(write, error);
      return listeners.add(listener);
    },
  };
}

/** Starts offline support: takes over the client's writes, and provides cached records to its live queries. */
export async function startOffline(context: ClientContext, parts: Parts): Promise<Deliver> {
  const { name, storage, refused, direct } = parts;
  const { session, transport, runtime } = context;
  const live = liveOf(context);
  await session.ready;
  const seen = keepQueries(storage, runtime, transport);
  const hear = (news: News) => {
    if (news.type === "added") void queue.resume();
    else queue.ended(news);
  };
  const tabs = joinTabs({ inTurn: context.inTurn, name, hear });
  const queue = new WriteQueue({ context, live, retries: createRetries(runtime), storage, tabs, refused });

  /** Deletes the data of another user, or of one who has signed out. */
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
    // On failure, the next write is sent without being kept.
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
    // Only a user's writes can be retried safely: the server stores no idempotent responses for anonymous callers.
    return userId === null ? direct(write) : queue.add(write, userId, settled);
  };
}
