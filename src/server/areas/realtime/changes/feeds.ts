import type { Clock } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { Change } from "../../../db/index.ts";
import { LOG_SWEEP_INTERVAL_MS } from "../limits.ts";
import type { Feed } from "../subscriptions/model.ts";
import type { FanOut } from "../topics/fan-out.ts";
import { type Audience, type AudienceChannel, createAudience } from "./audience.ts";
import type { Entry } from "./change-log.ts";
import { createDelivery, type Delivery } from "./delivery.ts";
import { createFeedRegistry } from "./feed-registry.ts";
import type { View } from "./visibility.ts";

/** Audiences with members whose rule is still being asked. */
export interface Held {
  readonly ready: Promise<void>;
  readonly audiences: ReadonlySet<Audience>;
}

export interface Feeds {
  /** Takes committed changes, in order, one inner array per request, and delivers them. `seqs`: the number of the first of each. */
  publishChanges(
    address: { namespace: string; instanceId: string | null },
    groups: readonly (readonly Change[])[],
    seqs: readonly number[],
  ): void;
  /**
   * The audience of this view, to be released when the subscription ends. From now on changes of the table are kept. Its
   * changes carry the name of a feed where `isNamed`.
   */
  acquire(
    channel: AudienceChannel & { address: TableAddress },
    about: { key: string; isNamed: boolean; view: View },
  ): { feed: Feed; audience: Audience };
  /** Drops the changes of a deleted instance, whose subscriptions have ended. */
  forget(namespace: string, instanceId: string): void;
  release(feed: Feed, channel: AudienceChannel, audience: Audience): void;
  stop(): void;
}

export function createFeeds(deps: {
  clock: Clock;
  logger: Logger;
  topics: FanOut;
  batchThreshold: number;
  /** All changes up to this number have been published. */
  lastSeq(): number;
  /** Learns of the changes on each channel with subscribers. */
  onSent(channel: string, changes: number): void;
  /** A new name, which says nothing about other feeds. */
  feedName(): string;
  /** Asks rules again where that is due; changes for these audiences wait for it. null: nothing is to be waited for. */
  review(address: TableAddress, about: { isChanged: boolean }): Held | null;
}): Feeds {
  const { clock } = deps;
  const registry = createFeedRegistry(clock, deps.lastSeq);
  const delivery = createDelivery({
    clock,
    isBehind: () => deps.topics.isBehind,
    onFailure(audience, cause) {
      deps.logger.error("Changes could not be delivered", { cause });
      dropAudience(audience);
    },
  });
  let groupCount = 0;

  const sweep = (): void => {
    const now = clock.now();
    registry.sweep(now);
    cancelSweep = clock.after(LOG_SWEEP_INTERVAL_MS, sweep);
  };
  let cancelSweep = clock.after(LOG_SWEEP_INTERVAL_MS, sweep);

  return {
    publishChanges({ namespace, instanceId }, groups, seqs) {
      const found = registry.tablesOf(namespace, instanceId);
      if (found === null) return;
      const at = clock.now();
      const timestamp = new Date(at).toISOString();
      const held = new Map<Feed, Held>();
      for (const feed of found.tables.values()) {
        if (!groups.some((changes) => changes.some(isOf(feed)))) continue;
        const asked = deps.review(feed.log.address, { isChanged: true });
        if (asked !== null) held.set(feed, asked);
      }
      for (const [index, changes] of groups.entries()) {
        const group = groupCount++;
        const firstSeq = seqs[index] ?? 0;
        const byFeed = new Map<Feed, Entry[]>();
        for (const [offset, change] of changes.entries()) {
          const feed = found.tables.get(change.table);
          if (feed === undefined) continue;
          const entry = found.log.append(feed.log, change, { seq: firstSeq + offset, group, at, timestamp });
          const entries = byFeed.get(feed);
          if (entries === undefined) byFeed.set(feed, [entry]);
          else entries.push(entry);
        }
        for (const [feed, entries] of byFeed)
          enqueue(feed, entries, { delivery, held: held.get(feed), onSent: deps.onSent });
      }
      delivery.run();
      found.log.trim(at);
    },

    acquire(channel, { key, isNamed, view }) {
      const feed = registry.use(channel.address);
      const audiences = audiencesOf(feed, channel);
      let audience = audiences.get(key);
      if (audience === undefined) {
        const { topics, batchThreshold } = deps;
        const name = isNamed ? deps.feedName() : null;
        const parts = { key, feed: name, channel, view, log: feed.log, topic: topics.topic(), batchThreshold };
        audience = createAudience({ ...parts, onReady: delivery.wake, onOverrun: dropAudience });
        audiences.set(key, audience);
      }
      audience.holders++;
      feed.holders++;
      return { feed, audience };
    },

    forget: (namespace, instanceId) => registry.forgetInstance(namespace, instanceId),

    release(feed, channel, audience) {
      if (--audience.holders === 0) {
        const audiences = audiencesOf(feed, channel);
        audiences.delete(audience.key);
        if (audiences.size === 0 && channel.docId !== null) feed.documents.delete(channel.docId);
      }
      if (--feed.holders === 0) registry.rest(feed);
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

const isOf =
  (feed: Feed) =>
  (change: Change): boolean =>
    change.table === feed.log.address.table;

function enqueue(
  feed: Feed,
  entries: readonly Entry[],
  {
    delivery,
    held,
    onSent,
  }: { delivery: Delivery; held: Held | undefined; onSent: (channel: string, changes: number) => void },
): void {
  const readyOf = (audience: Audience) => (held?.audiences.has(audience) === true ? held.ready : null);
  const add = (audiences: ReadonlyMap<string, Audience>, own: readonly Entry[]): void => {
    let channel: string | null = null;
    for (const audience of audiences.values()) {
      audience.enqueue(own, readyOf(audience));
      delivery.add(audience);
      channel = audience.channel;
    }
    // Audiences of the same records are of one channel.
    if (channel !== null) onSent(channel, own.length);
  };
  add(feed.audiences, entries);
  if (feed.documents.size === 0) return;
  const byDocument = Map.groupBy(entries, (entry) => entry.change.id);
  for (const [docId, own] of byDocument) {
    const audiences = feed.documents.get(docId);
    if (audiences !== undefined) add(audiences, own);
  }
}

/** Its subscribers have missed changes: they have to reconnect with `since`. */
function dropAudience(audience: Audience): void {
  for (const member of [...audience.topic.members]) member.closeAsSlow();
}
