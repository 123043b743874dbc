import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/clock.ts";
import type { Socket } from "../../../sockets/socket-server.ts";
import { SHARD_MEMBERS_MAX } from "../limits.ts";
import { FanOut, type Listener } from "./topic.ts";

/** Sockets by their native topics, as in Bun. */
function world() {
  const subscribed = new Map<string, Set<string[]>>();
  const clock = testClock();
  const publish = (name: string, text: string, except: string[] | null = null): void => {
    for (const heard of subscribed.get(name) ?? []) if (heard !== except) heard.push(text);
  };
  const sockets = {
    upgrade: () => {
      throw new Error("no socket is opened here");
    },
    publish,
    publishElsewhere() {},
    waitingBytes: () => 0,
    drop: () => {},
  };
  const listen = (): Listener & { heard: string[]; identity: number } => {
    const heard: string[] = [];
    const socket = {
      readyState: WebSocket.OPEN,
      subscribe: (name: string) => void subscribed.set(name, (subscribed.get(name) ?? new Set()).add(heard)),
      unsubscribe: (name: string) => void subscribed.get(name)?.delete(heard),
      publish: (name: string, text: string) => publish(name, text, heard),
    } as unknown as Socket; // the part of a socket that topics use
    return {
      heard,
      socket,
      isClosed: false,
      identity: 1,
      waitingBytes: 0,
      closeIfSlow: () => false,
      closeAsSlow: () => {},
      countWaiting: () => {},
    };
  };
  const fanOut = new FanOut(clock, sockets);
  return { clock, fanOut, topic: fanOut.topic(), listen };
}

test("[RT260] a turn sends to more members where the last one was quick", () => {
  const { clock, topic, listen } = world();
  const all = Array.from({ length: 8_000 }, listen);
  for (const one of all) topic.join(one);
  const heard = () => all.filter(({ heard }) => heard.length > 0).length;
  topic.publish("a");
  const first = heard();
  clock.advance(1);
  const second = heard() - first;
  expect(second).toBeGreaterThan(2 * first);
  for (let turn = 0; turn < 20 && topic.hasWaiting; turn++) clock.advance(1);
  expect(heard()).toBe(all.length);
});

test("[RT102] a message to many members is sent in turns and in order, and a new member starts behind it", async () => {
  const { clock, topic, listen } = world();
  const first = Array.from({ length: 5_000 }, listen);
  for (const one of first) topic.join(one);
  topic.publish("a");
  const before = first.filter(({ heard }) => heard.length > 0).length;
  expect(before).toBeGreaterThan(0);
  expect(before).toBeLessThan(5_000);
  const late = listen();
  topic.join(late);
  const gone = first[4_999];
  if (gone !== undefined) topic.leave(gone);
  topic.publish("b", first[0]);
  for (let turn = 0; turn < 100 && topic.hasWaiting; turn++) clock.advance(1);
  expect(topic.hasWaiting).toBe(false);
  expect(late.heard).toEqual(["b"]);
  expect(first[0]?.heard).toEqual(["a"]);
  expect(gone?.heard).toEqual([]);
  expect(first.slice(1, -1).every(({ heard }) => heard.join() === "a,b")).toBe(true);
  expect(topic.size).toBe(5_000);
});

test("[RT102] members that are closed as slow in their turn do not affect the others", () => {
  const { clock, topic, listen } = world();
  const slow = Array.from({ length: 40 }, () => {
    const listener = { ...listen(), closeIfSlow: (): boolean => true };
    listener.closeIfSlow = () => {
      topic.leave(listener);
      return true;
    };
    return listener;
  });
  const quick = Array.from({ length: 2_000 }, listen);
  for (const one of [...slow, ...quick]) topic.join(one);
  for (const text of ["a", "b", "c"]) topic.publish(text);
  for (let turn = 0; turn < 200 && topic.hasWaiting; turn++) clock.advance(1);
  expect(topic.hasWaiting).toBe(false);
  expect(quick.every(({ heard }) => heard.join() === "a,b,c")).toBe(true);
  expect([topic.size, slow.some(({ heard }) => heard.length > 0)]).toEqual([2_000, false]);
});

