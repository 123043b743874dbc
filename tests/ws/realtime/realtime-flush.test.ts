import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, type TestSocket, testPlatform } from "../../support/index.ts";
import { connect, subscribe } from "./realtime-support.ts";

// A rule that is slow for each record, one that looks something up, and one that is a constant.
const CONFIG = `{
  databases: { shared: { tables: {
    open: { schema: { n: { type: "integer" } }, access: { read: true } },
    slow: { schema: { n: { type: "integer" } }, access: {
      read: async (auth, record) => { await new Promise((done) => setTimeout(done, 5)); return record === null || record.n % 2 === 0; },
    } },
    asked: { schema: { n: { type: "integer" } }, access: {
      read: async (auth, record, { table }) => { await new Promise((done) => setTimeout(done, 20)); return table("members").get(auth.id) !== null; },
    } },
    members: { schema: { n: { type: "integer" } }, access: {} },
  } } },
}`;

let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
  await insert("members", { id: ann.id });
});
afterAll(() => platform.stop());

async function insert(table: string, record: JsonObject): Promise<void> {
  expect((await platform.service.post(`/api/db/shared/tables/${table}`, record)).status).toBe(201);
}

/** The numbers of the changes that come before the answer. */
async function flushed(socket: TestSocket, requestId: string): Promise<unknown[]> {
  const numbers: unknown[] = [];
  for (;;) {
    const message = await socket.next();
    if (message["type"] === "done") {
      expect(message).toEqual({ type: "done", requestId });
      return numbers;
    }
    const changes = message["type"] === "batch_changes" ? (message["changes"] as JsonObject[]) : [message];
    for (const { data } of changes) numbers.push((data as JsonObject)["n"]);
  }
}

for (const [table, isSeen] of [
  ["open", () => true],
  ["slow", (n: number) => n % 2 === 0],
  ["asked", () => true],
] as const) {
  test(`[RT241] flush is answered behind every change that was committed before it: ${table}`, async () => {
    const socket = await connect(platform, ann);
    await subscribe(socket, `realtime:shared:${table}`, { id: "own" });
    for (let round = 0; round < 10; round++) {
      const numbers = Array.from({ length: 1 + round }, (_, index) => round * 100 + index);
      await Promise.all(numbers.map((n) => insert(table, { n })));
      socket.send({ type: "flush", id: "own", requestId: `r${round}` });
      const heard = await flushed(socket, `r${round}`);
      expect([...heard].sort()).toEqual(numbers.filter((n) => isSeen(n)).sort());
    }
    await socket.close();
  });
}

test("[RT241] flush waits for a replay, and for a rule whose data have changed", async () => {
  const first = await connect(platform, ann);
  const { seq } = await subscribe(first, "realtime:shared:slow");
  await first.close();
  const numbers = Array.from({ length: 20 }, (_, index) => 2_000 + 2 * index);
  for (const n of numbers) await insert("slow", { n });
  const socket = await connect(platform, ann);
  socket.send({ type: "subscribe", channel: "realtime:shared:slow", since: seq });
  socket.send({ type: "flush", channel: "realtime:shared:slow", requestId: "replay" });
  await socket.expect({ type: "subscribed" });
  expect(await flushed(socket, "replay")).toEqual(numbers);

  await subscribe(socket, "realtime:shared:asked", { id: "asked" });
  await platform.service.patch(`/api/db/shared/tables/members/${ann.id}`, { n: 1 });
  await insert("asked", { n: 3_000 });
  socket.send({ type: "flush", id: "asked", requestId: "asked" });
  const messages: JsonObject[] = [];
  do messages.push(await socket.next());
  while (messages.at(-1)?.["type"] !== "done");
  // Either the change, or that the list is to be loaded again.
  expect(messages.some(({ type, resync }) => type === "db_change" || resync === true)).toBe(true);
  await socket.close();
});

test("[RT241] flush without a subscription, of another channel, or without an id of its own is refused by name", async () => {
  const socket = await connect(platform, ann);
  socket.send({ type: "flush", id: "none", requestId: "1" });
  await socket.expect({ type: "error", code: "NOT_SUBSCRIBED", id: "none", requestId: "1" });
  await subscribe(socket, "presence:lobby");
  await socket.expect({ type: "presence_sync" });
  socket.send({ type: "flush", channel: "presence:lobby", requestId: "2" });
  await socket.expect({ type: "error", code: "INVALID_CHANNEL", requestId: "2" });
  socket.send({ type: "flush", requestId: "3" });
  await socket.expect({ type: "error", code: "INVALID_MESSAGE", requestId: "3" });
  socket.send({ type: "flush", id: "none" });
  await socket.expect({ type: "error", code: "INVALID_MESSAGE" });
  await socket.close();
});
