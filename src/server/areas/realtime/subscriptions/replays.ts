import { type Clock, type Millis, pause } from "../../../../kernel/clock.ts";
import { isPromise } from "../../../../kernel/maybe-promise.ts";
import { ChangeTypes } from "../changes/visibility.ts";
import { REPLAY_WAITING_MAX_BYTES, SLICE_MS } from "../limits.ts";
import { isOutdated, type RealtimeConnection, type TableSubscription } from "./model.ts";

/** Starts a subscription behind a change of the log. */
export type Replay = (connection: RealtimeConnection, subscription: TableSubscription, position: number) => void;

/**
 * Sends what follows `position`, at the pace of the client, and joins the audience where the two meet. Every subscription
 * starts here, also one that starts with the next change.
 */
export function createReplay(
  clock: Clock,
  /** Resolves when the subscription has the rights of now; null: it has them. */
  settle: (subscription: TableSubscription) => Promise<void> | null,
): Replay {
  /** When the time of all replays in this turn of the event loop is over; null: none has begun in it. */
  let until: Millis | null = null;
  const isTurnOver = (): boolean => {
    if (until === null) {
      until = clock.now() + SLICE_MS;
      clock.after(0, () => {
        until = null;
      });
    }
    return clock.now() >= until;
  };
  const turnWithTime = async (): Promise<void> => {
    do await pause(clock, 0);
    while (isTurnOver());
  };

  const catchUp = async (
    connection: RealtimeConnection,
    subscription: TableSubscription,
    position: number,
  ): Promise<void> => {
    const { log } = subscription.feed;
    const { docId } = subscription.channel;
    subscription.isCatchingUp = true;
    let at = position;
    const isHeld = (): boolean => isOutdated(connection, subscription);
    while (!subscription.isEnded && (isHeld() || at !== subscription.audience.position)) {
      if (isHeld()) {
        subscription.renewed ??= Promise.withResolvers();
        await subscription.renewed.promise;
        continue;
      }
      const asked = settle(subscription);
      if (asked !== null) {
        await asked;
        continue;
      }
      // It has been sent what its audience has not delivered yet: joined now, it would get that twice.
      if (at > subscription.audience.position) {
        await subscription.audience.advanced();
        continue;
      }
      if (isTurnOver()) {
        await turnWithTime();
        continue;
      }
      // The bounded log has dropped what it needs. Only a new subscription can tell the client so.
      if (!log.reaches(at)) return connection.closeAsSlow();
      const group = log.groupAfter(at);
      const entries = docId === null ? group : group.filter((entry) => entry.change.id === docId);
      const { audience } = subscription;
      const types = new ChangeTypes(audience.view, entries);
      while (!types.advance(isTurnOver)) await turnWithTime();
      const { all } = types;
      const settled = isPromise(all) ? await all : all;
      if (subscription.isEnded) return;
      // Other rights or filters have come meanwhile.
      if (subscription.audience !== audience || isHeld()) continue;
      for (const message of audience.encode(entries, settled)) connection.sendText(message);
      at = group.at(-1)?.seq ?? subscription.audience.position;
      if (connection.isClosed) return;
      if (connection.waitingBytes > REPLAY_WAITING_MAX_BYTES) await connection.drained();
    }
    if (subscription.isEnded) return;
    subscription.isCatchingUp = false;
    subscription.audience.topic.join(connection);
    settleCaughtUp(subscription);
  };
  return (connection, subscription, position) => {
    catchUp(connection, subscription, position).catch(() => connection.closeAsSlow());
  };
}

export function settleCaughtUp(subscription: TableSubscription): void {
  subscription.caughtUp?.resolve();
  subscription.caughtUp = null;
}
