import { afterEach, expect, test } from "bun:test";
import { type RoomClient, type RoomsWorld, roomsWorld } from "../../../../../tests/support/rooms-world.ts";
import type { JsonObject, JsonValue } from "../../../../kernel/json/json.ts";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Room, RoomConfig, RoomsConfig } from "../../../config/types.ts";

let world: RoomsWorld;
afterEach(() => world.stop());

const countOf = (state: JsonObject): number => (typeof state["count"] === "number" ? state["count"] : 0);
const count = (room: Room): void => room.setShared((state) => ({ ...state, count: countOf(state) + 1 }));

const BASE: RoomConfig = {
  messageRate: 1_000,
  access: { join: true },
  actions: {
    count(room) {
      count(room);
      return countOf(room.shared);
    },
    read: (room) => room.shared,
  },
};

async function begin(game: RoomConfig): Promise<void> {
  const config: RoomsConfig = { game: { ...BASE, ...game, actions: { ...BASE.actions, ...game.actions } } };
  world = await roomsWorld(config);
}

async function enter(userId: string): Promise<RoomClient> {
  const client = await world.connect(userId);
  await client.enter();
  await world.advance(60);
  expect(client.of("sync").length).toBe(1);
  return client;
}

let requestId = 0;
async function act(client: RoomClient, actionType: string, payload: JsonValue = {}): Promise<JsonObject | undefined> {
  const id = String(++requestId);
  client.send({ type: "send", actionType, payload, requestId: id });
  await world.settle();
  return client.messages.find((message) => message["requestId"] === id);
}

test("[RM11] a client that does not read is closed with 1013, and the others are not affected", async () => {
  await begin({
    actions: { flood: (room) => room.send("noise", "x".repeat(500_000)) },
  });
  const slow = await enter("ann");
  const quick = await enter("bob");
  slow.stall();
  for (let index = 0; index < 10; index++) await act(quick, "flood");
  expect(slow.closed).toEqual({ code: 1013 });
  expect(quick.of("message").length).toBe(10);
});

test("[RM12] a join rule that never answers denies after 5 s, and no room is made", async () => {
  await begin({ access: { join: () => new Promise<boolean>(() => {}) } });
  const client = await world.connect("ann");
  await client.enter();
  await world.advance(4_900);
  expect(client.of("error")).toEqual([]);
  await world.advance(200);
  expect(client.of("error")).toMatchObject([{ code: "JOIN_DENIED" }]);
  expect(world.area.liveRooms).toBe(0);
});

test("[RM12] a rule that returns anything but true denies", async () => {
  // A rule in plain JavaScript may return anything.
  const lax = (() => "yes") as unknown as () => boolean;
  await begin({ access: { join: lax } });
  const client = await world.connect("ann");
  await client.enter();
  expect(client.of("error")).toMatchObject([{ code: "JOIN_DENIED" }]);
});

test("[RM15] a join within 50 ms of a delta waits for the next delta, and nothing precedes its sync", async () => {
  await begin({
    onJoin(room, player) {
      count(room);
      room.sendTo(player.userId, "welcome", null);
    },
  });
  const first = await enter("ann");
  const [second, third] = [await world.connect("bob"), await world.connect("cid")];
  await second.enter();
  await third.enter();
  await act(third, "count");
  expect(third.of("sync")).toEqual([]);
  expect(third.of("message")).toEqual([]);
  await world.advance(60);
  expect(second.messages.map(({ type }) => type)).toEqual(["auth_success", "sync", "message", "shared_delta"]);
  expect(third.messages.map(({ type }) => type)).toEqual(["auth_success", "sync", "message", "action_result"]);
  expect(third.of("sync")).toMatchObject([{ sharedState: { count: 4 }, sharedVersion: 3 }]);
  expect(first.of("shared_delta")).toMatchObject([
    { version: 2, delta: { count: 2 } },
    { version: 3, delta: { count: 4 } },
  ]);
});

