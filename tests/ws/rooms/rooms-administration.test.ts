import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { SERVICE_KEY, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { roomVisits } from "../../support/room-visits.ts";

const [GAMES, READER] = ["games-key-0123456789abcdefghijklmnopqrstuv", "reader-key-0123456789abcdefghijklmnopqrstuv"];
const CONFIG = `{
  rooms: {
    game: {
      messageRate: 1000, maxStateSize: 4 * 1024 * 1024, reconnectTimeout: 60000, access: { join: true },
      onJoin(room, player) {
        room.setShared((state) => ({ ...state, last: player.userId }));
        room.setPlayer(player.userId, { cards: [1, 2] });
        room.setServer({ solution: 42 });
        room.setMetadata({ title: "A game" });
      },
      onLeave(room, player, reason) { room.setShared((state) => ({ ...state, left: reason })); },
      actions: {
        fill(room, player, { parts }) {
          const shared = {};
          for (let n = 0; n < parts; n++) shared["part" + n] = { text: "x".repeat(10_000), n };
          room.setShared(shared);
        },
        alarm: (room) => room.setTimer("later", 3_600_000),
      },
      timers: { later() {} },
    },
    chess: { access: { join: true } },
    hall: { access: { join: true }, idleTimeout: 300 },
  },
  serviceKeys: {
    games: { key: "${GAMES}", scopes: ["rooms:*:game:read", "rooms:*:game:write"] },
    reader: { key: "${READER}", scopes: ["rooms:*:*:read"] },
    nothing: { key: "nothing-key-0123456789abcdefghijklmnopqrst", scopes: ["kv:namespace:a:read"] },
  },
}`;
const PATH = "/api/admin/rooms";

let platform: TestPlatform;
let [ann, bob]: SignedIn[] = [];
const { enter, act, closeAll } = roomVisits(() => platform);
const users = (): [SignedIn, SignedIn] => {
  if (ann === undefined || bob === undefined) throw new Error("nobody is signed in");
  return [ann, bob];
};
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob] = await Promise.all([signIn(platform), signIn(platform, { role: "editor" })]);
});
afterAll(async () => {
  await closeAll();
  await platform.stop();
});

interface RoomList {
  namespaces: { name: string; rooms: number; players: number }[];
  rooms: JsonObject[];
  total: number;
}
const list = async (query: Record<string, string> = {}, key = SERVICE_KEY) =>
  (await platform.withKey(key).get<RoomList>(PATH, { query })).body;
const view = async (path: string) => (await platform.service.get(`${PATH}/${path}`)).body;

test("[RM340] live rooms are listed, the fullest first, by namespace and beginning of the id", async () => {
  const [one, other] = users();
  for (const id of ["list-1", "list-2"]) await enter(one, id);
  await enter(other, "list-2");
  await enter(one, "list-3", "chess");
  const { namespaces, rooms, total } = await list({ prefix: "list-" });
  expect(total).toBe(3);
  expect(rooms[0]).toEqual({
    ...{ namespace: "game", id: "list-2", players: 2, connections: 2, isInMemory: true },
    stateBytes: expect.any(Number),
  });
  expect(rooms.map(({ id }) => id)).toEqual(["list-2", "list-1", "list-3"]);
  expect(namespaces).toContainEqual({ name: "chess", rooms: 1, players: 1 });
  expect(await list({ prefix: "list-", limit: "1" })).toMatchObject({ rooms: [{ id: "list-2" }], total: 3 });
  expect(await list({ namespace: "chess" })).toMatchObject({ rooms: [{ id: "list-3" }], total: 1 });
});

test("[RM341] a room is seen with its players, states, metadata and timers", async () => {
  const [one] = users();
  const socket = await enter(one, "seen");
  await act(socket, "alarm");
  expect(await view("game/seen")).toMatchObject({
    ...{ namespace: "game", id: "seen", status: "live", playerCount: 1, isTruncated: false },
    players: [{ userId: one.id, role: "user", connections: 1, state: { cards: [1, 2] } }],
    ...{ metadata: { title: "A game" }, sharedState: { last: one.id }, serverState: { solution: 42 } },
    timers: [{ name: "later", dueAt: expect.any(String) }],
  });
  expect((await platform.service.get(`${PATH}/game/nowhere`)).status).toBe(404);
});

test("[RM341] of large states the parts that fit are shown", async () => {
  const [one] = users();
  const socket = await enter(one, "large");
  await act(socket, "fill", { parts: 100 });
  const { isTruncated, sharedState, stateBytes } = await view("game/large");
  expect(isTruncated).toBe(true);
  expect(Number(stateBytes)).toBeGreaterThan(1_000_000);
  expect(JSON.stringify(sharedState).length).toBeLessThanOrEqual(256 * 1024);
  expect(JSON.stringify(sharedState).length).toBeGreaterThan(240 * 1024);
  expect(sharedState).toMatchObject({ part0: { n: 0 }, part24: { n: 24 } });
});

test("[RM341] a room that is not in memory is shown as it was saved last", async () => {
  const [one] = users();
  await enter(one, "asleep", "hall");
  await until("it hibernates", async () => (await view("hall/asleep"))["status"] === "hibernating");
  expect(await view("hall/asleep")).toMatchObject({ playerCount: 1, sharedState: {}, players: [{ userId: one.id }] });
  const socket = await enter(one, "saved");
  await socket.close();
  await until("it is saved", async () => (await view("game/saved"))["status"] === "saved");
  expect(await view("game/saved")).toMatchObject({
    ...{ players: [], playerCount: 0, sharedState: { last: one.id, left: "leave" }, serverState: { solution: 42 } },
    ...{ metadata: { title: "A game" }, stateBytes: null },
  });
});

