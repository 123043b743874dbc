import { authOf } from "../../access/principal.ts";
import type { ReadAccess } from "../../access/table-door.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Logger } from "../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Visiting } from "../../sockets/connection.ts";
import { SLICE_MS } from "../limits.ts";
import type { Asker, Asking, Feed, RealtimeConnection, TableChannel, TableSubscription } from "../model.ts";

/**
 * A rule that returns a filter is evaluated again with the changes of its table, before they are delivered: what it filters
 * by may have changed. [RT37]
 */
export interface Reviews {
  /** From now on the rule is evaluated again for this subscription. */
  add(connection: RealtimeConnection, subscription: TableSubscription): void;
  remove(subscription: TableSubscription): void;
  /** Resolves when every subscription has the rights of now; null: they have them already. */
  review(feed: Feed): Promise<void> | null;
}

export function createReviews(deps: {
  ask(principal: Visiting, channel: TableChannel, before: ReadAccess): MaybePromise<ReadAccess | null>;
  /** What the rule returns now; null: it denies. */
  onAnswer(connection: RealtimeConnection, subscription: TableSubscription, access: ReadAccess | null): void;
  clock: Clock;
  logger: Logger;
}): Reviews {
  const { clock } = deps;
  const asked = new WeakMap<TableSubscription, Asker>();

  const settle = (asker: Asker, access: ReadAccess | null): void => {
    asker.access = access ?? asker.access;
    for (const [subscription, connection] of [...asker.members]) {
      // Nearly always: nothing has changed.
      if (subscription.access === access) continue;
      try {
        deps.onAnswer(connection, subscription, access);
      } catch (cause) {
        deps.logger.error("A subscription could not adopt its rule's answer", { cause });
        connection.closeAsSlow();
      }
    }
  };
  const askAll = (feed: Feed): MaybePromise<void> => {
    const askers = feed.askers.values().toArray();
    const waiting: Promise<void>[] = [];
    /** false: the time of this turn is over, and there are more. */
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
    // Its last subscription may have ended since the round began.
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
      if (principal === null) throw new Error("an unauthenticated connection has no subscriptions");
      const { channel, feed, access } = subscription;
      const key = JSON.stringify(authOf(principal));
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
