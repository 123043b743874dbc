import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { connect, settled, subscribe } from "./realtime-support.ts";

const TTL_MS = 1_500;

let platform: TestPlatform;
let user: SignedIn;
let other: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: `{ realtime: { presenceTtl: ${TTL_MS} } }` });
  [user, other] = [await signIn(platform), await signIn(platform)];
});
afterAll(() => platform.stop());

interface Sync extends JsonObject {
  users: { userId: string; connectionId: string; state: JsonObject }[];
}

/** Subscribes to a presence channel and returns its entries. */
async function watch(socket: TestSocket, channel: string): Promise<Sync["users"]> {
  await subscribe(socket, channel);
  const sync = await socket.next<Sync>();
  expect(sync).toMatchObject({ type: "presence_sync", channel });
  return sync.users;
}

test("[RT28] [RT29] sync, join, update: one entry per connection, which is sent its own events too", async () => {
  const channel = "presence:room";
  const socket = await connect(platform, user, channel);
  expect(await watch(socket, channel)).toEqual([]);
  socket.send({ type: "track", state: { mood: "fine" } });
  const join = await socket.next<JsonObject & { connectionId: string }>();
  const about = { channel, userId: user.id, connectionId: join.connectionId };
  expect(join).toEqual({ type: "presence_join", ...about, state: { mood: "fine" } });
  const second = await connect(platform, user, channel);
  expect(await watch(second, channel)).toEqual([
    { userId: user.id, connectionId: join.connectionId, state: { mood: "fine" } },
  ]);
  second.send({ type: "track", state: {} });
  const secondJoin = await second.next<JsonObject & { connectionId: string }>();
  expect(secondJoin.connectionId).not.toBe(join.connectionId);
  await socket.expect({ type: "presence_join", connectionId: secondJoin.connectionId });
  socket.send({ type: "track", state: { mood: "better" } });
  const update = { type: "presence_update", channel, userId: user.id, connectionId: join.connectionId };
  expect(await socket.next()).toEqual({ ...update, state: { mood: "better" } });
  expect(await second.next()).toEqual({ ...update, state: { mood: "better" } });
  const third = await connect(platform, other);
  expect((await watch(third, channel)).map((entry) => entry.state)).toEqual([{ mood: "better" }, {}]);
  await Promise.all([socket.close(), second.close(), third.close()]);
});

test("[RT30] untrack, a clean close and a close by the server end an entry at once with disconnect", async () => {
  const channel = "presence:leaving";
  const watcher = await connect(platform, user);
  await watch(watcher, channel);
  const victim = await signIn(platform);
  const leaving: ((socket: TestSocket) => unknown)[] = [
    (socket) => socket.send({ type: "untrack" }),
    (socket) => socket.close(),
    (socket) => socket.close(1001),
    (socket) => socket.close(4444),
    () => platform.service.post(`/api/auth/admin/users/${victim.id}/revoke`),
  ];
  for (const leave of leaving) {
    const socket = await connect(platform, victim, channel);
    socket.send({ type: "untrack" });
    socket.send({ type: "track", state: {} });
    const join = await watcher.expect({ type: "presence_join", userId: victim.id });
    leave(socket);
    const { connectionId } = join;
    const about = { channel, userId: victim.id, connectionId: connectionId as string };
    expect(await watcher.next()).toEqual({ type: "presence_leave", ...about, reason: "disconnect" });
    await socket.close();
  }
  await watcher.close();
});

