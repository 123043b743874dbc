import { afterAll, beforeAll, expect, test } from "bun:test";
import { isJsonObject, type JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { followDelta } from "../../support/room-client.ts";
import { roomVisits } from "../../support/room-visits.ts";

const CONFIG = `{
  auth: { anonymous: true },
  rooms: {
    large: {
      maxStateSize: 10485760,
      messageRate: 1000,
      access: { join: true },
      onCreate(room) {
        const cells = Object.fromEntries(Array.from({ length: 3000 }, (_, n) => ["c" + n, { text: "é".repeat(600), at: [n, { n }] }]));
        room.setShared({ cells, "": { long: "\\"x".repeat(300000) }, list: Array.from({ length: 9000 }, (_, n) => n), count: 0 });
      },
      onJoin(room, player) { room.setPlayer(player.userId, { own: "y".repeat(300000) }); },
      actions: {
        count(room) {
          room.setShared((state) => { state.count++; state.cells["c" + state.count].at = [state.count]; });
          return room.shared.count;
        },
        burn() { const until = performance.now() + 10; while (performance.now() < until); },
        hit: () => 1,
      },
    },
  },
}`;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
const { authenticate, enter, act, closeAll } = roomVisits(() => platform);

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob] = await Promise.all([signIn(platform), signIn(platform)]);
});

afterAll(async () => {
  await closeAll();
  await platform.stop();
});

test("[RM102] clients that join a large room while it changes follow it from their sync on", async () => {
  const actor = await enter(ann, "followed", "large");
  const followers = await Promise.all(Array.from({ length: 6 }, () => authenticate(bob, "followed", "large")));
  const rounds = 30;
  const follow = async (socket: TestSocket): Promise<JsonObject> => {
    socket.send({ type: "join" });
    const sync = await socket.nextOf("sync");
    expect(sync["playerState"]).toEqual({ own: "y".repeat(300_000) });
    let state = isJsonObject(sync["sharedState"]) ? sync["sharedState"] : {};
    let version = Number(sync["sharedVersion"]);
    while (state["count"] !== rounds) {
      const { delta, version: next } = await socket.nextOf<{ delta: JsonObject; version: number }>("shared_delta");
      expect(next).toBe(++version);
      state = followDelta(state, delta);
    }
    return state;
  };
  const following = followers.map(follow);
  for (let round = 1; round <= rounds; round++) expect(await act(actor, "count")).toMatchObject({ result: round });
  const states = await Promise.all(following);
  actor.send({ type: "join" });
  const last = await actor.nextOf("sync");
  for (const state of states) expect(state).toEqual(last["sharedState"] as JsonObject);
});

test("[RM101] a room that takes long delays its own clients, and no others", async () => {
  const burning = await enter(ann, "burning", "large");
  const other = await enter(bob, "other", "large");
  const count = 150;
  for (let index = 0; index < count; index++) {
    burning.send({ type: "send", actionType: "burn", requestId: `b${index}` });
  }
  burning.send({ type: "ping" });
  await burning.nextOf("pong");
  expect(await act(other, "hit")).toMatchObject({ type: "action_result", result: 1 });
  expect((await platform.get("/api/health")).status).toBe(200);
  const isAnswered = (message: JsonObject): boolean => message["requestId"] === `b${count - 1}`;
  expect(burning.pending.some(isAnswered)).toBe(false);
  let last: JsonObject = {};
  while (!isAnswered(last)) last = await burning.nextOf("action_result");
});

test("[RM103] an action of too many values is refused, and a join that hints at as many is not", async () => {
  const socket = await authenticate(ann, "values", "large");
  const values = (count: number): number[] => Array.from({ length: count }, () => 0);
  socket.send({ type: "join", lastSharedState: { list: values(100_000) }, requestId: "j" });
  await socket.nextOf("sync");
  socket.send({ type: "send", actionType: "hit", payload: values(30_000), requestId: "many" });
  expect(await socket.nextOf("error")).toMatchObject({ code: "INVALID_MESSAGE", requestId: "many" });
  expect(await act(socket, "hit", values(15_000))).toMatchObject({ type: "action_result" });
  expect(await act(socket, "hit", ",[{".repeat(20_000))).toMatchObject({ type: "action_result" });
});

test("[RM34] a large room is restored from the file as it was", async () => {
  const socket = await enter(bob, "returns", "large");
  await act(socket, "count");
  const { sync } = socket;
  await socket.close();
  const again = await enter(bob, "returns", "large");
  expect(again.sync["sharedState"]).toMatchObject({ count: 1 });
  expect(Object.keys(again.sync["sharedState"] as JsonObject)).toEqual(Object.keys(sync["sharedState"] as JsonObject));
  expect(again.sync["playerState"]).toEqual({ own: "y".repeat(300_000) });
});
