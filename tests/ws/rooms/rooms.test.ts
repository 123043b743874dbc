import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, signToken, type TestPlatform, testPlatform } from "../../support/index.ts";
import { CONFIG, roomVisits } from "../../support/room-visits.ts";
import { until } from "../../support/until.ts";

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
const { connect, authenticate, enter, act, closeAll } = roomVisits(() => platform);

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob] = await Promise.all([signIn(platform), signIn(platform)]);
});

afterAll(async () => {
  await closeAll();
  await platform.stop();
});

test("[RM1] an upgrade without a valid namespace and id is refused", async () => {
  const status = async (query: string) => (await platform.get(`/api/room${query}`)).status;
  expect(await status("?namespace=game")).toBe(400);
  expect(await status("?id=a")).toBe(400);
  expect(await status(`?namespace=game&id=${"x".repeat(129)}`)).toBe(400);
  expect(await status("?namespace=game&id=a%2Fb")).toBe(400);
  expect(await status("?namespace=nothing&id=a")).toBe(404);
  expect(await status("?namespace=game&id=a")).toBe(400);
  await expect(connect("a", "nothing")).rejects.toThrow();
});

test("[RM2] five connections of one address may wait for auth, and an upgrade that finds no place is refused", async () => {
  const waiting = await Promise.all([1, 2, 3, 4, 5].map(() => connect("pending", "aside")));
  await expect(connect("pending", "aside")).rejects.toThrow();
  const refused = await fetch(`${platform.url}/api/room?namespace=aside&id=pending`);
  expect(refused.status).toBe(429);
  waiting[0]?.send({ type: "auth", token: ann.token });
  await waiting[0]?.expect({ type: "auth_success" });
  waiting[1]?.close();
  const further = await Promise.all([connect("pending", "aside"), connect("pending", "aside")]);
  for (const socket of [...waiting, ...further]) await socket.close();
});

test("[RM2] thirty players behind one address and a slow network can all connect, and each namespace has places of its own", async () => {
  const players = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const socket = await connect("crowd");
      // What a round trip to a far server takes.
      await Bun.sleep(100);
      socket.send({ type: "auth", token: ann.token });
      await socket.expect({ type: "auth_success" });
      return socket;
    }),
  );
  const waiting = await Promise.all(Array.from({ length: 5 }, () => connect("crowd")));
  const elsewhere = await connect("crowd", "aside");
  for (const socket of [...players, ...waiting, elsewhere]) await socket.close();
});

test("[RM3] a wrong token is AUTH_FAILED, and the connection may try again", async () => {
  const socket = await connect("auth");
  const forged = await signToken({ sub: ann.id, sid: "x" }, { secret: "another secret of more than 32 bytes" });
  for (const token of ["nonsense", forged, 5, null]) {
    socket.send({ type: "auth", token });
    await socket.expect({ type: "error", code: "AUTH_FAILED" });
  }
  socket.send({ type: "auth", token: ann.token });
  const success = await socket.expect({ type: "auth_success", userId: ann.id });
  expect(typeof success["connectionId"]).toBe("string");
});

test("[RM4] a connection without auth in time is closed with 4000", async () => {
  const socket = await connect("auth");
  await socket.expect({ type: "error", code: "AUTH_TIMEOUT" });
  expect((await socket.closed).code).toBe(4000);
});

test("[RM5] before auth, only auth and ping are accepted", async () => {
  for (const message of [
    { type: "join" },
    { type: "send", actionType: "add", requestId: "1" },
    { type: "x" },
    5,
    null,
  ]) {
    const socket = await connect("auth");
    socket.send({ type: "ping" });
    await socket.expect({ type: "pong" });
    socket.send(message);
    await socket.expect({ type: "error", code: "NOT_AUTHENTICATED" });
    expect((await socket.closed).code).toBe(4000);
  }
});