test("[RT31] without a ping an entry ends with timeout, a ping keeps it", async () => {
  const channel = "presence:silent";
  const watcher = await connect(platform, user);
  await watch(watcher, channel);
  const [silent, lost, lively] = [
    await connect(platform, other, channel),
    await connect(platform, other, channel),
    await connect(platform, user, channel),
  ];
  const ids: string[] = [];
  for (const socket of [silent, lost, lively]) {
    socket.send({ type: "track", state: {} });
    ids.push(String((await watcher.expect({ type: "presence_join" }))["connectionId"]));
  }
  lost.terminate();
  const pings = setInterval(() => lively.send({ type: "ping" }), TTL_MS / 4);
  const gone: JsonObject[] = [await watcher.next(), await watcher.next()];
  expect(gone.map((message) => `${message["type"]} ${message["connectionId"]} ${message["reason"]}`).sort()).toEqual(
    ids
      .slice(0, 2)
      .map((id) => `presence_leave ${id} timeout`)
      .sort(),
  );
  silent.send({ type: "track", state: { back: true } });
  await watcher.expect({ type: "presence_join", connectionId: ids[0] ?? "", state: { back: true } });
  // Another time to live has passed, and the entry with pings is still there.
  await watcher.expect({ type: "presence_leave", connectionId: ids[0] ?? "", reason: "timeout" });
  clearInterval(pings);
  await Promise.all([watcher, silent, lively].map((socket) => socket.close()));
});

test("[RT32] a state has at most 1 KB of JSON", async () => {
  const socket = await connect(platform, user, "presence:large");
  await watch(socket, "presence:large");
  const state = (bytes: number) => ({ t: "ä".repeat((bytes - 8) / 2) }); // {"t":""} is 8
  socket.send({ type: "track", state: state(1_026) });
  await socket.expect({ type: "error", code: "STATE_TOO_LARGE" });
  socket.send({ type: "track", state: state(1_024) });
  await socket.expect({ type: "presence_join", state: state(1_024) });
  await socket.close();
});

test("[RT33] a broadcast reaches the other subscribers, and its sender with excludeSelf: false", async () => {
  const channel = "broadcast:chat";
  const [one, two, three] = [
    await connect(platform, user, channel),
    await connect(platform, user),
    await connect(platform, other),
  ];
  for (const socket of [one, two]) await subscribe(socket, channel);
  await subscribe(three, "broadcast:elsewhere");
  one.send({ type: "broadcast", event: "hello", data: { n: 1 } });
  expect(await two.next()).toEqual({ type: "broadcast_event", channel, event: "hello", data: { n: 1 } });
  await settled(one);
  one.send({ type: "broadcast", event: "all", data: {}, excludeSelf: false });
  await one.expect({ type: "broadcast_event", event: "all", data: {} });
  await two.expect({ type: "broadcast_event", event: "all", data: {} });
  // A connection that is not subscribed may broadcast.
  three.send({ type: "broadcast", channel, event: "outside", data: {} });
  await one.expect({ type: "broadcast_event", event: "outside" });
  await two.expect({ type: "broadcast_event", event: "outside" });
  two.send({ type: "unsubscribe", channel });
  await settled(two);
  one.send({ type: "broadcast", event: "late", data: {}, excludeSelf: false });
  await one.expect({ event: "late" });
  for (const socket of [two, three]) await settled(socket);
  await Promise.all([one, two, three].map((socket) => socket.close()));
});

test("[RT34] one connection serves many channels by naming them", async () => {
  const socket = await connect(platform, user, "presence:own");
  await watch(socket, "presence:own");
  await watch(socket, "presence:named");
  await subscribe(socket, "broadcast:named");
  socket.send({ type: "track", channel: "presence:named", state: { at: "named" } });
  await socket.expect({ type: "presence_join", channel: "presence:named" });
  socket.send({ type: "track", state: { at: "own" } });
  await socket.expect({ type: "presence_join", channel: "presence:own" });
  socket.send({ type: "untrack", channel: "presence:named" });
  await socket.expect({ type: "presence_leave", channel: "presence:named" });
  socket.send({ type: "broadcast", channel: "broadcast:named", event: "e", data: {}, excludeSelf: false });
  await socket.expect({ type: "broadcast_event", channel: "broadcast:named" });
  socket.send({ type: "broadcast", event: "e", data: {} });
  await socket.expect({ type: "error", code: "INVALID_CHANNEL", channel: "presence:own" });
  await socket.close();
});
