import type { JsonObject } from "../kernel/json/json.ts";
import type { ConfigTypes } from "../server/config/typed/declared.ts";
import type { Analytics, Tracked } from "./analytics.ts";
import { createLazyBroadcast, createLazyPresence } from "./channels/channels.ts";
import type { Broadcast, Presence } from "./channels/types.ts";
import type { ClientContext } from "./context.ts";
import { deferred, once } from "./deferred.ts";
import { createFunctions, type FunctionsOf } from "./functions/functions.ts";
import { listen } from "./listeners.ts";
import type { Push } from "./push.ts";
import type { Rooms } from "./rooms/types.ts";
import { createBucket } from "./storage/bucket.ts";
import type { Bucket } from "./storage/types.ts";

/** What a client has beside tables and accounts. The code of each is loaded when it is used. */
export interface Features<Types extends ConfigTypes> {
  /** The files of a bucket. */
  storage(bucket: keyof Types["buckets"] & string): Bucket;
  /** The rooms of one kind. */
  rooms<Name extends keyof Types["rooms"] & string>(name: Name): Rooms<Types["rooms"][Name]>;
  /** Who is on the channel `presence:NAME`. The same object each time. */
  presence<State = JsonObject>(name: string): Presence<State>;
  /** Messages on the channel `broadcast:NAME`. The same object each time. */
  broadcast(name: string): Broadcast;
  /** The config's `routes`, by Eden Treaty. */
  readonly functions: FunctionsOf<Types["routes"]>;
  readonly push: Push;
  readonly analytics: Analytics;
}

/** One object for each name. */
function byName<T>(make: (name: string) => T): (name: string) => T {
  const made = new Map<string, T>();
  return (name) => {
    const present = made.get(name) ?? make(name);
    made.set(name, present);
    return present;
  };
}

/** Collects events with their time and user. The code that sends them together is loaded with the first one. */
function createAnalytics(context: ClientContext): Analytics {
  const { runtime, transport } = context;
  const waiting: Tracked[] = [];
  const load = once(async () => (await import("./small-features.ts")).createSending(context, waiting));
  // A page that is left before the code has come sends each by itself.
  const stop = listen(globalThis, "pagehide", () => {
    for (const { userId, name, properties } of waiting.splice(0)) {
      const options = {
        body: { events: [{ name, properties }] },
        auth: userId === transport.userId(),
        keepalive: true,
      };
      transport.request("POST", "/api/analytics/track", options).catch(() => {});
    }
  });
  context.onClose(stop);
  return {
    track(name, properties) {
      waiting.push({ name, properties, at: runtime.now(), userId: transport.userId() });
      load()
        .then(({ later }) => later())
        .catch(() => {});
    },
    ...deferred(load, "flush"),
  };
}

export function createFeatures<Types extends ConfigTypes>(context: ClientContext): Features<Types> {
  const push = once(async () => (await import("./small-features.ts")).createPush(context));
  const features = {
    storage: byName((name) => createBucket(context, name)),
    rooms: byName((name) => createRooms(context, name)),
    presence: byName((name) => createLazyPresence(context, name)),
    broadcast: byName((name) => createLazyBroadcast(context, name)),
    functions: createFunctions(context),
    push: deferred(push, "register", "unregister", "subscribe", "unsubscribe"),
    analytics: createAnalytics(context),
  };
  // Only the types differ: names, payloads and routes are the config's.
  return features as unknown as Features<Types>;
}

/** What a page without rooms loads of them. */
const createRooms = (context: ClientContext, name: string): Rooms => ({
  name,
  join: async (id) => (await import("./socket-features.ts")).joinRoom(context, name, id),
});