test("[RM5] messages sent right behind auth and join wait for their answers", async () => {
  const socket = await connect("eager", "strict");
  socket.send({ type: "auth", token: ann.token });
  socket.send({ type: "join" });
  socket.send({ type: "send", actionType: "hit", requestId: "a" });
  await socket.expect({ type: "auth_success" });
  await socket.expect({ type: "sync" });
  await socket.expect({ type: "action_result", requestId: "a", result: 1 });
  const refused = await connect("eager", "strict");
  refused.send({ type: "auth", token: "nonsense" });
  refused.send({ type: "join" });
  await refused.expect({ code: "AUTH_FAILED" });
  await refused.expect({ code: "NOT_AUTHENTICATED" });
  expect((await refused.closed).code).toBe(4000);
});

test("[RM6] a message that is not JSON closes with 4000, before auth and after", async () => {
  const before = await connect("json");
  before.send("{oops");
  await before.expect({ type: "error", code: "INVALID_JSON" });
  expect((await before.closed).code).toBe(4000);
  const after = await enter(ann, "json");
  after.send("");
  await after.expect({ type: "error", code: "INVALID_JSON" });
  expect((await after.closed).code).toBe(4000);
});

test("[RM7] a further auth refreshes; an invalid token and another user's change nothing", async () => {
  const socket = await enter(ann, "refresh");
  socket.send({ type: "auth", token: ann.token });
  await socket.expect({ type: "auth_refreshed", userId: ann.id });
  for (const token of ["nonsense", bob.token]) {
    socket.send({ type: "auth", token });
    await socket.expect({ type: "error", code: "AUTH_REFRESH_FAILED" });
  }
  expect(await act(socket, "whoami")).toMatchObject({ result: { userId: ann.id, role: "user" } });
});

test("[RM8] messages over the rate are dropped, and the connection stays open", async () => {
  const socket = await authenticate(ann, "rate", "quick");
  socket.send({ type: "join" });
  await socket.expect({ type: "sync" });
  const count = 40;
  for (let index = 0; index < count; index++) {
    socket.send({ type: "send", actionType: "hit", requestId: `r${index}` });
  }
  const answers: JsonObject[] = [];
  while (answers.length < count) answers.push(await socket.next());
  // Dropped ones are answered at once, and a slow machine may let some more through than at first.
  expect(new Set(answers.map((answer) => answer["requestId"])).size).toBe(count);
  const dropped = answers.filter(({ type, code }) => type === "error" && code === "RATE_LIMITED");
  const done = answers.filter(({ type }) => type === "action_result").map(({ requestId }) => requestId);
  expect(done.slice(0, 5)).toEqual(["r0", "r1", "r2", "r3", "r4"]);
  expect(dropped.length).toBe(count - done.length);
  expect(dropped.length).toBeGreaterThan(0);
  await until("the room takes the action", async () => (await act(socket, "hit"))["type"] === "action_result");
});

test("[RM9] an error has the requestId of its message, and the connection stays open", async () => {
  const socket = await authenticate(ann, "errors");
  socket.send({ type: "send", actionType: "add", requestId: "n" });
  await socket.expect({ type: "error", code: "NOT_JOINED", requestId: "n" });
  socket.send({ type: "join" });
  await socket.nextOf("sync");
  await socket.expect({ type: "message", messageType: "welcome" });
  socket.send({ type: "send", requestId: "a" });
  await socket.expect({ type: "error", code: "INVALID_ACTION", requestId: "a" });
  socket.send({ type: "send", actionType: "add" });
  await socket.expect({ type: "error", code: "INVALID_ACTION" });
  for (const actionType of ["missing", "constructor", "toString", "__proto__"]) {
    socket.send({ type: "send", actionType, requestId: "m" });
    await socket.expect({ type: "error", code: "NO_HANDLER", requestId: "m" });
  }
  for (const message of [{ type: "dance", requestId: "d" }, { requestId: "d" }]) {
    socket.send(message);
    await socket.expect({ type: "error", code: "INVALID_MESSAGE", requestId: "d" });
  }
  socket.send([1, 2]);
  await socket.expect({ type: "error", code: "INVALID_MESSAGE" });
  socket.send({ type: "ping" });
  await socket.expect({ type: "pong" });
});

