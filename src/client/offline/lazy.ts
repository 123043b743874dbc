import type { ClientContext } from "../context.ts";
import { whenLoaded } from "../deferred.ts";
import { statusError } from "../transport/errors.ts";
import type { Offline } from "./types.ts";

/** Creates `client.offline`. Its code is loaded only for clients with that option. */
export function createOffline(context: ClientContext): Offline {
  const { offline } = context.options;
  if (offline === undefined) return { onRefused: () => () => {} };
  const direct = context.deliver;
  const loaded = import("./offline.ts").then(({ openOffline }) => openOffline(context, offline.name, direct));
  // Without the code, and in a browser that refuses IndexedDB, as in some private windows, writes go directly.
  const started = loaded.then(({ started }) => started).catch(() => direct);
  context.deliver = async (write) => {
    const { session, transport } = context;
    await session.ready;
    const userId = transport.userId();
    const deliver = await started;
    // A write of one user is neither kept nor sent as another one's.
    if (userId !== null && transport.userId() !== userId) throw statusError(401, "Another user");
    return deliver(write);
  };
  return { onRefused: (listener) => whenLoaded(loaded, ({ onRefused }) => onRefused(listener)) };
}
