import type { ClientContext } from "../context.ts";
import { deferred, once, whenLoaded } from "../deferred.ts";
import type { Broadcast, Presence } from "./types.ts";

type Loaded = typeof import("./loaded.ts");
type Channel = Presence & Broadcast;

const NOBODY: Presence["users"] = [];

/** What a page loads of channels, the same for both kinds; the types show what each has. The code comes with the first use. */
function createLazy(create: (loaded: Loaded) => Presence | Broadcast): Channel {
  let channel: Channel | null = null;
  const load = once(async () => {
    channel = create(await import("./loaded.ts")) as Channel;
    return channel;
  });
  return {
    get status() {
      return channel?.status ?? "loading";
    },
    get error() {
      return channel?.error ?? null;
    },
    get users() {
      return channel?.users ?? NOBODY;
    },
    ...deferred(load, "track", "untrack", "send"),
    on: (event, listener) => whenLoaded(load(), (loaded) => loaded.on(event, listener)),
    subscribe: (listener) => whenLoaded(load(), (loaded) => loaded.subscribe(listener)),
  };
}

export const createLazyPresence = (context: ClientContext, name: string): Presence =>
  createLazy(({ createPresence }) => createPresence(context, name));

export const createLazyBroadcast = (context: ClientContext, name: string): Broadcast =>
  createLazy(({ createBroadcast }) => createBroadcast(context, name));