test("[RM9] an unknown member of a message is named", async () => {
  const socket = await authenticate(ann, "members");
  socket.send({ type: "join", state: {}, requestId: "j" });
  await socket.expect({ code: "INVALID_MESSAGE", message: 'state is not a member of "join"', requestId: "j" });
  socket.send({ type: "join", lastSharedState: {}, lastSharedVersion: 1, lastPlayerState: {}, lastPlayerVersion: 1 });
  await socket.nextOf("sync");
  await socket.expect({ type: "message", messageType: "welcome" });
  socket.send({ type: "send", action: "whoami", requestId: "s" });
  await socket.expect({ code: "INVALID_MESSAGE", message: 'action is not a member of "send"', requestId: "s" });
  socket.send({ type: "ping", sentAt: 5 });
  await socket.expect({ type: "pong" });
  expect(await act(socket, "whoami")).toMatchObject({ type: "action_result" });
});

test("[RM9] a message that nests too deep, or holds a value that no JSON value can be, reaches no handler", async () => {
  const socket = await enter(ann, "nested");
  const brackets = 30_000;
  for (const payload of [`${"[".repeat(brackets)}${"]".repeat(brackets)}`, "1e400", "9007199254740993", '"\\ude00"']) {
    socket.send(`{"type":"send","actionType":"whoami","requestId":"odd","payload":${payload}}`);
    expect(await socket.nextOf("error")).toMatchObject({ code: "INVALID_MESSAGE", requestId: "odd" });
  }
  expect(await act(socket, "whoami")).toMatchObject({ type: "action_result" });
});

test("[RM10] the connections of a session that ends are closed", async () => {
  const cid = await signIn(platform);
  const joined = await enter(cid, "revoked", "open");
  const waiting = await authenticate(cid, "revoked", "open");
  expect((await platform.service.post(`/api/auth/admin/users/${cid.id}/revoke`)).status).toBe(200);
  for (const socket of [joined, waiting]) {
    await socket.expect({ type: "error", code: "SESSION_REVOKED" });
    expect((await socket.closed).code).toBe(4003);
  }
  const dan = await signIn(platform);
  const other = await enter(dan, "revoked", "open");
  await platform.service.patch(`/api/auth/admin/users/${dan.id}`, { disabled: true });
  await other.expect({ type: "error", code: "SESSION_REVOKED" });
  expect((await other.closed).code).toBe(4003);
});

test("[RM10] actions that wait when their session ends do not run", async () => {
  const eve = await signIn(platform);
  const [hers, his] = [await enter(eve, "ended"), await enter(bob, "ended")];
  hers.send({ type: "send", actionType: "slowly", payload: { ms: 500 }, requestId: "1" });
  hers.send({ type: "send", actionType: "add", payload: { by: 1 }, requestId: "2" });
  hers.send({ type: "bad" });
  // It is answered at once: the actions before it have arrived.
  await hers.nextOf("error");
  expect((await platform.service.post(`/api/auth/admin/users/${eve.id}/revoke`)).status).toBe(200);
  expect((await hers.closed).code).toBe(4003);
  expect((await act(his, "read"))["result"]).toMatchObject({ shared: { slowly: true, count: 0 } });
});

test("[RM12] without a rule that returns true, a join is denied", async () => {
  for (const [id, namespace] of [
    ["closed", "game"],
    ["broken", "game"],
    ["any", "denied"],
  ] as const) {
    const socket = await authenticate(ann, id, namespace);
    socket.send({ type: "join" });
    await socket.expect({ type: "error", code: "JOIN_DENIED" });
    socket.send({ type: "ping" });
    await socket.expect({ type: "pong" });
  }
  const admin = await signIn(platform, { role: "admin" });
  expect((await enter(admin, "closed")).sync).toMatchObject({ sharedState: { log: ["join"] } });
});

test("[RM13] an error in onJoin or onCreate denies the join and has no other effect", async () => {
  for (const [id, message] of [
    ["picky", "not you"],
    ["uncreatable", "not today"],
  ] as const) {
    const socket = await authenticate(ann, id);
    for (let attempt = 0; attempt < 2; attempt++) {
      socket.send({ type: "join" });
      await socket.expect({ type: "error", code: "JOIN_DENIED", message });
    }
  }
});