test("[RM342] a player is kicked, also where only the place is left, and that is in the audit log", async () => {
  const [one, other] = users();
  const kicked = await enter(one, "kicks");
  const stays = await enter(other, "kicks");
  const kick = (userId: string) => platform.service.post(`${PATH}/game/kicks/kick`, { userId });
  expect(await kick(one.id)).toMatchObject({ status: 200, body: { ok: true } });
  await kicked.nextOf("kicked");
  expect((await kicked.closed).code).toBe(4001);
  await until("onLeave ran", async () => (await view("game/kicks"))["sharedState"] !== null);
  await until("the player left", async () => {
    const { sharedState, playerCount } = await view("game/kicks");
    return playerCount === 1 && JSON.stringify(sharedState).includes('"left":"kicked"');
  });
  expect((await kick(one.id)).status).toBe(404);
  // Lost without a close: the place is kept.
  stays.terminate();
  await until("the place is kept", async () =>
    JSON.stringify((await view("game/kicks"))["players"]).includes('"connections":0'),
  );
  expect((await kick(other.id)).status).toBe(200);
  await until("the room is gone", async () => (await view("game/kicks"))["status"] === "saved");
  const { body } = await platform.service.get<{ entries: JsonObject[] }>("/api/admin/audit?action=room.kick&limit=1");
  expect(body.entries[0]).toMatchObject({ target: "rooms/game/kicks", after: { userId: other.id } });
});

test("[RM342] a player who is kicked while the room hibernates does not come back with what was saved", async () => {
  const [one, other] = users();
  const kicked = await enter(one, "dozing", "hall");
  const stays = await enter(other, "dozing", "hall");
  await until("it hibernates", async () => (await view("hall/dozing"))["status"] === "hibernating");
  expect((await platform.service.post(`${PATH}/hall/dozing/kick`, { userId: one.id })).status).toBe(200);
  expect((await kicked.closed).code).toBe(4001);
  // Its leaving is an event of the room, which wakes it.
  await stays.nextOf("sync");
  expect(await view("hall/dozing")).toMatchObject({ playerCount: 1, players: [{ userId: other.id }] });
  await stays.close();
  await until("nobody is left", async () => (await view("hall/dozing"))["status"] === "saved");
});

test("[RM343] a room is closed: everybody is kicked, and it is saved", async () => {
  const [one, other] = users();
  const sockets = [await enter(one, "closes"), await enter(one, "closes"), await enter(other, "closes")];
  const close = () => platform.service.post(`${PATH}/game/closes/close`);
  expect(await close()).toMatchObject({ status: 200, body: { kicked: 2 } });
  for (const socket of sockets) expect((await socket.closed).code).toBe(4001);
  await until("it is saved", async () => (await view("game/closes"))["status"] === "saved");
  expect((await close()).status).toBe(404);
  const { body } = await platform.service.get<{ entries: JsonObject[] }>("/api/admin/audit?action=room.close&limit=1");
  expect(body.entries[0]).toMatchObject({ target: "rooms/game/closes", after: { kicked: 2 } });
  // They may come back, to what was saved.
  const { sync } = await enter(one, "closes");
  expect(sync).toMatchObject({ sharedState: { left: "kicked" } });
});

test("[RM340] [RM342] [RM343] rooms need a service key with a scope of their namespace", async () => {
  const [one] = users();
  await enter(one, "scoped");
  await enter(one, "scoped", "chess");
  const reads = [PATH, `${PATH}/game/scoped`];
  for (const path of reads) {
    expect((await platform.get(path)).status).toBe(401);
    expect((await platform.as(one.token).get(path)).status).toBe(401);
    expect((await platform.withKey("nothing-key-0123456789abcdefghijklmnopqrst").get(path)).status).toBe(403);
  }
  const games = await list({}, GAMES);
  expect(games.namespaces.map(({ name }) => name)).toEqual(["game"]);
  expect(new Set(games.rooms.map(({ namespace }) => namespace))).toEqual(new Set(["game"]));
  const as = (key: string) => platform.withKey(key);
  expect((await as(GAMES).get(`${PATH}?namespace=chess`)).status).toBe(403);
  expect((await as(GAMES).get(`${PATH}/chess/scoped`)).status).toBe(403);
  expect((await as(GAMES).post(`${PATH}/chess/scoped/close`)).status).toBe(403);
  expect((await as(READER).get(`${PATH}/chess/scoped`)).status).toBe(200);
  expect((await as(READER).post(`${PATH}/chess/scoped/close`)).status).toBe(403);
  expect((await as(READER).post(`${PATH}/chess/scoped/kick`, { userId: one.id })).status).toBe(403);
  expect((await as(READER).get(`${PATH}?namespace=nowhere`)).status).toBe(404);
  for (const query of ["limit=0", "limit=501", `prefix=${"x".repeat(129)}`, "unknown=1"]) {
    expect({ query, status: (await as(READER).get(`${PATH}?${query}`)).status }).toEqual({ query, status: 400 });
  }
});
