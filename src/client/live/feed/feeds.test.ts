import { expect, test } from "bun:test";
import { testClock } from "../../../../tests/support/clock.ts";
import type { ServerMessage, Socket } from "../../socket/types.ts";
import { SUBSCRIBE_TIMEOUT_MS } from "../limits.ts";
import { Feeds } from "./feeds.ts";

/** A connected socket whose server is the test. */
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

function joined() {
  const { socket, sent, receive, reconnect } = socketOfTest();
  const clock = testClock();
  const feeds = new Feeds(socket, { ...clock, random: () => 0, uuid: () => "" });
  const heard: unknown[] = [];
  const subscription = { key: "k", channel: "realtime:shared:notes", filters: {} };
  feeds.join(subscription, {
    subscribed: (isWhole) => heard.push(isWhole ? "whole" : "list"),
    changed: (changes) => heard.push(changes.map(({ id }) => id)),
    lost: () => heard.push("lost"),
    refused: ({ code }) => heard.push(code),
  });
  const answer = (feed: string, seq: number, more: object = {}) =>
    receive({ type: "subscribed", id: "1", feed, seq, ...more });
  const change = (feed: string, seq: number) =>
    receive({ type: "db_change", feed, seq, docId: `d${seq}`, changeType: "added", data: {} });
  return { sent, clock, heard, answer, change, reconnect };
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
