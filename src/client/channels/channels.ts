import type { ClientContext } from "../context.ts";
import { deferred, once, whenLoaded } from "../deferred.ts";
import type { Broadcast, Presence } from "./types.ts";

interface Lazy<Channel> {
  load(): Promise<Channel>;
  /** null while it is not loaded. */
  loaded(): Channel | null;
}

const NOBODY: Presence["users"] = [];

/** What a page without channels loads of one. The code comes with the first use. `own` has what only its kind has. */
function createLazy<Channel extends Presence | Broadcast>(
  create: (code: typeof import("../socket-features.ts")) => Channel,
  own: (lazy: Lazy<Channel>) => Omit<Channel, "status" | "error" | "subscribe">,
): Channel {
  let channel: Channel | null = null;
  const load = once(async () => {
    channel = create(await import("../socket-features.ts"));
    return channel;
  });
  const common: Pick<Channel, "status" | "error" | "subscribe"> = {
    get status() {
      return channel?.status ?? "loading";
    },
    get error() {
      return channel?.error ?? null;
    },
    subscribe: (listener) => whenLoaded(load(), (loaded) => loaded.subscribe(listener)),
  };
  // Both together are all members of a channel; getters stay getters.
  const members = Object.getOwnPropertyDescriptors(common);
  return Object.defineProperties(own({ load, loaded: () => channel }), members) as Channel;
}

export const createLazyPresence = (context: ClientContext, name: string): Presence =>
  createLazy<Presence>(
    ({ createPresence }) => createPresence(context, name),
    ({ load, loaded }) => ({
      get users() {
        return loaded()?.users ?? NOBODY;
      },
      ...deferred(load, "track", "untrack"),
    }),
  );

export const createLazyBroadcast = (context: ClientContext, name: string): Broadcast =>
  createLazy<Broadcast>(
    ({ createBroadcast }) => createBroadcast(context, name),
    ({ load }) => ({
      on: (event, listener) => whenLoaded(load(), (loaded) => loaded.on(event, listener)),
      ...deferred(load, "send"),
    }),
  );
