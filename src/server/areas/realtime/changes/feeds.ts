import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { TURN_MS } from "../../../../kernel/limits.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { MINUTE_MS } from "../../../../kernel/time/duration.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { Change, TableStart } from "../../../db/index.ts";
import { LOG_AGE_MAX_MS } from "../limits.ts";
import type { FanOut } from "../topics/topic.ts";
import { Audience, type AudienceChannel } from "./audience.ts";
import { type Entry, NamespaceLog, TableLog } from "./change-log.ts";
import type { Shown } from "./visibility.ts";

const LOG_SWEEP_INTERVAL_MS = MINUTE_MS;
/** Tables without subscriptions whose log is kept. */
const IDLE_FEEDS_MAX = 10_000;

/** A table with subscriptions, or whose last one ended less than ten minutes ago. */
export interface Feed {
  readonly log: TableLog;
  /**
   * Audiences by key. Those of single records are kept apart, so that a change is evaluated only for the audiences that it
   * concerns.
   */
  readonly audiences: Map<string, Audience>;
  readonly documents: Map<string, Map<string, Audience>>;
  holders: number;
}

/** Audiences with members whose rule is still being evaluated. */
export interface Held {
  readonly ready: Promise<void>;
  readonly audiences: ReadonlySet<Audience>;
}

interface NamespaceFeeds {
  readonly log: NamespaceLog;
  /** Feeds by instance id (empty in a static namespace), then by table. */
  readonly instances: Map<string, Map<string, Feed>>;
}

interface FeedsDeps {
  clock: Clock;
  logger: Logger;
  topics: FanOut;
  batchThreshold: number;
  /** Returns where the log of a table begins: all changes up to that place have been published, and none with a higher one. */
  startOf(address: TableAddress, about?: { isKept?: boolean }): TableStart;
  /** Called with the number of changes sent on a channel with subscribers. */
  onSent(channel: string, changes: number): void;
  /** Returns a name that reveals nothing about other feeds. */
  feedName(): string;
}

/** Keeps the changes of tables that have subscriptions, and delivers them to audiences. */
export class Feeds {
  readonly #deps: FeedsDeps;
  readonly #delivery: Delivery;
  readonly #namespaces = new Map<string, NamespaceFeeds>();
  /** Feeds without subscriptions, longest idle first. */
  readonly #idle = new Map<Feed, Millis>();
  /** Feeds that were begun for clients that may come back, of which nobody has been told yet. */
  readonly #resumed = new Set<Feed>();
  #groupCount = 0;
  #cancelSweep: () => void;