test("[RM18] a place is kept for 30 s and no longer", async () => {
  const left: string[] = [];
  await begin({ onLeave: (_room, player, reason) => void left.push(`${player.userId} ${reason}`) });
  const stays = await enter("ann");
  const goes = await enter("bob");
  await goes.close(1006);
  await world.advance(29 * SECOND_MS);
  const back = await enter("bob");
  await world.advance(5 * SECOND_MS);
  expect(left).toEqual([]);
  await back.close(1006);
  await world.advance(30 * SECOND_MS + 100);
  expect(left).toEqual(["bob disconnect"]);
  await stays.close(1000);
  expect(left).toEqual(["bob disconnect", "ann leave"]);
});

test("[RM19] a player whose place is kept can be kicked", async () => {
  const left: string[] = [];
  await begin({
    onLeave: (_room, player, reason) => void left.push(`${player.userId} ${reason}`),
    actions: { kick: (room) => room.kick("bob") },
  });
  const ann = await enter("ann");
  const bob = await enter("bob");
  await bob.close(1006);
  await act(ann, "kick");
  await world.advance(MINUTE_MS);
  expect(left).toEqual(["bob kicked"]);
});

test("[RM19] a player whom onJoin kicks is removed", async () => {
  await begin({ onJoin: (room, player) => room.kick(player.userId) });
  const client = await world.connect("ann");
  await client.enter();
  await world.advance(100);
  expect(client.of("kicked").length).toBe(1);
  expect(client.closed).toEqual({ code: 4001 });
  expect(world.area.liveRooms).toBe(0);
});

test("[RM22] a handler that takes too long is an error, and its later calls have no effect", async () => {
  const gate = Promise.withResolvers<void>();
  await begin({
    actions: {
      async late(room) {
        room.setShared({ early: true });
        await gate.promise;
        room.setShared({ late: true });
        room.send("late", null);
        room.kick("ann");
        room.setTimer("never", 0);
      },
    },
    timers: { never: (room) => room.send("never", null) },
  });
  const client = await enter("ann");
  await act(client, "late");
  const waiting = act(client, "count");
  await world.advance(4_900);
  expect(client.of("action_error")).toEqual([]);
  await world.advance(200);
  expect(client.of("action_error")).toMatchObject([{ message: "The handler took longer than 5000 ms" }]);
  await waiting;
  expect(client.of("action_result")).toMatchObject([{ result: 1 }]);
  gate.resolve();
  await world.advance(1_000);
  expect(await act(client, "read")).toMatchObject({ result: { count: 1 } });
  expect(client.of("message")).toEqual([]);
  expect(client.closed).toBeNull();
  expect(world.failures.length).toBe(4);
});

test("[RM27] saved timers survive a crash, and overdue ones fire after the restart", async () => {
  await begin({
    actions: {
      remind(room) {
        room.setTimer("count", HOUR_MS);
        room.setTimer("cleared", HOUR_MS);
        room.clearTimer("cleared");
        room.save();
      },
    },
    timers: { count, cleared: count },
  });
  await act(await enter("ann"), "remind");
  await world.crash();
  await world.advance(59 * MINUTE_MS);
  expect(world.area.liveRooms).toBe(0);
  await world.advance(2 * MINUTE_MS);
  expect(await act(await enter("ann"), "read")).toMatchObject({ result: { count: 1 } });
  expect(world.failures).toEqual([]);
});

test("[RM33] a change is saved after 60 s, and by save() at once", async () => {
  await begin({
    actions: {
      save(room) {
        count(room);
        room.save();
      },
    },
  });
  const client = await enter("ann");
  await act(client, "count");
  await world.advance(MINUTE_MS);
  await act(client, "count");
  await world.crash();
  const back = await enter("ann");
  expect(await act(back, "read")).toMatchObject({ result: { count: 1 } });
  await act(back, "save");
  await world.crash();
  expect(await act(await enter("ann"), "read")).toMatchObject({ result: { count: 2 } });
});

