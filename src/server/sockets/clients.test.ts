import { expect, test } from "bun:test";
import { testClock } from "../../../tests/support/clock.ts";
import { Clients, TokenBucket } from "./clients.ts";
import {
  ANONYMOUS_PER_CLIENT_MAX,
  CLIENT_CHARS_AT_ONCE,
  CLIENT_CHARS_PER_SECOND,
  CONNECTIONS_PER_CLIENT_MAX,
} from "./limits.ts";

test("[SK5] a client network has a bounded number of connections, and others are not affected", () => {
  const clients = new Clients(testClock());
  for (let count = 0; count < CONNECTIONS_PER_CLIENT_MAX; count++) clients.enter("1.2.3.4");
  expect(() => clients.enter("1.2.3.4")).toThrow("At most 20000 connections of one address may be open");
  clients.enter("5.6.7.8");
  clients.leave("1.2.3.4");
  clients.enter("1.2.3.4");
});

test("[SK220] a client network has a bounded number of connections without a user", () => {
  const clients = new Clients(testClock());
  for (let count = 0; count <= ANONYMOUS_PER_CLIENT_MAX; count++) clients.enter("1.2.3.4");
  clients.enter("5.6.7.8");
  for (let count = 0; count < ANONYMOUS_PER_CLIENT_MAX; count++) {
    expect(clients.enterAnonymously("1.2.3.4")).toBe(true);
  }
  expect(clients.enterAnonymously("1.2.3.4")).toBe(false);
  expect(clients.enterAnonymously("5.6.7.8")).toBe(true);
  clients.leaveAnonymously("1.2.3.4");
  expect(clients.enterAnonymously("1.2.3.4")).toBe(true);
});

test("[SK1] long messages of all connections of a network are metered together, short ones are not", () => {
  const clock = testClock();
  const clients = new Clients(clock);
  for (const name of ["1.2.3.4", "1.2.3.4", "5.6.7.8"]) clients.enter(name);
  expect(clients.takeChars("1.2.3.4", CLIENT_CHARS_AT_ONCE)).toBe(true);
  expect(clients.takeChars("1.2.3.4", 5_000)).toBe(false);
  expect(clients.takeChars("1.2.3.4", 1_000)).toBe(true);
  expect(clients.takeChars("5.6.7.8", 5_000)).toBe(true);
  clock.advance(500);
  expect(clients.takeChars("1.2.3.4", CLIENT_CHARS_PER_SECOND / 2)).toBe(true);
  expect(clients.takeChars("1.2.3.4", 5_000)).toBe(false);
});

test("[SK13] the message rate is a bucket that refills evenly", () => {
  const rate = new TokenBucket({ perSecond: 100, atOnce: 100 }, 0);
  const taken = (now: number) => Array.from({ length: 150 }, () => rate.take(1, now)).filter(Boolean).length;
  expect(taken(0)).toBe(100);
  expect(taken(100)).toBe(10);
  // A clock that is set back adds and removes no tokens.
  expect(taken(50)).toBe(0);
  expect(taken(1_050)).toBe(100);
});

test("[SK1] a message longer than what is left is not counted", () => {
  const chars = new TokenBucket({ perSecond: 10, atOnce: 100 }, 0);
  expect([chars.take(80, 0), chars.take(80, 0), chars.take(20, 0), chars.take(1, 0)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect(chars.take(20, 2_000)).toBe(true);
});
