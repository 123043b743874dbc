import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { VERSION } from "../../../src/kernel/version.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { roomVisits } from "../../support/room-visits.ts";

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
const { connect, authenticate, closeAll } = roomVisits(() => platform);

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ rooms: { game: { messageRate: 1000, access: { join: true }, actions: {
      kick(room, player, payload) { room.kick(payload.userId); },
    } } } }`,
  });
  [ann, bob] = await Promise.all([signIn(platform), signIn(platform, { role: "editor" })]);
});
afterAll(async () => {
  await closeAll();
  await platform.stop();
});

async function join(user: SignedIn, room: string, more: JsonObject = {}): Promise<TestSocket> {
  const socket = await authenticate(user, room);
  socket.send({ type: "join", ...more });
  await socket.expect({ type: "sync" });
  return socket;
}

/** The user ids of the next list that has so many players. */
async function playersOf(socket: TestSocket, count: number): Promise<JsonObject[]> {
  for (;;) {
    const { players } = await socket.nextOf<{ players: JsonObject[] }>("players");
    if (players.length === count) return players;
  }
}

test("[RM220] players follow the sync where the join asks for them, and come again when they change", async () => {
  const watcher = await join(ann, "list", { players: true });
  const [own] = await playersOf(watcher, 1);
  expect(own).toEqual({ userId: ann.id, connectionId: expect.any(String), role: "user" });
  const other = await join(bob, "list");
  const players = await playersOf(watcher, 2);
  expect(players.map(({ userId, role }) => [userId, role])).toEqual([
    [ann.id, "user"],
    [bob.id, "editor"],
  ]);
  await platform.service.patch(`/api/auth/admin/users/${bob.id}`, { role: "admin" });
  expect((await playersOf(watcher, 2))[1]?.["role"]).toBe("admin");
  other.send({ type: "ping" });
  await other.expect({ type: "pong" });
  expect(other.pending).toEqual([]);
  await other.close();
  await playersOf(watcher, 1);
  await watcher.close();
});

test("[RM220] a kicked player is not in the list, and a join without players ends it", async () => {
  const watcher = await join(ann, "kick", { players: true });
  await join(bob, "kick");
  await playersOf(watcher, 2);
  watcher.send({ type: "send", actionType: "kick", payload: { userId: bob.id }, requestId: "1" });
  await playersOf(watcher, 1);
  watcher.send({ type: "join" });
  await watcher.expect({ type: "sync" });
  const other = await join(bob, "kick", { players: true });
  await playersOf(other, 2);
  watcher.send({ type: "ping" });
  await watcher.expect({ type: "pong" });
  watcher.send({ type: "join", players: "yes" });
  await watcher.expect({ type: "error", code: "INVALID_MESSAGE" });
  await Promise.all([watcher.close(), other.close()]);
});

test("[RM220] many joins at once are few lists", async () => {
  const watcher = await join(ann, "crowd", { players: true });
  const users = await Promise.all(Array.from({ length: 30 }, () => signIn(platform)));
  let lists = 0;
  const counting = (async () => {
    for (;;) {
      const { players } = await watcher.nextOf<{ players: JsonObject[] }>("players");
      lists++;
      if (players.length === users.length + 1) return;
    }
  })();
  await Promise.all(users.map((user) => join(user, "crowd")));
  await counting;
  expect(lists).toBeLessThan(users.length);
});

test("[SK220] [RM3] a room has users only; auth_success has the version", async () => {
  const socket = await connect("nobody");
  socket.send({ type: "auth", anonymous: true });
  await socket.expect({ type: "error", code: "AUTH_FAILED" });
  socket.send({ type: "auth", token: ann.token });
  await socket.expect({ type: "auth_success", userId: ann.id, version: VERSION });
  await socket.close();
});