test("[RT102] a topic with too much to send reports it, and what waits in all topics is counted", () => {
  const { clock, fanOut, topic, listen } = world();
  for (let count = 0; count < 100; count++) topic.join(listen());
  const text = "x".repeat(256 * 1024);
  for (let count = 0; count < 80; count++) topic.publish(text);
  expect([topic.isBehind, fanOut.isBehind]).toEqual([true, true]);
  for (let turn = 0; turn < 2_000 && topic.hasWaiting; turn++) clock.advance(1);
  expect([topic.hasWaiting, topic.isBehind, fanOut.isBehind]).toEqual([false, false, false]);
});

test("[RT223] a member that leaves gets the messages that it has not been sent", () => {
  const { topic, listen } = world();
  const members = Array.from({ length: 5_000 }, listen);
  for (const member of members) topic.join(member);
  const last = members[4_999];
  if (last === undefined) throw new Error("5,000 members were made");
  topic.publish("a");
  topic.publish("b", last);
  topic.publish("c");
  expect(last.heard).toEqual([]);
  expect(topic.unsent(last)).toEqual(["a", "c"]);
  topic.leave(last);
  expect(topic.unsent(last)).toEqual([]);
});

test("[RT226] a topic that is held sends nothing until all holds have ended, then everything in order", () => {
  const { clock, fanOut, topic, listen } = world();
  const member = listen();
  topic.join(member);
  const [first, second] = [topic.hold(), topic.hold()];
  topic.publish("a");
  topic.publish("b");
  clock.advance(5);
  expect([member.heard, topic.hasWaiting, fanOut.isBehind]).toEqual([[], false, false]);
  first();
  clock.advance(5);
  expect(member.heard).toEqual([]);
  second();
  clock.advance(5);
  expect(member.heard).toEqual(["a", "b"]);
});

test("[RT226] topics that are held take a bounded number of bytes, and hold no other topic up", () => {
  const { clock, fanOut, topic, listen } = world();
  const held = Array.from({ length: 5 }, () => fanOut.topic());
  const releases = held.map((one) => {
    one.join(listen());
    return one.hold();
  });
  for (const one of held) one.publish("x".repeat(4 * 1024 * 1024));
  expect(held.every((one) => one.isBehind)).toBe(true);
  const member = listen();
  topic.join(member);
  topic.publish("free");
  clock.advance(5);
  expect([member.heard, topic.isBehind, fanOut.isBehind]).toEqual([["free"], false, false]);
  for (const release of releases) release();
  for (let turn = 0; turn < 100 && held.some(({ hasWaiting }) => hasWaiting); turn++) clock.advance(1);
  expect(held.some((one) => one.isBehind || one.hasWaiting)).toBe(false);
});

test("[RT6] a member whose user is another one gets nothing until it joins again, or leaves, and then the others of its shard", () => {
  const { clock, topic, fanOut, listen } = world();
  const all = Array.from({ length: SHARD_MEMBERS_MAX + 1 }, listen);
  for (const one of all) topic.join(one);
  const [first, second] = all;
  if (first === undefined || second === undefined) throw new Error("there are five");
  first.identity++;
  second.identity++;
  topic.publish("a");
  topic.publish("b");
  clock.advance(1);
  expect(all.map(({ heard }) => heard.join(""))).toEqual(["", "", "", "", "ab"]);
  topic.leave(first);
  clock.advance(1);
  expect(second.heard).toEqual([]);
  topic.join(second);
  topic.publish("c");
  clock.advance(1);
  expect(all.map(({ heard }) => heard.join(""))).toEqual(["", "abc", "abc", "abc", "abc"]);
  expect([topic.hasWaiting, fanOut.isBehind]).toEqual([false, false]);
});
