import type { TableAddress } from "../access/table-door.ts";
import type { Change } from "../db/index.ts";
import type { Clock, Millis } from "../kernel/clock.ts";
import { type Audience, type AudienceChannel, createAudience } from "./audience.ts";
import { type Entry, NamespaceLog, TableLog } from "./change-log.ts";
import { IDLE_FEEDS_MAX, LOG_AGE_MAX_MS, LOG_SWEEP_INTERVAL_MS, SLICE_MS } from "./limits.ts";
import type { Topics } from "./topic.ts";
import type { View } from "./visibility.ts";

/** One table that somebody listens to, or did within the last ten minutes. */
export interface Feed {
  readonly log: TableLog;
  /** By key; those of single records apart, so that a change asks only the ones it concerns. */
  readonly audiences: Map<string, Audience>;
  readonly documents: Map<string, Map<string, Audience>>;
  holders: number;
}

export interface Feeds {
  /** Takes what was committed, in order, one inner array per request, and delivers it. Decisions 10. */
  publishChanges(
    address: { namespace: string; instanceId: string | null },
    groups: readonly (readonly Change[])[],
  ): void;
  /** The audience of this view; `release` it when the subscription ends. From now on changes of the table are kept. */
  acquire(address: TableAddress, channel: AudienceChannel, key: string, view: View): { feed: Feed; audience: Audience };
  release(feed: Feed, channel: AudienceChannel, audience: Audience): void;
  stop(): void;
}

interface NamespaceFeeds {
  log: NamespaceLog;
  /** By instance id (empty in a static namespace), then by table. */
  instances: Map<string, Map<string, Feed>>;
}

export function createFeeds(deps: { clock: Clock; topics: Topics; batchThreshold: number }): Feeds {
  const { clock } = deps;
  const namespaces = new Map<string, NamespaceFeeds>();
  /** Feeds without subscriptions, the one idle longest first. */
  const idle = new Map<Feed, Millis>();
  const delivery = createDelivery(clock);
  let groupCount = 0;

  const feedOf = (address: TableAddress): Feed => {
    const instance = address.instanceId ?? "";
    const namespace = namespaces.get(address.namespace) ?? { log: new NamespaceLog(), instances: new Map() };
    namespaces.set(address.namespace, namespace);
    const tables = namespace.instances.get(instance) ?? new Map<string, Feed>();
    namespace.instances.set(instance, tables);
    const known = tables.get(address.table);
    if (known !== undefined) return known;
    const log = new TableLog(address, clock.now());
    const feed: Feed = { log, audiences: new Map(), documents: new Map(), holders: 0 };
    tables.set(address.table, feed);
    return feed;
  };
  const forget = (feed: Feed): void => {
    const { namespace, instanceId, table } = feed.log.address;
    idle.delete(feed);
    const instances = namespaces.get(namespace)?.instances;
    const tables = instances?.get(instanceId ?? "");
    tables?.delete(table);
    if (tables?.size === 0) instances?.delete(instanceId ?? "");
  };

  const sweep = (): void => {
    const now = clock.now();
    for (const { log } of namespaces.values()) log.trim(now);
    for (const [feed, since] of idle) if (since < now - LOG_AGE_MAX_MS) forget(feed);
    cancelSweep = clock.after(LOG_SWEEP_INTERVAL_MS, sweep);
  };
  let cancelSweep = clock.after(LOG_SWEEP_INTERVAL_MS, sweep);

  return {
    publishChanges({ namespace, instanceId }, groups) {
      const found = namespaces.get(namespace);
      const tables = found?.instances.get(instanceId ?? "");
      if (found === undefined || tables === undefined) return;
      const at = clock.now();
      const timestamp = new Date(at).toISOString();
      for (const changes of groups) {
        const group = groupCount++;
        const byFeed = new Map<Feed, Entry[]>();
        for (const change of changes) {
          const feed = tables.get(change.table);
          if (feed === undefined) continue;
          const entry = found.log.append(feed.log, change, { group, at, timestamp });
          const entries = byFeed.get(feed);
          if (entries === undefined) byFeed.set(feed, [entry]);
          else entries.push(entry);
        }
        for (const [feed, entries] of byFeed) enqueue(feed, entries, delivery);
      }
      delivery.run();
      found.log.trim(at);
    },

    acquire(address, channel, key, view) {
      const feed = feedOf(address);
      idle.delete(feed);
      const audiences = audiencesOf(feed, channel);
      let audience = audiences.get(key);
      if (audience === undefined) {
        const { topics, batchThreshold } = deps;
        const parts = { key, channel, view, log: feed.log, topic: topics(), batchThreshold };
        audience = createAudience({ ...parts, onReady: delivery.wake, onOverrun: dropAudience });
        audiences.set(key, audience);
      }
      audience.holders++;
      feed.holders++;
      return { feed, audience };
    },

    release(feed, channel, audience) {
      if (--audience.holders === 0) {
        const audiences = audiencesOf(feed, channel);
        audiences.delete(audience.key);
        if (audiences.size === 0 && channel.docId !== null) feed.documents.delete(channel.docId);
      }
      if (--feed.holders > 0) return;
      idle.set(feed, clock.now());
      for (const [longestIdle] of idle) {
        if (idle.size <= IDLE_FEEDS_MAX) break;
        forget(longestIdle);
      }
    },

    stop() {
      cancelSweep();
      delivery.stop();
    },
  };
}

function audiencesOf(feed: Feed, channel: AudienceChannel): Map<string, Audience> {
  if (channel.docId === null) return feed.audiences;
  const audiences = feed.documents.get(channel.docId) ?? new Map<string, Audience>();
  feed.documents.set(channel.docId, audiences);
  return audiences;
}

function enqueue(feed: Feed, entries: readonly Entry[], delivery: Delivery): void {
  for (const audience of feed.audiences.values()) {
    audience.enqueue(entries);
    delivery.add(audience);
  }
  if (feed.documents.size === 0) return;
  const byDocument = Map.groupBy(entries, (entry) => entry.change.id);
  for (const [docId, own] of byDocument) {
    for (const audience of feed.documents.get(docId)?.values() ?? []) {
      audience.enqueue(own);
      delivery.add(audience);
    }
  }
}

/** Those who listen through it have missed changes: they are to come back and say from where. */
function dropAudience(audience: Audience): void {
  for (const member of audience.topic.members) member.closeAsSlow();
}

interface Delivery {
  /** Has something for the next `run`. */
  add(audience: Audience): void;
  /** The same, and a run follows by itself. */
  wake(audience: Audience): void;
  run(): void;
  stop(): void;
}

/** Delivers in turns, one request's changes for each audience, and lets others at the event loop in between. */
function createDelivery(clock: Clock): Delivery {
  const waiting = new Set<Audience>();
  let cancelNext: (() => void) | null = null;
  let isStopped = false;

  const runSoon = (): void => {
    if (cancelNext !== null || isStopped) return;
    cancelNext = clock.after(0, () => {
      cancelNext = null;
      run();
    });
  };
  const run = (): void => {
    const until = clock.now() + SLICE_MS;
    for (const audience of waiting) {
      waiting.delete(audience);
      // Added again at the end: the others come first.
      if (audience.deliverNext()) waiting.add(audience);
      if (clock.now() > until) break;
    }
    if (waiting.size > 0) runSoon();
  };
  return {
    add(audience) {
      waiting.add(audience);
    },
    wake(audience) {
      waiting.add(audience);
      runSoon();
    },
    run,
    stop() {
      isStopped = true;
      cancelNext?.();
    },
  };
}
