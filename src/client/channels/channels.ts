import type { ClientContext } from "../context.ts";
import { deferred, once, whenLoaded } from "../deferred.ts";
import { later } from "../later.ts";
import type { Broadcast, Presence } from "./types.ts";

type Code = typeof import("../small-features.ts");

const LOADING: Pick<Presence, "status" | "error" | "users"> = { status: "loading", error: null, users: [] };

/** Creates a channel whose code is loaded on first use. `own` has the methods specific to its kind. */
function createLazy<Channel extends Presence | Broadcast>(
  create: (code: Code) => Channel,
  own: (load: () => Promise<Channel>) => Partial<Channel>,
): Channel {
  let channel: Partial<Presence> = LOADING;
  const load = once(async () => {
    const loaded = create(await later());
    channel = loaded;
    return loaded;
  });
  const lazy = {
    get status() {
      return channel.status;
    },
    get error() {
      return channel.error;
    },
    /** Users of a presence channel; undefined for a broadcast, whose type lacks it. */
    get users() {
      return channel.users;
    },
    subscribe: (listener: () => void) => whenLoaded(load(), (loaded) => loaded.subscribe(listener)),
  };
  // Together they have all members of the channel.
  return Object.assign(lazy, own(load)) as unknown as Channel;
}

export const createLazyPresence = (context: ClientContext, name: string): Presence =>
  createLazy<Presence>(
    ({ createPresence }) => createPresence(context, name),
    (load) => deferred(load, "track", "untrack"),
  );

export const createLazyBroadcast = (context: ClientContext, name: string): Broadcast =>
  createLazy<Broadcast>(
    ({ createBroadcast }) => createBroadcast(context, name),
    (load) => ({
      on: (event, listener) => whenLoaded(load(), (loaded) => loaded.on(event, listener)),
      ...deferred(load, "send"),
    }),
  );
