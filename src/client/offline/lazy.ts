import type { ClientContext } from "../context.ts";
import { createListeners } from "../listeners.ts";
import type { TableWrite } from "../tables/writes.ts";
import { type PlatformError, statusError } from "../transport/errors.ts";
import type { Offline, RefusedListener } from "./types.ts";

/** Creates `client.offline`. Its code is loaded only for clients with that option. */
export function createOffline(context: ClientContext): Offline {
  const listeners = createListeners<Parameters<RefusedListener>>();
  const unheard: [TableWrite, PlatformError][] = [];
  const refused: RefusedListener = (write, error) => {
    // Writes lost at the end of a session are not reported to the next user's listeners.
    if (listeners.size === 0 && error.code !== "unauthenticated") unheard.push([write, error]);
    listeners.tell(write, error);
  };
  const { offline } = context.options;
  if (offline !== undefined) {
    context.transport.onAuth(() => {
      unheard.length = 0;
    });
    const direct = context.deliver;
    const start = async () => {
      const { startOffline, openIndexedDb } = await import("./offline.ts");
      return startOffline(context, { name: offline.name, storage: await openIndexedDb(offline.name), refused, direct });
    };
    // A browser may refuse IndexedDB, as in some private windows: writes then go directly.
    const started = start().catch(() => direct);
    context.deliver = async (write) => {
      const { session, transport } = context;
      await session.ready;
      const userId = transport.userId();
      const deliver = await started;
      // A write of one user is neither kept nor sent as another one's.
      if (userId !== null && transport.userId() !== userId) throw statusError(401, "Another user");
      return deliver(write);
    };
  }
  return {
    onRefused(listener) {
      for (const [write, error] of unheard.splice(0)) listener(write, error);
      return listeners.add(listener);
    },
  };
}