test("[RM35] a room is removed from memory after 300 s without an event, and restored by the next one only", async () => {
  await begin({ onJoin: count });
  const clients: RoomClient[] = [];
  for (let index = 0; index < 20; index++) {
    const client = await world.connect(`user${index}`, { id: `room${index}` });
    await client.enter();
    clients.push(client);
  }
  await world.advance(299 * SECOND_MS);
  expect(clients.every((client) => client.of("sync").length === 1)).toBe(true);
  await world.advance(60 * SECOND_MS);
  const woken = clients[7];
  if (woken === undefined) throw new Error("there are twenty");
  expect(await act(woken, "count")).toMatchObject({ result: 2 });
  expect(woken.of("sync")).toMatchObject([{ sharedVersion: 1 }, { sharedVersion: 1, sharedState: { count: 1 } }]);
  expect(clients.filter((client) => client.of("sync").length === 2).length).toBe(1);
  for (const client of clients) await client.close(1000);
  expect(world.area.liveRooms).toBe(0);
});

test("[RM37] a state is kept for 24 h after its last save", async () => {
  await begin({ onCreate: (room) => room.setShared({ count: 100 }) });
  const client = await enter("ann");
  await act(client, "count");
  await client.close(1000);
  await world.advance(23 * HOUR_MS);
  const again = await enter("ann");
  expect(await act(again, "read")).toMatchObject({ result: { count: 101 } });
  await again.close(1000);
  await world.advance(25 * HOUR_MS);
  expect(await act(await enter("ann"), "read")).toMatchObject({ result: { count: 100 } });
});

test("[RM38] a room that cannot be saved stays in memory, and is saved once it can be", async () => {
  await begin({});
  const client = await enter("ann");
  await act(client, "count");
  world.failWrites(true);
  await client.close(1000);
  await world.advance(MINUTE_MS);
  expect(world.area.liveRooms).toBe(1);
  expect(world.failures.length).toBeGreaterThan(1);
  world.failWrites(false);
  await world.advance(10 * MINUTE_MS);
  expect(world.area.liveRooms).toBe(0);
  await world.crash();
  expect(await act(await enter("ann"), "read")).toMatchObject({ result: { count: 1 } });
});

test("[RM10] a refreshed connection belongs to its new session", async () => {
  await begin({});
  const client = await world.connect("ann", { sessionId: "old" });
  await client.enter();
  client.send({ type: "auth", token: "ann/new" });
  await world.settle();
  world.endSession("old");
  await world.settle();
  expect(client.closed).toBeNull();
  world.endSession("new");
  await world.settle();
  expect(client.closed).toEqual({ code: 4003 });
});

test("[RM27] a timer's delay is rounded up to whole milliseconds, and must be a number", async () => {
  await begin({
    actions: {
      remind(room, _player, payload) {
        count(room);
        // An error in an editor, but possible in a config in JavaScript.
        room.setTimer("count", payload as unknown as number);
        room.save();
      },
    },
    timers: { count },
  });
  const client = await enter("ann");
  for (const wrong of ["300", null, [], true, -1, 1e300]) {
    expect(await act(client, "remind", wrong)).toMatchObject({ type: "action_error" });
  }
  expect(await act(client, "remind", 600_000 / 7)).toMatchObject({ type: "action_result" });
  await world.crash();
  await world.advance(2 * MINUTE_MS);
  expect(await act(await enter("ann"), "read")).toMatchObject({ result: { count: 2 } });
  expect(world.failures).toEqual([]);
});

test("[RM37] the timer of an expired room does not restore it", async () => {
  let createdCount = 0;
  await begin({
    onCreate: () => void createdCount++,
    actions: { remind: (room) => room.setTimer("count", 30 * HOUR_MS) },
    timers: { count },
  });
  const client = await enter("ann");
  await act(client, "remind");
  await client.close(1000);
  await world.advance(31 * HOUR_MS);
  expect(createdCount).toBe(1);
  expect(world.area.liveRooms).toBe(0);
});

