import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import { IDLE_FEEDS_MAX, LOG_AGE_MAX_MS } from "../limits.ts";
import type { Feed } from "../subscriptions/model.ts";
import { NamespaceLog, TableLog } from "./change-log.ts";

interface NamespaceFeeds {
  log: NamespaceLog;
  /** By instance id (empty in a static namespace), then by table. */
  instances: Map<string, Map<string, Feed>>;
}

/** The tables whose changes are kept: those with subscriptions, and those whose last one has ended a short time ago. */
export interface FeedRegistry {
  /** null: none of its tables is kept. */
  tablesOf(
    namespace: string,
    instanceId: string | null,
  ): { log: NamespaceLog; tables: ReadonlyMap<string, Feed> } | null;
  use(address: TableAddress): Feed;
  /** Its last subscription has ended. */
  rest(feed: Feed): void;
  /** Forgets the feeds of a deleted instance. */
  forgetInstance(namespace: string, instanceId: string): void;
  sweep(now: Millis): void;
}

export function createFeedRegistry(clock: Clock, lastSeq: () => number): FeedRegistry {
  const namespaces = new Map<string, NamespaceFeeds>();
  /** Feeds without subscriptions, the longest idle first. */
  const idle = new Map<Feed, Millis>();

  const forget = (feed: Feed): void => {
    const { namespace, instanceId, table } = feed.log.address;
    idle.delete(feed);
    const instances = namespaces.get(namespace)?.instances;
    const tables = instances?.get(instanceId ?? "");
    tables?.delete(table);
    if (tables?.size === 0) instances?.delete(instanceId ?? "");
  };

  return {
    tablesOf(namespace, instanceId) {
      const found = namespaces.get(namespace);
      const tables = found?.instances.get(instanceId ?? "");
      return found === undefined || tables === undefined ? null : { log: found.log, tables };
    },
    use(address) {
      const instance = address.instanceId ?? "";
      const namespace = namespaces.get(address.namespace) ?? { log: new NamespaceLog(), instances: new Map() };
      namespaces.set(address.namespace, namespace);
      const tables = namespace.instances.get(instance) ?? new Map<string, Feed>();
      namespace.instances.set(instance, tables);
      const known = tables.get(address.table);
      if (known !== undefined) {
        idle.delete(known);
        return known;
      }
      const log = new TableLog(address, lastSeq());
      const feed: Feed = {
        log,
        audiences: new Map(),
        documents: new Map(),
        holders: 0,
      };
      tables.set(address.table, feed);
      return feed;
    },
    rest(feed) {
      idle.set(feed, clock.now());
      for (const [longestIdle] of idle) {
        if (idle.size <= IDLE_FEEDS_MAX) break;
        forget(longestIdle);
      }
    },
    forgetInstance(namespace, instanceId) {
      const tables = namespaces.get(namespace)?.instances.get(instanceId);
      for (const feed of [...(tables?.values() ?? [])]) forget(feed);
    },
    sweep(now) {
      for (const { log } of namespaces.values()) log.trim(now);
      for (const [feed, since] of idle) if (since < now - LOG_AGE_MAX_MS) forget(feed);
    },
  };
}
