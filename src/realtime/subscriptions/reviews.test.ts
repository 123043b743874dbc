import { expect, test } from "bun:test";
import { settle, testClock } from "../../../tests/support/clock.ts";
import type { ReadAccess } from "../../access/table-door.ts";
import { silentLogger } from "../../kernel/logger.ts";
import { Connection } from "../../sockets/connection.ts";
import { createFeedRegistry } from "../changes/feed-registry.ts";
import { connectionLimits } from "../limits.ts";
import type { Feed, RealtimeConnection, TableSubscription } from "../model.ts";
import { userIdOf } from "../revoked.ts";
import { createReviews, type Reviews } from "./reviews.ts";

const clock = testClock();
const address = { namespace: "shared", instanceId: null, table: "t" };
const access: ReadAccess = { kind: "filter", filter: { key: "k", matches: () => true } };
const noEvents = { opened() {}, received() {}, closed() {}, failed() {} };
const NO_SOCKETS = { waitingBytes: () => 0, drop() {} };

function watch(reviews: Reviews, feed: Feed, userId: string): void {
  const connection: RealtimeConnection = new Connection({
    id: userId,
    client: "",
    state: { defaultChannel: null, subscriptions: new Map(), tracked: null },
    limits: connectionLimits({}),
    releasePlace: () => {},
    events: noEvents,
    sockets: NO_SOCKETS,
    now: 0,
  });
  const auth = { id: userId, email: null, emailVerified: false, role: "user", isAnonymous: false, custom: {} };
  connection.principal = { kind: "user", sessionId: userId, auth };
  const channel = { kind: "table", name: "realtime:shared:t", address, docId: null };
  // The part of a subscription that is looked at.
  reviews.add(connection, { channel, feed, access } as unknown as TableSubscription);
}

test("[RT37] rules are evaluated in turns, once a round for each user, and later changes wait for the next round", async () => {
  const asked: string[] = [];
  const feed = createFeedRegistry(clock).use(address);
  const reviews = createReviews({
    ask(principal, _channel, before) {
      asked.push(userIdOf(principal) ?? "");
      clock.advance(3);
      return before;
    },
    onAnswer() {},
    clock,
    logger: silentLogger,
  });
  for (let index = 0; index < 10; index++) watch(reviews, feed, `user${index}`);
  const first = reviews.review(feed);
  expect(asked.length).toBeLessThan(10);
  const [second, third] = [reviews.review(feed), reviews.review(feed)];
  expect(second).toBe(third);
  let isSecondDone = false;
  void second?.then(() => (isSecondDone = true));
  for (let turn = 0; turn < 20; turn++) {
    await settle();
    clock.advance(0);
    if (asked.length === 10) await first;
  }
  expect(isSecondDone).toBe(true);
  expect(new Set(asked.slice(0, 10)).size).toBe(10);
  expect(asked.length).toBe(20);
  expect(feed.asking).toBeNull();
});