test("[RM14] a room is full with its players, those with kept places included", async () => {
  const users = await Promise.all([1, 2, 3, 4].map(() => signIn(platform)));
  const inside = await Promise.all(users.slice(0, 3).map((user) => enter(user, "full")));
  const late = await authenticate(users[3]!, "full");
  late.send({ type: "join" });
  await late.expect({ type: "error", code: "ROOM_FULL" });
  inside[0]?.terminate();
  expect((await enter(users[1]!, "full")).sync).toMatchObject({ type: "sync" });
  let answer: JsonObject = {};
  await until("a place in the room is free", async () => {
    late.send({ type: "join" });
    answer = await late.next();
    return answer["type"] !== "error";
  });
  expect(answer).toMatchObject({
    type: "sync",
    sharedState: { log: ["join", "join", "join", "disconnect", "join"] },
  });
});

test("[RM15] sync has the changes of onCreate and onJoin and precedes all messages; hints are ignored", async () => {
  const socket = await authenticate(ann, "hints");
  socket.send({
    ...{ type: "join", lastSharedState: { count: 1_000 }, lastSharedVersion: 77 },
    ...{ lastPlayerState: { rich: true }, lastPlayerVersion: 9 },
  });
  expect(await socket.next()).toEqual({
    ...{ type: "sync", sharedState: { log: ["join"], count: 0 }, sharedVersion: 1 },
    ...{ playerState: {}, playerVersion: 0 },
  });
  expect(await socket.next()).toEqual({ type: "message", messageType: "welcome", data: { players: 1 } });
  const second = await authenticate(bob, "hints");
  second.send({ type: "join" });
  await second.expect({ type: "sync", sharedState: { log: ["join", "join"], count: 0 }, sharedVersion: 2 });
  await second.expect({ type: "message", data: { players: 2 } });
  await socket.expect({ type: "shared_delta", delta: { log: ["join", "join"] }, version: 2 });
});

test("[RM16] two connections of one user are one player, and a second join gets a second sync", async () => {
  const one = await enter(ann, "twice");
  const two = await enter(ann, "twice");
  expect(two.sync).toMatchObject({ sharedState: { log: ["join"] } });
  two.send({ type: "join" });
  await two.expect({ type: "sync", sharedState: { log: ["join"] } });
  await one.close();
  expect(await act(two, "add", { by: 1 })).toMatchObject({ result: 1 });
  await two.close();
  const back = await enter(ann, "twice");
  expect(back.sync).toMatchObject({ sharedState: { log: ["join", "leave", "join"], count: 1 } });
});

test("[RM17] a player whose connection closes cleanly leaves at once", async () => {
  const stays = await enter(bob, "leave");
  for (const code of [1000, undefined]) {
    const goes = await enter(ann, "leave");
    await stays.nextOf("shared_delta");
    await goes.close(code);
    const delta = await stays.nextOf<{ delta: { log: string[] } }>("shared_delta");
    expect(delta.delta.log.at(-1)).toBe("leave");
  }
});

test("[RM18] a lost connection keeps its place for a while", async () => {
  const stays = await enter(bob, "grace");
  const goes = await enter(ann, "grace");
  await stays.nextOf("shared_delta");
  goes.terminate();
  const back = await enter(ann, "grace");
  expect(back.sync).toMatchObject({ sharedState: { log: ["join", "join"] } });
  back.terminate();
  const delta = await stays.nextOf("shared_delta");
  expect(delta).toMatchObject({ delta: { log: ["join", "join", "disconnect"] } });
});

test("[RM19] a kicked player's connections are closed with 4001, and onLeave gets the reason", async () => {
  const stays = await enter(bob, "kick");
  const one = await enter(ann, "kick");
  const two = await enter(ann, "kick");
  await stays.nextOf("shared_delta");
  await act(stays, "kick", { userId: ann.id });
  for (const socket of [one, two]) {
    expect(await socket.nextOf("kicked")).toEqual({ type: "kicked" });
    expect((await socket.closed).code).toBe(4001);
  }
  expect(await stays.nextOf("shared_delta")).toMatchObject({ delta: { log: ["join", "join", "kicked"] } });
});
