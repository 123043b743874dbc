import { expect, test } from "bun:test";
import { settle, testClock } from "../../../../../tests/support/clock.ts";
import { HOUR_MS } from "../../../../kernel/time/duration.ts";
import type { Socket } from "../../../sockets/socket-server.ts";
import { PRESENCE_MEMBERS_MAX, PRESENCE_TTL_MS, SYNC_AT_ONCE_MEMBERS_MAX } from "../limits.ts";
import { Presence, type Tracked } from "./presence.ts";
import { PresenceChannel, type PresenceListener } from "./presence-channel.ts";
import { FanOut } from "./topic.ts";

const silentSockets = {
  upgrade: () => {
    throw new Error("no socket is opened here");
  },
  publish: () => {},
  publishElsewhere: () => {},
  waitingBytes: () => 0,
  drop: () => {},
};
const tracked = (id: number): Tracked => ({
  connectionId: String(id),
  userId: "u",
  channels: new Set<string>(),
  lastSeen: 0,
  left() {},
});

test("[RT32] a channel has at most 20,000 entries, and room again when they time out", () => {
  const clock = testClock();
  const presence = new Presence({
    clock,
    topics: new FanOut(clock, silentSockets),
    ttlMs: PRESENCE_TTL_MS,
    onSent() {},
  });
  for (let id = 0; id < PRESENCE_MEMBERS_MAX; id++)
    expect(presence.track(tracked(id), "presence:x", "{}")).toBe("tracked");
  const late = tracked(-1);
  expect(presence.track(late, "presence:x", "{}")).toBe("full");
  expect(late.channels.size).toBe(0);
  clock.advance(PRESENCE_TTL_MS);
  expect(presence.track(late, "presence:x", "{}")).toBe("tracked");
  presence.stop();
  expect(clock.waiting).toBe(0);
});

test("[RT31] entries end after their time to live although the clock was set back", () => {
  const time = testClock();
  let behindMs = 0;
  const clock = { now: () => time.now() - behindMs, after: time.after };
  const topics = new FanOut(clock, silentSockets);
  const presence = new Presence({ clock, topics, ttlMs: PRESENCE_TTL_MS, onSent() {} });
  for (let id = 0; id < 10; id++) presence.track(tracked(id), "presence:x", "{}");
  behindMs = HOUR_MS;
  time.advance(2 * PRESENCE_TTL_MS);
  expect(presence.entriesOf("presence:x")).toBe(0);
});

/** A listener that reads when it is drained. */
function slowListener() {
  const heard: { type: string; connectionId?: string; users?: unknown[] }[] = [];
  const drains: (() => void)[] = [];
  let waitingBytes = 0;
  const listener: PresenceListener = {
    // The three members that a topic touches.
    socket: { subscribe: () => {}, unsubscribe: () => {}, readyState: WebSocket.OPEN } as unknown as Socket,
    isClosed: false,
    identity: 1,
    get waitingBytes() {
      return waitingBytes;
    },
    closeIfSlow: () => false,
    countWaiting: () => {},
    closeAsSlow: () => {
      throw new Error("closed as slow");
    },
    sendText(text) {
      waitingBytes += text.length;
      heard.push(JSON.parse(text));
    },
    drained: () => new Promise((resolve) => drains.push(resolve)),
  };
  const drain = async (leftBytes: number) => {
    waitingBytes = leftBytes;
    for (const resolve of drains.splice(0)) resolve();
    await settle();
  };
  return { heard, listener, drain };
}

test("[RT28] a listener gets the changes that follow a long sync when it has read it, and not before", async () => {
  const { heard, listener, drain } = slowListener();
  const topic = new FanOut(testClock(), silentSockets).topic();
  const channel = new PresenceChannel("presence:x", topic, () => Promise.resolve());
  const state = JSON.stringify({ text: "x".repeat(1_000) });
  for (let id = 0; id < 500; id++) channel.set("u", `c${id}`, state);

  channel.listen(listener);
  channel.delete("c0", "timeout");
  channel.set("u", "c1", "{}");
  channel.set("u", "new", "{}");
  expect(heard.map((message) => message.type)).toEqual(["presence_sync"]);
  expect(topic.size).toBe(0);
  await drain(0);
  expect(heard.slice(1).map(({ type, connectionId }) => [type, connectionId])).toEqual([
    ["presence_leave", "c0"],
    ["presence_update", "c1"],
    ["presence_join", "new"],
  ]);
  expect(topic.size).toBe(1);

  // The changes are longer than a sync, which is sent instead.
  channel.listen(listener);
  channel.unlisten(listener);
  channel.listen(listener);
  for (let id = 500; id < 1_000; id++) channel.set("u", `c${id}`, state);
  await drain(0);
  expect(heard.at(-1)).toMatchObject({ type: "presence_sync" });
  expect(heard.at(-1)?.users).toHaveLength(1_000);
  expect(topic.size).toBe(0);
  await drain(0);
  expect(topic.size).toBe(1);
  channel.unlisten(listener);
  expect(topic.size).toBe(0);
});

test("[RT226] a long sync, and the changes that follow it, wait while a rule is asked again", async () => {
  const topic = new FanOut(testClock(), silentSockets).topic();
  const channel = new PresenceChannel("presence:x", topic, () => Promise.resolve());
  const state = JSON.stringify({ text: "x".repeat(1_000) });
  for (let id = 0; id <= SYNC_AT_ONCE_MEMBERS_MAX; id++) channel.set("u", `c${id}`, state);
  const [first, second] = [slowListener(), slowListener()];

  const release = channel.hold();
  channel.listen(first.listener);
  channel.listen(second.listener);
  await settle();
  channel.set("u", "new", "{}");
  expect([first.heard, second.heard]).toEqual([[], []]);
  // The rule denies it.
  channel.unlisten(second.listener);
  release();
  await settle();
  expect(first.heard.map(({ type, users }) => [type, users?.length])).toEqual([
    ["presence_sync", SYNC_AT_ONCE_MEMBERS_MAX + 2],
  ]);

  const releaseAgain = channel.hold();
  channel.delete("new", "timeout");
  await first.drain(0);
  expect(first.heard).toHaveLength(1);
  releaseAgain();
  await settle();
  expect(first.heard.slice(1)).toMatchObject([{ type: "presence_leave", connectionId: "new" }]);
  expect([second.heard, topic.size]).toEqual([[], 1]);
});