test("[RM37] a room with a connected player does not expire, and has its whole time to live after a crash", async () => {
  await begin({ stateTtl: 2 * HOUR_MS, onCreate: (room) => room.setShared({ count: 100 }) });
  const client = await enter("ann");
  await act(client, "count");
  await world.advance(3 * HOUR_MS);
  expect(await act(client, "count")).toMatchObject({ result: 102 });
  expect(client.of("sync").at(-1)).toMatchObject({ sharedState: { count: 101 } });
  await world.advance(5 * HOUR_MS);
  await world.crash();
  await world.advance(HOUR_MS);
  const back = await enter("bob");
  expect(await act(back, "count")).toMatchObject({ result: 103 });
  await back.close(1000);
  await world.advance(3 * HOUR_MS);
  expect(await act(await enter("bob"), "count")).toMatchObject({ result: 101 });
});

test("[RM28] players() and onLeave get the user's current role, and the id of an open connection", async () => {
  const left: string[] = [];
  await begin({
    onLeave: (_room, player) => void left.push(player.role),
    actions: {
      players: (room) => room.players().map(({ role, auth, connectionId }) => [role, auth.role, connectionId]),
    },
  });
  const [first, second, other] = [await enter("ann"), await enter("ann"), await enter("bob")];
  const idOf = (client: RoomClient) => client.of("auth_success")[0]?.["connectionId"] ?? null;
  world.setRole("ann", "editor");
  expect((await act(other, "players"))?.["result"]).toContainEqual(["editor", "editor", idOf(first)]);
  await first.close(1000);
  expect((await act(other, "players"))?.["result"]).toContainEqual(["editor", "editor", idOf(second)]);
  world.setRole("ann", "owner");
  await second.close(1006);
  world.setRole("ann", "guest");
  expect((await act(other, "players"))?.["result"]).toContainEqual(["guest", "guest", idOf(second)]);
  await world.restart();
  world.setRole("ann", "reader");
  await enter("bob");
  await world.advance(31 * SECOND_MS);
  expect(left).toEqual(["reader"]);
});

test("[RM19] an action that kicks its own sender is answered first", async () => {
  await begin({
    actions: {
      resign(room, player) {
        room.kick(player.userId);
        return "bye";
      },
    },
  });
  const client = await enter("ann");
  // Held at that moment, as the connection waits for another sync.
  await act(client, "count");
  client.send({ type: "join" });
  client.send({ type: "send", actionType: "resign", requestId: "last" });
  await world.settle();
  expect(client.messages.slice(-2)).toEqual([
    { type: "action_result", requestId: "last", result: "bye" },
    { type: "kicked" },
  ]);
  expect(client.closed).toEqual({ code: 4001 });
});

test("[RM8] long messages beyond 512 KiB a second are dropped unparsed, and the connection stays", async () => {
  await begin({ maxStateSize: 10 * 1024 * 1024 });
  const client = await enter("ann");
  const long = (requestId: string) =>
    client.send({ type: "send", actionType: "count", payload: "x".repeat(1_000_000), requestId });
  long("first");
  long("second");
  await world.settle();
  expect(client.of("action_result").map(({ requestId }) => requestId)).toEqual(["first"]);
  expect(client.of("error").map(({ code }) => code)).toEqual(["RATE_LIMITED"]);
  await world.advance(2_000);
  long("third");
  client.send({ type: "send", actionType: "count", payload: "x".repeat(1_200_000), requestId: "longest" });
  await world.settle();
  expect(client.of("action_result").map(({ requestId }) => requestId)).toEqual(["first", "third"]);
  expect(client.of("error").at(-1)).toMatchObject({ code: "INVALID_MESSAGE" });
});
