import type { ClientContext } from "../context.ts";
import type { Broadcast, Presence } from "./types.ts";

/** Runs `work` with what is being loaded. The function ends what it began, now or as soon as it has begun. */
function whenLoaded<T>(loading: Promise<T>, work: (loaded: T) => () => void): () => void {
  let isOver = false;
  let end: () => void = () => {
    isOver = true;
  };
  loading.then(
    (loaded) => {
      if (!isOver) end = work(loaded);
    },
    // Without a network the code may not load; the caller hears of it by what it awaits.
    () => {},
  );
  return () => end();
}

/** What a page without presence loads of it. The code comes with the first use. */
export function createLazyPresence(context: ClientContext, name: string): Presence {
  let channel: Presence | null = null;
  let loading: Promise<Presence> | null = null;
  const load = () => {
    loading ??= import("./loaded.ts").then(({ createPresence }) => {
      channel = createPresence(context, name);
      return channel;
    });
    return loading;
  };
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
    subscribe: (listener) => whenLoaded(load(), (loaded) => loaded.subscribe(listener)),
    track: async (state) => (await load()).track(state),
    untrack: async () => (await load()).untrack(),
  };
}

const NOBODY: Presence["users"] = [];

/** The same for broadcasts. */
export function createLazyBroadcast(context: ClientContext, name: string): Broadcast {
  let channel: Broadcast | null = null;
  let loading: Promise<Broadcast> | null = null;
  const load = () => {
    loading ??= import("./loaded.ts").then(({ createBroadcast }) => {
      channel = createBroadcast(context, name);
      return channel;
    });
    return loading;
  };
  return {
    get status() {
      return channel?.status ?? "loading";
    },
    get error() {
      return channel?.error ?? null;
    },
    send: async (...given) => (await load()).send(...given),
    on: (event, listener) => whenLoaded(load(), (loaded) => loaded.on(event, listener)),
    subscribe: (listener) => whenLoaded(load(), (loaded) => loaded.subscribe(listener)),
  };
}
