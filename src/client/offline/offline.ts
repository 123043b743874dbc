import type { ClientContext } from "../context.ts";
import { createRetries } from "../live/failures.ts";
import { liveOf } from "../live/live.ts";
import { onWake } from "../socket/wake.ts";
import type { TableWrite } from "../tables/local-writes.ts";
import { WriteQueue } from "./queue.ts";
import { keepQueries } from "./seen.ts";
import type { OfflineStorage } from "./storage.ts";
import { joinTabs, type News } from "./tabs.ts";
import type { RefusedListener } from "./types.ts";

export { openIndexedDb } from "./indexed-db.ts";

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
