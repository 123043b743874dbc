import type { Audience } from "../changes/audience.ts";
import type { Feeds } from "../changes/feeds.ts";
import { type Feed, isOutdated, type RealtimeConnection, type TableSubscription } from "./model.ts";
import type { Replay } from "./replays.ts";

/** What decides which audience a subscription belongs to. */
export type Viewing = Pick<TableSubscription, "channel" | "access" | "viewKey" | "filters" | "id">;

/** The keys of the audiences of a connection's other subscriptions with ids. */
function feedKeys({ state }: RealtimeConnection, { id }: { id: string }): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const other of state.subscriptions.values()) {
    if (other.kind === "table" && other.id !== null && other.id !== id) keys.add(other.audience.key);
  }
  return keys;
}

/** The audience of a subscription, and how it changes to another one. */
export interface Audiences {
  /** To be released when the subscription ends. */
  acquire(connection: RealtimeConnection, viewing: Viewing): { feed: Feed; audience: Audience };
  /**
   * Continues from the same position in the audience of the subscription's present filters and rights. `announce` tells the
   * client. What it has not been sent of the earlier view is sent before that, or dropped.
   */
  change(
    connection: RealtimeConnection,
    subscription: TableSubscription,
    how: { announce(position: number): void; unsent: "sent" | "dropped" },
  ): void;
  /** Leaves the audience's topic, where others would wait with it, and goes on when it is no longer outdated. */
  pause(connection: RealtimeConnection, subscription: TableSubscription): void;
  /** Sends what was committed before the call. Resolves when that is done, or the subscription has ended. */
  flush(connection: RealtimeConnection, subscription: TableSubscription): Promise<void>;
}

export function createAudiences(feeds: Feeds, replay: Replay): Audiences {
  const acquire = (
    connection: RealtimeConnection,
    { channel, access, viewKey, id, filters: { filter } }: Viewing,
  ): { feed: Feed; audience: Audience } => {
    const view = { access, filter };
    const base = [channel.name, viewKey, filter?.key ?? null];
    if (id === null) return feeds.acquire(channel, { key: JSON.stringify(base), isNamed: false, view });
    // Equal subscriptions of one connection have feeds of their own: each is sent the changes from its own position on.
    const taken = feedKeys(connection, { id });
    const common = JSON.stringify(base);
    let copy = 0;
    let key = `${common}${copy}`;
    while (taken.has(key)) key = `${common}${++copy}`;
    return feeds.acquire(channel, { key, isNamed: true, view });
  };
  const change: Audiences["change"] = (connection, subscription, { announce, unsent }) => {
    const old = subscription.audience;
    const position = old.position;
    subscription.audience = acquire(connection, subscription).audience;
    if (unsent === "sent") leave(connection, subscription, old);
    else old.topic.leave(connection);
    announce(position);
    // A replay reads the audience anew with each step. Sending may have closed the connection as too slow.
    if (!subscription.isCatchingUp && !subscription.isEnded) replay(connection, subscription, position);
    feeds.release(subscription.feed, subscription.channel, old);
  };

  return {
    acquire,
    change,
    pause(connection, subscription) {
      if (subscription.isCatchingUp) return;
      const { audience } = subscription;
      const { position } = audience;
      leave(connection, subscription, audience);
      replay(connection, subscription, position);
    },
    async flush(connection, subscription) {
      const { head } = subscription.feed.log;
      while (!subscription.isEnded) {
        const wait = waitFor(connection, subscription, head);
        if (wait === null) break;
        await wait;
      }
      const { audience, isEnded } = subscription;
      if (isEnded || audience.topic.unsent(connection).length === 0) return;
      leave(connection, subscription, audience);
      audience.topic.join(connection);
    },
  };
}

/** What keeps a subscription from having delivered the changes up to `head` to its topic; null: nothing. */
function waitFor(connection: RealtimeConnection, subscription: TableSubscription, head: number): Promise<void> | null {
  if (isOutdated(connection, subscription)) {
    subscription.renewed ??= Promise.withResolvers();
    return subscription.renewed.promise;
  }
  if (subscription.isCatchingUp) {
    subscription.caughtUp ??= Promise.withResolvers();
    return subscription.caughtUp.promise;
  }
  return subscription.audience.position < head ? subscription.audience.advanced() : null;
}

/** Sends what the topic has not sent yet, unless it was shown to whoever the connection was of before. */
function leave(connection: RealtimeConnection, subscription: TableSubscription, { topic }: Audience): void {
  const waiting = topic.unsent(connection);
  topic.leave(connection);
  if (!isOutdated(connection, subscription)) for (const text of waiting) connection.sendText(text);
  else if (waiting.length > 0) subscription.hasMissedView = true;
}
