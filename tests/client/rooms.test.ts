import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient, memoryStore, type PlatformError, type Room } from "../../src/client/index.ts";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import type config from "./rooms-config.ts";

let platform: TestPlatform;
let proxy: CuttingProxy;
beforeAll(async () => {
  platform = await testPlatform({ config: await Bun.file(new URL("rooms-config.ts", import.meta.url)).text() });
  proxy = await cuttingProxy(() => platform.url);
});
afterAll(async () => {
  await proxy.stop();
  await platform.stop();
});

async function signedIn(url = platform.url) {
  const client = createClient<typeof config>({ url, store: memoryStore() });
  await client.auth.signInAnonymously();
  return client;
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    ({ code, message }: PlatformError) => `${code}: ${message}`,
  );

const joined = (room: Pick<Room, "status">) => until("the room is joined", () => room.status === "joined");

test("[TC90] a room has its states and players, follows them, runs actions and hears messages", async () => {
  const [ann, bob] = [await signedIn(), await signedIn()];
  const room = await ann.rooms("quiz").join("friday");
  expect([room.id, room.status, room.mine, room.shared["count"]]).toEqual(["friday", "joined", { hand: ["ace"] }, 0]);
  const other = await bob.rooms("quiz").join("friday");
  let changes = 0;
  const stop = room.subscribe(() => changes++);
  const heard: unknown[] = [];
  other.on("shouted", (data) => heard.push(data));
  expect(await room.act("add", { by: 2 })).toEqual({ count: 2 });
  await until("both see it", () => room.shared["count"] === 2 && other.shared["count"] === 2);
  expect(await room.act("shout", "hey")).toBeNull();
  await until("it is heard", () => heard.length === 1);
  expect(heard).toEqual([{ from: ann.auth.user?.id, payload: "hey" }]);
  expect(await codeOf(room.act("refuse"))).toBe("invalid: Not now");
  // @ts-expect-error: no such action
  expect(await codeOf(room.act("nothing"))).toBe('not_found: There is no action "nothing"');
  await until("both players are listed", () => room.players.length === 2);
  expect(new Set(room.players.map(({ userId }) => userId))).toEqual(
    new Set([ann.auth.user?.id ?? "", bob.auth.user?.id ?? ""]),
  );
  await room.act("draw");
  await until("the hand is there", () => room.mine["hand"]?.toString() === "ace,king");
  expect(other.mine).toEqual({ hand: ["ace"] });
  expect(changes).toBeGreaterThan(2);
  stop();
  other.leave();
  await until("the other one has left", () => room.players.length === 1 && room.shared["leaves"] === 1);
  room.leave();
  expect([room.status, await codeOf(room.act("draw"))]).toEqual(["left", "network: The room was left"]);
  ann.close();
  bob.close();
});

test("[TC91] the state is immutable, and what a change does not touch stays the same object", async () => {
  const client = await signedIn();
  const room = await client.rooms("quiz").join("objects");
  const before = room.shared;
  const board = before["board"] as { [key: string]: object };
  await room.act("place", { path: "a/b", value: 7 });
  await until("it is placed", () => room.shared !== before);
  const after = room.shared["board"] as typeof board;
  expect(board["a"]).toEqual({ b: 1 });
  expect(after["a"]).toEqual({ b: 7 });
  expect(after["kept"]).toBe(board["kept"]);
  await room.act("place", { path: "a/b", value: null });
  await until("it is removed", () => Object.keys((room.shared["board"] as typeof board)["a"] ?? {}).length === 0);
  client.close();
  expect(room.status).toBe("left");
});

test("[TC93] after a lost connection it comes back to the same player, without leaving", async () => {
  const [client, watcher] = [await signedIn(proxy.url), await signedIn()];
  const watched = await watcher.rooms("quiz").join("cut");
  const room = await client.rooms("quiz").join("cut");
  for (let round = 1; round <= 3; round++) {
    proxy.cut();
    await until("the loss is noticed", () => room.status === "offline");
    // It waits for the connection.
    expect(await room.act("add", { by: 1 })).toEqual({ count: round });
    expect(room.status).toBe("joined");
  }
  await until("the other one sees it", () => watched.shared["count"] === 3);
  expect([watched.shared["joins"], watched.shared["leaves"]]).toEqual([2, 0]);
  client.close();
  watcher.close();
});

test("[TC93] after a restart and a kill of the server the room is there, with what it is then", async () => {
  const client = await signedIn(proxy.url);
  const room = await client.rooms("quiz").join("restarted");
  await room.act("add", { by: 5 });
  await platform.restart();
  await until("the stop is noticed", () => room.status === "offline");
  await joined(room);
  expect([room.shared["count"], room.shared["joins"], room.shared["leaves"]]).toEqual([5, 1, 0]);
  await platform.kill();
  await until("the kill is noticed", () => room.status === "offline");
  await platform.restart();
  await joined(room);
  expect(room.mine).toEqual({ hand: ["ace"] });
  client.close();
});

test("[TC94] an action whose answer is lost rejects, and is not sent again", async () => {
  const [client, watcher] = [await signedIn(proxy.url), await signedIn()];
  const room = await client.rooms("quiz").join("once");
  const watched = await watcher.rooms("quiz").join("once");
  proxy.loseAnswers(1);
  expect(await codeOf(room.act("add", { by: 1 }))).toBe("network: The connection was lost before the answer");
  await until("it was done", () => watched.shared["count"] === 1);
  await joined(room);
  expect(await room.act("add", { by: 1 })).toEqual({ count: 2 });
  client.close();
  watcher.close();
});

test("[TC95] a join is refused by the rule, by a full room, without a user, and for rooms that are not declared", async () => {
  const clients = await Promise.all([signedIn(), signedIn(), signedIn(), signedIn()]);
  const [ann] = clients;
  if (ann === undefined) throw new Error("nobody");
  expect(await codeOf(ann.rooms("quiz").join("secret"))).toStartWith("forbidden");
  await Promise.all(clients.slice(0, 3).map((client) => client.rooms("quiz").join("full")));
  expect(await codeOf(clients[3]?.rooms("quiz").join("full") ?? Promise.resolve())).toStartWith("conflict");
  const nobody = createClient<typeof config>({ url: platform.url, store: memoryStore() });
  expect(await codeOf(nobody.rooms("quiz").join("friday"))).toStartWith("unauthenticated");
  // @ts-expect-error: no such rooms
  expect(await codeOf(ann.rooms("chess").join("friday"))).toStartWith("not_found");
  for (const client of [...clients, nobody]) client.close();
});

test("[TC96] a kicked player, and one whose session ends, has left, and learns why", async () => {
  const [ann, bob] = [await signedIn(), await signedIn()];
  const room = await ann.rooms("quiz").join("kicks");
  const kicked = await bob.rooms("quiz").join("kicks");
  await room.act("kick", { userId: bob.auth.user?.id ?? "" });
  await until("the kicked one knows", () => kicked.status === "left");
  expect(kicked.error?.code).toBe("forbidden");
  const again = await bob.rooms("quiz").join("kicks");
  await bob.auth.signOut();
  await until("it has left", () => again.status === "left");
  expect(again.error?.code).toBe("unauthenticated");
  ann.close();
  bob.close();
});
