import { afterAll, beforeAll, expect, test } from "bun:test";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { followDelta } from "../../support/room-client.ts";
import { CONFIG, roomVisits } from "../../support/room-visits.ts";

const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {});

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
const { enter, act, flush, closeAll } = roomVisits(() => platform);

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob] = await Promise.all([signIn(platform), signIn(platform)]);
});

afterAll(async () => {
  await closeAll();
  await platform.stop();
});

test("[RM20] actions run in order of arrival, slow ones included", async () => {
  const [one, two] = [await enter(ann, "order"), await enter(bob, "order")];
  const steps = [
    ["slowAdd", 1], // 0 * 2 + 1
    ["add", 3], // 4
    ["slowAdd", 0], // 8
  ] as const;
  for (const [actionType, by] of steps) one.send({ type: "send", actionType, payload: { by }, requestId: actionType });
  const before = await flush(one);
  expect(await act(two, "add", { by: 10 })).toMatchObject({ type: "action_result", result: 18 });
  const isResult = ({ type }: JsonObject): boolean => type === "action_result";
  const results = before.filter(isResult);
  while (results.length < steps.length) results.push(await one.nextOf("action_result"));
  expect(results.map(({ result }) => result)).toEqual([1, 4, 8]);
});

test("[RM20] an action's result is JSON, and null when there is none", async () => {
  const socket = await enter(ann, "results");
  expect(await act(socket, "nothing")).toMatchObject({ type: "action_result", result: null });
  expect(await act(socket, "whoami", {})).toMatchObject({
    result: { userId: ann.id, role: "user", auth: { id: ann.id } },
  });
  expect(await act(socket, "db")).toMatchObject({ type: "action_result", result: true });
});

test("[RM21] nothing remains of an action that throws", async () => {
  const socket = await enter(ann, "throws");
  const watcher = await enter(bob, "throws");
  await socket.nextOf("shared_delta");
  expect(await act(socket, "fail")).toMatchObject({ type: "action_error", message: "not your turn" });
  expect(await act(socket, "unsayable")).toMatchObject({ type: "action_error" });
  await flush(watcher);
  await act(watcher, "add", { by: 1 });
  // The next delta has nothing of what failed, and no message came before it.
  expect(await socket.next()).toEqual({ type: "shared_delta", delta: { count: 1 }, version: 3 });
  expect(await watcher.next()).toMatchObject({ type: "shared_delta", delta: { count: 1 } });
  expect(await act(socket, "read")).toMatchObject({
    result: { shared: { log: ["join", "join"], count: 1 }, metadata: {} },
  });
  expect(await act(socket, "server")).toMatchObject({ result: {} });
});

test("[RM23] the action rule is checked, and a rule that throws denies", async () => {
  const socket = await enter(ann, "rule");
  expect(await act(socket, "confused")).toMatchObject({ type: "action_error", message: "Access denied" });
  expect(await act(socket, "early")).toMatchObject({ type: "action_error", message: "not before noon" });
  expect(await act(socket, "forbidden")).toMatchObject({ type: "action_error", message: "Access denied" });
});

test("[RM24] a state over its size is refused, and the state before it stays", async () => {
  const socket = await enter(ann, "size");
  expect(await act(socket, "set", { text: "x".repeat(3_000) })).toMatchObject({ type: "action_result" });
  const refused = await act(socket, "mine", { text: "x".repeat(2_000) });
  expect(refused).toMatchObject({ type: "action_error" });
  expect(String(refused["message"])).toContain("at most 4096 bytes");
  expect(await act(socket, "mine", { text: "x".repeat(500) })).toMatchObject({ type: "action_result" });
  expect(await act(socket, "set", { text: null })).toMatchObject({ type: "action_result" });
});

test("[RM25] null means absent, dots and __proto__ are errors; a draft can be changed, and the state itself cannot", async () => {
  const socket = await enter(ann, "json");
  expect(await act(socket, "dots")).toMatchObject({ type: "action_error" });
  expect(await act(socket, "proto")).toMatchObject({ type: "action_error" });
  expect(await act(socket, "frozen")).toMatchObject({ type: "action_error" });
  expect(await act(socket, "mutate")).toMatchObject({ type: "action_result" });
  expect(await socket.nextOf("shared_delta")).toEqual({
    type: "shared_delta",
    delta: { count: 100, log: ["join", "mutated"] },
    version: 2,
  });
  await act(socket, "nulls");
  expect(await socket.nextOf("shared_delta")).toEqual({ type: "shared_delta", delta: { log: null }, version: 3 });
  expect(await act(socket, "read")).toMatchObject({ result: { shared: { count: 100 } } });
});

