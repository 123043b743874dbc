import type { ReadAccess } from "../../access/table-door.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Logger } from "../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { SignedIn } from "../../sockets/connection.ts";
import type { Feed } from "../changes/feed-registry.ts";
import type { RealtimeConnection } from "../connection.ts";
import { SLICE_MS } from "../limits.ts";
import type { TableChannel, TableSubscription } from "./table-subscriptions.ts";

/** Everybody who is the same to a table's rule: it is asked once for all of their subscriptions. */
export interface Asker {
  readonly key: string;
  readonly principal: SignedIn;
  readonly channel: TableChannel;
  /** The last answer: a filter that comes again is not compiled again. */
  access: ReadAccess;
  readonly members: Map<TableSubscription, RealtimeConnection>;
}

/** One round at a time: what is committed meanwhile waits for one that begins afterwards. */
export interface Asking {
  readonly running: Promise<void>;
  next: Promise<void> | null;
}

/**
 * A rule that gives a filter is asked again with the changes of its table, before they are delivered: what it filters by
 * may have changed meanwhile. Decisions 10.
 */
export interface Reviews {
  /** From now on this one's rule is asked again. */
  add(connection: RealtimeConnection, subscription: TableSubscription): void;
  remove(subscription: TableSubscription): void;
  /** Resolves when everybody listens through what the rule says now; null: so it is already. */
  review(feed: Feed): Promise<void> | null;
}

export function createReviews(deps: {
  ask(principal: SignedIn, channel: TableChannel, before: ReadAccess): MaybePromise<ReadAccess | null>;
  /** What the rule says now; null: nothing any more. */
  onAnswer(connection: RealtimeConnection, subscription: TableSubscription, access: ReadAccess | null): void;
  clock: Clock;
  logger: Logger;
}): Reviews {
  const { clock } = deps;
  const asked = new WeakMap<TableSubscription, Asker>();

  const settle = (asker: Asker, access: ReadAccess | null): void => {
    asker.access = access ?? asker.access;
    for (const [subscription, connection] of [...asker.members]) {
      // Nearly always: what was asked about is as it was.
      if (subscription.access === access) continue;
      try {
        deps.onAnswer(connection, subscription, access);
      } catch (cause) {
        deps.logger.error("a subscription cannot follow its rule", { cause });
        connection.closeAsSlow();
      }
    }
  };
  const askAll = (feed: Feed): MaybePromise<void> => {
    const askers = feed.askers.values().toArray();
    const waiting: Promise<void>[] = [];
    /** false: others are to have a turn, and there is more to ask. */
    const askSome = (): boolean => {
      const until = clock.now() + SLICE_MS;
      for (let asker = askers.pop(); asker !== undefined; asker = askers.pop()) {
        ask(asker, waiting);
        if (clock.now() > until && askers.length > 0) return false;
      }
      return true;
    };
    if (!askSome()) return askRest(askSome, waiting);
    return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => {});
  };
  const askRest = async (askSome: () => boolean, waiting: readonly Promise<void>[]): Promise<void> => {
    do await new Promise<void>((resolve) => clock.after(0, resolve));
    while (!askSome());
    await Promise.all(waiting);
  };
  const ask = (asker: Asker, waiting: Promise<void>[]): void => {
    // It may have gone since the round began.
    if (asker.members.size === 0) return;
    const access = deps.ask(asker.principal, asker.channel, asker.access);
    if (isPromise(access)) waiting.push(access.then((settled) => settle(asker, settled)));
    else settle(asker, access);
  };
  const begin = (feed: Feed): Promise<void> | null => {
    feed.asking = null;
    const running = askAll(feed);
    if (!isPromise(running)) return null;
    const asking: Asking = { running, next: null };
    feed.asking = asking;
    return running.then(() => {
      if (asking.next === null) feed.asking = null;
    });
  };

  return {
    add(connection, subscription) {
      const { principal } = connection;
      if (principal === null) throw new Error("only who has authenticated subscribes");
      const { channel, feed, access } = subscription;
      const key = JSON.stringify(principal.auth);
      const asker = feed.askers.get(key) ?? { key, principal, channel, access, members: new Map() };
      feed.askers.set(key, asker);
      asker.members.set(subscription, connection);
      asked.set(subscription, asker);
    },
    remove(subscription) {
      const asker = asked.get(subscription);
      if (asker === undefined) return;
      asked.delete(subscription);
      asker.members.delete(subscription);
      if (asker.members.size === 0) subscription.feed.askers.delete(asker.key);
    },
    review(feed) {
      const { asking } = feed;
      if (asking === null) return begin(feed);
      asking.next ??= asking.running.then(() => begin(feed) ?? undefined);
      return asking.next;
    },
  };
}
