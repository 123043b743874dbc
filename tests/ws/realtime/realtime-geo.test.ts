import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { type ChangeEvent, connect, settled, subscribe } from "./realtime-support.ts";

const config = `{ databases: { shared: { tables: {
  places: { schema: { at: { type: "geo" } }, access: { read: true, insert: true, update: true, delete: true } },
  local: {
    schema: { at: { type: "geo" } },
    access: { read: () => [["at", "within", { lat: 0, lng: 180, meters: 1_000 }]], insert: true, update: true },
  },
} } } }`;

let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config });
  ann = await signIn(platform);
});
afterAll(() => platform.stop());

test.each([
  ["places", [["at", "inBox", { south: -1, west: 179, north: 1, east: -179 }]]],
  ["places", [{ not: [["at", "within", { lat: 0, lng: 0, meters: 20_000_000 }]] }]],
  ["local", null],
])("[RT355] %p with %j: records enter and leave an area", async (table, filters) => {
  const socket = await connect(platform, ann);
  await subscribe(socket, `realtime:shared:${table}`, filters === null ? {} : { filters });
  const path = `/api/db/shared/tables/${table}`;
  const put = async (id: string, lng: number) => {
    const query = { upsert: "true" };
    expect([200, 201]).toContain((await platform.service.post(path, { id, at: { lat: 0, lng } }, { query })).status);
  };
  const id = `${table}-${filters === null ? "rule" : JSON.stringify(filters).length}`;
  await put(`${id}-far`, 12);
  await put(id, 179.9999);
  await put(id, -180);
  await put(id, 170);
  await put(id, -179.9999);
  const seen: unknown[] = [];
  for (let count = 0; count < 4; count++) {
    const event = (await socket.expect({ type: "db_change" })) as ChangeEvent;
    seen.push([event.changeType, event.docId]);
  }
  expect(seen).toEqual([
    ["added", id],
    ["modified", id],
    ["removed", id],
    ["added", id],
  ]);
  await settled(socket);
});

test("[RT355] an area that does not exist is no filter", async () => {
  const socket = await connect(platform, ann);
  const filters = [["at", "inBox", { south: 1, west: 0, north: 0, east: 1 }]];
  socket.send({ type: "subscribe", channel: "realtime:shared:places", filters });
  await socket.expect({ type: "error", code: "INVALID_FILTER" });
});