test("[RM26] messages reach the users that they are sent to", async () => {
  const [annOne, annTwo, bobOne] = [await enter(ann, "mail"), await enter(ann, "mail"), await enter(bob, "mail")];
  await annOne.nextOf("shared_delta");
  await annTwo.nextOf("shared_delta");
  await act(bobOne, "tell", { n: 1 });
  for (const socket of [annOne, annTwo]) {
    await socket.expect({ type: "message", messageType: "news", data: { n: 1 } });
  }
  await act(annOne, "tell", { n: 2 });
  await bobOne.expect({ type: "message", messageType: "news", data: { n: 2 } });
  await act(bobOne, "whisper", { to: ann.id, text: "psst" });
  for (const socket of [annOne, annTwo]) await socket.expect({ messageType: "secret", data: "psst" });
  for (const socket of [bobOne, annOne]) expect(await flush(socket)).toEqual([]);
});

test("[RM27] a timer fires once, and setting it again replaces it", async () => {
  const socket = await enter(ann, "timer");
  await act(socket, "alarm", { ms: 30, n: 1 });
  await act(socket, "alarm", { ms: 60, n: 2 });
  const tick = await socket.nextOf("message");
  expect(tick).toMatchObject({ messageType: "tick", data: { n: 2 } });
  expect(await flush(socket)).toEqual([]);
  expect(await act(socket, "alarm", { ms: -1 })).toMatchObject({ type: "action_error" });
});

test("[RM28] a role that an administrator sets counts at the next action", async () => {
  const cid = await signIn(platform);
  const socket = await enter(cid, "role");
  expect(await act(socket, "whoami")).toMatchObject({ result: { role: "user" } });
  await platform.service.patch(`/api/auth/admin/users/${cid.id}`, { role: "editor" });
  expect(await act(socket, "whoami")).toMatchObject({ result: { role: "editor", auth: { role: "editor" } } });
});

test("[RM30] changes of one moment share a delta, and versions have no gap", async () => {
  const socket = await enter(ann, "deltas");
  const versions: unknown[] = [];
  const count = 100;
  for (let index = 0; index < count; index++) {
    socket.send({ type: "send", actionType: "add", payload: { by: 1 }, requestId: `d${index}` });
  }
  for (let seen: unknown = 0; seen !== count; ) {
    const { delta, version } = await socket.nextOf<{ delta: JsonObject; version: number }>("shared_delta");
    versions.push(version);
    seen = delta["count"];
  }
  expect(versions).toEqual(versions.map((_, index) => 2 + index));
  expect(versions.length).toBeLessThan(count);
});

test("[RM31] what a client builds from sync and deltas is the server's state", async () => {
  const one = await enter(ann, "follow");
  const two = await enter(bob, "follow");
  const shapes: JsonObject[] = [
    { a: { b: { c: { d: { e: { f: 1 } } } } } },
    { a: { b: { c: { d: { e: { f: 2, g: [1, { h: null }] } } } } } },
    { a: { b: { c: {} } }, list: [] },
    { a: 5, list: [[1], { x: 1 }] },
    { a: null, list: { not: "a list" } },
    { "": { "": 1 }, list: { not: null, but: "this" } },
  ];
  for (const shape of shapes) {
    await act(two, "set", shape);
    await two.nextOf("shared_delta");
  }
  // The second sync says what the server has; everything before it is what was followed.
  one.send({ type: "join" });
  let state = objectOf(one.sync["sharedState"]);
  let message = await one.next();
  for (; message["type"] !== "sync"; message = await one.next()) {
    if (message["type"] === "shared_delta") state = followDelta(state, objectOf(message["delta"]));
  }
  expect(state).toEqual(objectOf(message["sharedState"]));
  expect(state).toMatchObject({ "": { "": 1 }, list: { but: "this" } });
});

test("[RM32] a player's state reaches that player's connections only", async () => {
  const [annOne, annTwo, bobOne] = [await enter(ann, "hands"), await enter(ann, "hands"), await enter(bob, "hands")];
  await annOne.nextOf("shared_delta");
  await annTwo.nextOf("shared_delta");
  await act(bobOne, "hand", { to: ann.id, cards: ["ace"] });
  for (const socket of [annOne, annTwo]) {
    expect(await socket.next()).toEqual({ type: "player_delta", delta: { cards: ["ace"] }, version: 1 });
  }
  expect(await flush(bobOne)).toEqual([]);
  const annThree = await enter(ann, "hands");
  expect(annThree.sync).toMatchObject({ playerState: { cards: ["ace"] }, playerVersion: 1 });
  const bobTwo = await enter(bob, "hands");
  expect(bobTwo.sync).toMatchObject({ playerState: {}, playerVersion: 0 });
});
