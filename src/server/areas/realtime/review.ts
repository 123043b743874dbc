import { chain, isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { isOutdated, type Naming, type RealtimeConnection } from "./subscriptions/model.ts";
import type { Presence } from "./presence/presence.ts";
import { Revoked } from "./revoked.ts";
import type { Subscribing } from "./subscriptions/subscribing.ts";
import type { TopicRights } from "./subscriptions/topic-rights.ts";

/**
 * Asks every right of a connection again that was given to whoever its user was before, one in each step: ends, and returns,
 * what is no longer allowed. Nothing is sent by a right that waits for that. [RT6]
 */
export type Review = (connection: RealtimeConnection) => Generator<void, MaybePromise<Revoked>>;

export function createReview(deps: {
  subscribing: Pick<Subscribing, "review">;
  topicRights: Pick<TopicRights, "ask" | "follow">;
  presence: Pick<Presence, "untrack">;
}): Review {
  const { subscribing, topicRights, presence } = deps;

  const reviewEntry = (connection: RealtimeConnection, name: string): MaybePromise<boolean> => {
    const channel = { kind: "presence" as const, name };
    return chain(topicRights.ask(connection, channel), (isAllowed) => {
      const { tracked } = connection.state;
      const isDenied = !isAllowed && tracked?.channels.has(name) === true;
      if (isDenied) presence.untrack(tracked, name, "denied");
      topicRights.follow(connection, channel);
      return !isDenied;
    });
  };
  return function* review(connection) {
    const { subscriptions, tracked } = connection.state;
    const revoked = new Revoked();
    const awaited: Promise<void>[] = [];
    const note = (denied: Naming, reviewed: MaybePromise<boolean>): void => {
      const noted = chain(reviewed, (isAllowed) => {
        if (!isAllowed) revoked.add(denied);
      });
      if (!isPromise(noted)) return;
      awaited.push(noted);
      // It may fail before all are awaited.
      noted.catch(() => {});
    };
    for (const [key, subscription] of [...subscriptions]) {
      // It may have ended, and the user may have changed again, since the step before.
      if (subscriptions.get(key) !== subscription || !isOutdated(connection, subscription)) continue;
      note(subscription, subscribing.review(connection, subscription));
      yield;
    }
    for (const name of [...(tracked?.channels ?? [])]) {
      note({ name, id: null }, reviewEntry(connection, name));
      yield;
    }
    return awaited.length === 0 ? revoked : Promise.all(awaited).then(() => revoked);
  };
}