  constructor(deps: FeedsDeps) {
    this.#deps = deps;
    this.#delivery = new Delivery({
      clock: deps.clock,
      isBehind: () => deps.topics.isBehind,
      onFailure(audience, cause) {
        deps.logger.error("realtime: delivery of changes failed", { cause });
        audience.drop();
      },
    });
    this.#cancelSweep = this.#sweepLater();
  }

  /**
   * Takes committed changes, in order, one inner array per request, and delivers them. `seqs`: the number of the first change of
   * each. `review` re-evaluates the rules of a changed table when that is due, and returns the audiences whose changes wait for
   * it; null when none do.
   */
  publishChanges(
    { namespace, instanceId }: { namespace: string; instanceId: string | null },
    groups: readonly (readonly Change[])[],
    { seqs, review }: { seqs: readonly number[]; review(table: TableAddress): Held | null },
  ): void {
    const found = this.#namespaces.get(namespace);
    const tables = found?.instances.get(instanceId ?? "");
    if (found === undefined || tables === undefined) return;
    const at = this.#deps.clock.now();
    const timestamp = new Date(at).toISOString();
    const held = new Map<Feed, Held>();
    for (const feed of tables.values()) {
      const { address } = feed.log;
      if (!groups.some((changes) => changes.some(({ table }) => table === address.table))) continue;
      const asked = review(address);
      if (asked !== null) held.set(feed, asked);
    }
    for (const [index, changes] of groups.entries()) {
      const firstSeq = seqs[index] ?? 0;
      const group = this.#groupCount++;
      const byFeed = new Map<Feed, Entry[]>();
      for (const [offset, change] of changes.entries()) {
        const feed = tables.get(change.table);
        if (feed === undefined) continue;
        const entry = found.log.append(feed.log, change, { seq: firstSeq + offset, group, at, timestamp });
        const entries = byFeed.get(feed);
        if (entries === undefined) byFeed.set(feed, [entry]);
        else entries.push(entry);
      }
      for (const [feed, entries] of byFeed) this.#enqueue(feed, entries, held.get(feed));
    }
    this.#delivery.run();
    found.log.trim(at);
  }

  /**
   * Returns the audience of this view, to be released when the subscription ends. Changes of the table are kept from then on. The
   * audience's changes carry a feed name when `isNamed`.
   */
  acquire(
    channel: AudienceChannel & { address: TableAddress },
    { key, isNamed, view }: { key: string; isNamed: boolean; view: Shown },
  ): { feed: Feed; audience: Audience } {
    const { topics, batchThreshold, feedName } = this.#deps;
    const feed = this.#feedOf(channel.address);
    if (this.#resumed.delete(feed)) this.#deps.startOf(channel.address);
    const audiences = audiencesOf(feed, channel);
    let audience = audiences.get(key);
    if (audience === undefined) {
      const parts = { key, channel, view, log: feed.log, topic: topics.topic(), batchThreshold };
      audience = new Audience({ ...parts, feed: isNamed ? feedName() : null, onReady: this.#delivery.wake });
      audiences.set(key, audience);
    }
    audience.holders++;
    feed.holders++;
    return { feed, audience };
  }

  /** Keeps the changes of a table from now on, for clients that come back. */
  resume(address: TableAddress): void {
    const feed = this.#feedOf(address, { isKept: true });
    this.#idle.set(feed, this.#deps.clock.now());
    this.#resumed.add(feed);
  }

  release(feed: Feed, channel: AudienceChannel, audience: Audience): void {
    if (--audience.holders === 0) {
      const audiences = audiencesOf(feed, channel);
      audiences.delete(audience.key);
      if (audiences.size === 0 && channel.docId !== null) feed.documents.delete(channel.docId);
    }
    if (--feed.holders > 0) return;
    this.#idle.set(feed, this.#deps.clock.now());
    for (const [longestIdle] of this.#idle) {
      if (this.#idle.size <= IDLE_FEEDS_MAX) break;
      this.#forget(longestIdle);
    }
  }

  /** Drops the changes of a deleted instance, whose subscriptions have ended. */
  forgetInstance(namespace: string, instanceId: string): void {
    const tables = this.#namespaces.get(namespace)?.instances.get(instanceId);
    for (const feed of [...(tables?.values() ?? [])]) this.#forget(feed);
  }

  /** Begins the logs of an instance anew, whose content was replaced. */
  restartInstance(namespace: string, instanceId: string): void {
    for (const feed of this.#namespaces.get(namespace)?.instances.get(instanceId)?.values() ?? []) {
      feed.log.restart(this.#deps.startOf(feed.log.address).place);
      for (const audience of [...feed.audiences.values(), ...feed.documents.values().flatMap((own) => own.values())]) {
        audience.restart();
      }
    }
  }

  stop(): void {
    this.#cancelSweep();
    this.#delivery.stop();
  }

  #feedOf(address: TableAddress, about?: { isKept?: boolean }): Feed {
    const instance = address.instanceId ?? "";
    const namespace = this.#namespaces.get(address.namespace) ?? { log: new NamespaceLog(), instances: new Map() };
    this.#namespaces.set(address.namespace, namespace);
    const tables = namespace.instances.get(instance) ?? new Map<string, Feed>();
    namespace.instances.set(instance, tables);
    const known = tables.get(address.table);
    if (known !== undefined) {
      this.#idle.delete(known);
      return known;
    }
    const log = new TableLog(address, this.#deps.startOf(address, about));
    const feed: Feed = { log, audiences: new Map(), documents: new Map(), holders: 0 };
    tables.set(address.table, feed);
    return feed;
  }

  #forget(feed: Feed): void {
    const { namespace, instanceId, table } = feed.log.address;
    this.#idle.delete(feed);
    this.#resumed.delete(feed);
    const instances = this.#namespaces.get(namespace)?.instances;
    const tables = instances?.get(instanceId ?? "");
    tables?.delete(table);
    if (tables?.size === 0) instances?.delete(instanceId ?? "");
  }

  #sweepLater(): () => void {
    return this.#deps.clock.after(LOG_SWEEP_INTERVAL_MS, () => {
      const now = this.#deps.clock.now();
      for (const { log } of this.#namespaces.values()) log.trim(now);
      for (const [feed, since] of this.#idle) if (since < now - LOG_AGE_MAX_MS) this.#forget(feed);
      this.#cancelSweep = this.#sweepLater();
    });
  }

  #enqueue(feed: Feed, entries: readonly Entry[], held: Held | undefined): void {
    const add = (audiences: ReadonlyMap<string, Audience>, own: readonly Entry[]): void => {
      let channel: string | null = null;
      for (const audience of audiences.values()) {
        audience.enqueue(own, held?.audiences.has(audience) === true ? held.ready : null);
        this.#delivery.add(audience);
        channel = audience.channel;
      }
      // Audiences of the same records share a channel.
      if (channel !== null) this.#deps.onSent(channel, own.length);
    };
    add(feed.audiences, entries);
    if (feed.documents.size === 0) return;
    for (const [docId, own] of Map.groupBy(entries, (entry) => entry.change.id)) {
      const audiences = feed.documents.get(docId);
      if (audiences !== undefined) add(audiences, own);
    }
  }
}

function audiencesOf(feed: Feed, channel: AudienceChannel): Map<string, Audience> {
  if (channel.docId === null) return feed.audiences;
  const audiences = feed.documents.get(channel.docId) ?? new Map<string, Audience>();
  feed.documents.set(channel.docId, audiences);
  return audiences;
}

interface DeliveryDeps {
  clock: Clock;
  /** Whether delivered changes are still to be sent: further ones stay in the logs of their tables meanwhile. */
  isBehind: () => boolean;
  onFailure: (audience: Audience, cause: unknown) => void;
}

/** Delivers in turns of the event loop: the changes of one request to each audience, round robin. */
class Delivery {
  readonly #deps: DeliveryDeps;
  readonly #waiting = new Set<Audience>();
  #cancelNext: (() => void) | null = null;
  #isStopped = false;

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
  }

  /** Queues an audience that has changes for the next `run`. */
  add(audience: Audience): void {
    this.#waiting.add(audience);
  }

  /** Queues an audience that has changes, and schedules a run. */
  readonly wake = (audience: Audience): void => {
    this.#waiting.add(audience);
    this.#runSoon();
  };

  run(): void {
    // An interrupted run continues in its own turn, so that many commits in a row take no more of the event loop.
    if (this.#cancelNext === null) this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelNext?.();
  }

  #run(): void {
    const { clock, isBehind, onFailure } = this.#deps;
    const until = clock.now() + TURN_MS;
    const isOver = (): boolean => clock.now() > until;
    for (const audience of this.#waiting) {
      if (isBehind()) break;
      this.#waiting.delete(audience);
      // Queued again behind the others. A failure of one audience must not affect the others, or the writer.
      try {
        if (audience.deliverNext(isOver)) this.#waiting.add(audience);
      } catch (cause) {
        onFailure(audience, cause);
      }
      if (isOver()) break;
    }
    if (this.#waiting.size > 0) this.#runSoon();
  }

  #runSoon(): void {
    if (this.#cancelNext !== null || this.#isStopped) return;
    this.#cancelNext = this.#deps.clock.after(0, () => {
      this.#cancelNext = null;
      this.#run();
    });
  }
}
