import type { JsonObject } from "../kernel/json/json.ts";
import type { ConfigTypes } from "../server/config/typed/declared.ts";
import type { Analytics, Tracked } from "./analytics.ts";
import { createLazyBroadcast, createLazyPresence } from "./channels/channels.ts";
import type { Broadcast, Presence } from "./channels/types.ts";
import type { ClientContext } from "./context.ts";
import { deferred, once } from "./deferred.ts";
import { createFunctions, type FunctionsOf } from "./functions/functions.ts";
import { later } from "./later.ts";
import { listen } from "./listeners.ts";
import type { Push } from "./push.ts";
import type { Rooms } from "./rooms/types.ts";
import { createBucket } from "./storage/bucket.ts";
import type { Bucket } from "./storage/types.ts";

/** Features of a client besides tables and accounts. The code of each is loaded on first use. */
export interface Features<Types extends ConfigTypes> {
  /** Returns the files of a bucket. */
  storage(bucket: keyof Types["buckets"] & string): Bucket;
  /** Returns the rooms of one kind. */
  rooms<Name extends keyof Types["rooms"] & string>(name: Name): Rooms<Types["rooms"][Name]>;
  /** Returns the presence channel `presence:NAME`; the same object each time. */
  presence<State = JsonObject>(name: string): Presence<State>;
  /** Returns the broadcast channel `broadcast:NAME`; the same object each time. */
  broadcast(name: string): Broadcast;
  /** Routes of the config, called as with Eden Treaty. */
  readonly functions: FunctionsOf<Types["routes"]>;
  readonly push: Push;
  readonly analytics: Analytics;
}

/** Memoizes one object per name. */
function byName<T>(make: (name: string) => T): (name: string) => T {
  const made = new Map<string, T>();
  return (name) => {
    const present = made.get(name) ?? make(name);
    made.set(name, present);
    return present;
  };
}

/** Queues events with their time and user. The code that sends them is loaded with the first one. */
function createAnalytics(context: ClientContext): Analytics {
  const { runtime, transport } = context;
  const waiting: Tracked[] = [];
  const load = once(async () => (await later()).createSending(context, waiting));
  // If the page is left before that code is loaded, each event is sent on its own.
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
  const push = once(async () => (await later()).createPush(context));
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

/** Creates the rooms of one kind; joining loads the rest of the code. */
const createRooms = (context: ClientContext, name: string): Rooms => ({
  name,
  join: async (id) => (await later()).joinRoom(context, name, id),
});
