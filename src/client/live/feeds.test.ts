import { expect, test } from "bun:test";
import { testClock } from "../../../tests/support/clock.ts";
import type { ServerMessage, Socket } from "../socket/types.ts";
import { type FeedMember, Feeds, SUBSCRIBE_TIMEOUT_MS } from "./feeds.ts";

/** Connected socket whose server is the test. */
function socketOfTest() {
  const listeners = new Map<string, (message: ServerMessage) => void>();
  const sent: ServerMessage[] = [];
  let connected = () => {};
  const socket: Socket = {
    status: "connected",
    error: null,
    subscribe: () => () => {},
    hold: () => () => {},
    send: (message) => void sent.push(message),
    on(type, listener) {
      listeners.set(type, listener);
      return () => {};
    },
    onConnected(listener) {
      connected = listener;
      return () => {};
    },
  };
  const receive = (message: ServerMessage) => listeners.get(message.type)?.(message);
  return { socket, sent, receive, reconnect: () => connected() };
}

/** Creates a member that counts as another query with the same conditions each time. */
const memberOf = (heard: unknown[]): FeedMember => ({
  subscribed: (isWhole) => heard.push(isWhole ? "whole" : "list"),
  changed: (changes) => heard.push(changes.map(({ id }) => id)),
  lost: () => heard.push("lost"),
  refused: ({ code }) => heard.push(code),
});

function joined() {
  const { socket, sent, receive, reconnect } = socketOfTest();
  const clock = testClock();
  const feeds = new Feeds(socket, { ...clock, random: () => 0, uuid: () => "" }, () => "ann");
  const heard: unknown[] = [];
  const subscription = { key: "k", channel: "realtime:shared:notes", filters: {} };
  feeds.join(subscription, memberOf(heard));
  const joinAgain = () => {
    const later: unknown[] = [];
    feeds.join(subscription, memberOf(later));
    return later;
  };
  const answer = (feed: string, seq: number, more: object = {}) =>
    receive({ type: "subscribed", id: "1", feed, seq, ...more });
  const change = (feed: string, seq: number) =>
    receive({ type: "db_change", feed, seq, docId: `d${seq}`, changeType: "added", data: {} });
  return { sent, clock, heard, answer, change, reconnect, joinAgain, receive, feeds };
}

test("[TC51] a subscription goes on behind the last change after a reconnect, unless the server says otherwise", () => {
  const { sent, heard, answer, change, reconnect } = joined();
  answer("f1", 10);
  change("f1", 11);
  change("other", 12);
  reconnect();
  expect(sent.map(({ since }) => since)).toEqual([undefined, 11]);
  change("f1", 13);
  answer("f2", 11);
  change("f2", 12);
  answer("f3", 20, { resync: true });
  change("f2", 13);
  expect(heard).toEqual(["list", ["d11"], "whole", ["d12"], "list"]);
});

test("[TC51] when a late answer makes a subscription double, the list is loaded for both", () => {
  const { sent, clock, heard, answer, reconnect } = joined();
  answer("f1", 10);
  reconnect();
  clock.advance(SUBSCRIBE_TIMEOUT_MS);
  expect(sent.map(({ since }) => since)).toEqual([undefined, 10, undefined]);
  answer("f2", 10);
  answer("f3", 12);
  expect(heard).toEqual(["list", "list", "list"]);
});

test("[TC125] listeners of one turn share a flush, the next one waits for its answer, and a lost connection ends both", async () => {
  const { sent, heard, answer, change, reconnect, receive, feeds } = joined();
  const flush = (name: string) => feeds.flush({ key: "k", channel: "", filters: {} }, () => heard.push(name));
  const flushes = () => sent.filter(({ type }) => type === "flush");
  const done = (index: number, type = "done") => receive({ type, id: "1", requestId: flushes()[index]?.["requestId"] });
  flush("not in force");
  answer("f1", 10);
  flush("one");
  flush("two");
  await Promise.resolve();
  expect(flushes().length).toBe(1);
  flush("three");
  await Promise.resolve();
  expect(flushes().length).toBe(1);
  change("f1", 11);
  done(0);
  expect(flushes().length).toBe(2);
  done(0);
  done(1);
  expect(heard).toEqual(["list", ["d11"], "one", "two", "three"]);
  flush("lost");
  await Promise.resolve();
  reconnect();
  answer("f2", 11);
  done(2);
  expect(heard.slice(5)).toEqual(["whole"]);
  flush("unknown to an older server");
  await Promise.resolve();
  done(3, "error");
  expect(heard.slice(6)).toEqual(["list"]);
});

test("[TC47] a query that joins a subscription which was refused is told so, until it is asked for again", () => {
  const { answer, reconnect, joinAgain, receive, feeds } = joined();
  receive({ type: "error", id: "1", code: "INVALID_FILTER", message: "Unknown field" });
  expect(joinAgain()).toEqual(["invalid"]);
  feeds.forget();
  expect(joinAgain()).toEqual([]);
  receive({ type: "error", id: "1", code: "SUBSCRIBE_DENIED", message: "Access denied" });
  expect(joinAgain()).toEqual(["forbidden"]);
  reconnect();
  expect(joinAgain()).toEqual([]);
  answer("f1", 1);
  expect(joinAgain()).toEqual(["list"]);
});
