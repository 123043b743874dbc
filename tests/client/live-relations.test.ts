import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Client, clientOf, createContext } from "../../src/client/client.ts";
import { field, none, not, some } from "../../src/client/index.ts";
import { memoryStore } from "../../src/client/store.ts";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";
import { createWire, fastRuntime, type Wire } from "./wire.ts";

// Live queries with relations: the server alone knows what other tables have.

const CONFIG = `{
  auth: { anonymous: true },
  databases: { shared: { tables: {
    docs: {
      schema: { title: { type: "string" }, points: { type: "integer" }, teamId: { type: "string" } },
      access: { read: true, insert: true, update: true, delete: true },
    },
    tags: {
      schema: { docId: { type: "string" }, name: { type: "string" } },
      indexes: [{ fields: ["docId"] }], access: { read: true, insert: true, delete: true },
    },
    members: {
      schema: { teamId: { type: "string" }, userId: { type: "string" } },
      indexes: [{ fields: ["teamId"] }], access: { read: (auth) => auth !== null && [["userId", "==", auth.id]] },
    },
  } } },
}`;

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const at = (table: string) => `/api/db/shared/tables/${table}`;
async function put(table: string, record: JsonObject): Promise<void> {
  expect((await platform.service.post(at(table), record)).status).toBe(201);
}
async function visit(work: (client: Client, wire: Wire) => Promise<void>): Promise<void> {
  const wire = createWire();
  const options = { url: platform.url, store: memoryStore(), webSocket: wire.WebSocket };
  const client = clientOf(createContext(options, fastRuntime(1)));
  await client.auth.signIn({ email: user.email, password: user.password });
  try {
    await work(client, wire);
  } finally {
    client.close();
  }
}

const tagged = (name: string) =>
  some("tags", [
    ["docId", "==", field("id")],
    ["name", "==", name],
  ]);
const titles = (live: { items: readonly object[] }) => live.items.map((item) => (item as JsonObject)["title"]);
const shows = (live: { items: readonly object[]; status: string }, ...wanted: string[]) =>
  until(`it shows ${wanted}`, () => live.status === "live" && String(titles(live)) === String(wanted));

test("[TC361] a live query with relations is its list, whatever changes in either table", () =>
  visit(async (client) => {
    for (const id of ["a1", "a2", "a3"]) await put("docs", { id, title: id, points: 1 });
    await put("tags", { id: "t1", docId: "a1", name: "red" });
    const docs = client.db("shared").table("docs");
    const own = docs.where("points", "==", 1);
    const [red, others] = [own.where(tagged("red")).live(), own.where([not([tagged("red")])]).live()];
    for (const live of [red, others]) live.subscribe(() => {});
    await shows(red, "a1");
    await shows(others, "a2", "a3");
    await put("tags", { id: "t2", docId: "a2", name: "red" });
    await shows(red, "a1", "a2");
    await shows(others, "a3");
    await platform.service.delete(`${at("tags")}/t1`);
    await shows(red, "a2");
    await shows(others, "a1", "a3");
    await platform.service.patch(`${at("docs")}/a2`, { title: "a2b" });
    await shows(red, "a2b");
    await platform.service.patch(`${at("docs")}/a2`, { points: 2 });
    await shows(red);
    await platform.service.patch(`${at("docs")}/a2`, { points: 1 });
    await shows(red, "a2b");
    await platform.service.delete(`${at("docs")}/a2`);
    await shows(red);
    expect(await own.where(tagged("red")).count()).toBe(0);
  }));

test("[TC361] it asks what the user may read of the other table, and what it comes to read", () =>
  visit(async (client) => {
    await put("docs", { id: "b1", title: "b1", teamId: "one" });
    await put("docs", { id: "b2", title: "b2", teamId: "two" });
    await put("members", { id: "m0", teamId: "one", userId: "another" });
    const member = some("members", [["teamId", "==", field("teamId")]]);
    const live = client.db("shared").table("docs").where([member]).live();
    live.subscribe(() => {});
    await shows(live);
    await put("members", { id: "m1", teamId: "two", userId: user.id });
    await shows(live, "b2");
    await platform.service.patch(`${at("members")}/m1`, { teamId: "one" });
    await shows(live, "b1");
    await platform.service.delete(`${at("members")}/m1`);
    await shows(live);
  }));

test("[TC361] lost connections, limits, sorts and aggregates", () =>
  visit(async (client, wire) => {
    for (let points = 1; points <= 8; points++) {
      await put("docs", { id: `c${points}`, title: `c${points}`, points, teamId: "c" });
      if (points % 2 === 0) await put("tags", { id: `c${points}`, docId: `c${points}`, name: "even" });
    }
    const query = client.db("shared").table("docs").where("teamId", "==", "c").where(tagged("even"));
    const live = query.sort("points", "desc").limit(2).live();
    live.subscribe(() => {});
    await shows(live, "c8", "c6");
    expect(await query.aggregate({ select: ["sum(points)"] })).toEqual([{ "sum(points)": 20 }]);
    wire.cut();
    await platform.service.delete(`${at("tags")}/c8`);
    await put("tags", { id: "c7", docId: "c7", name: "even" });
    await shows(live, "c7", "c6");
    expect(live.hasMore).toBe(true);
    expect(await query.update({ points: 0 })).toEqual({ processed: 4, succeeded: 4 });
    expect((await query.sort("points").list()).items.map(({ points }) => points)).toEqual([0, 0, 0, 0]);
  }));

test("[TC362] own writes show what is known: relations of shown records stay, those of others are not guessed", () =>
  visit(async (client) => {
    await put("docs", { id: "d1", title: "d1", points: 1, teamId: "d" });
    await put("tags", { id: "d1", docId: "d1", name: "blue" });
    await put("tags", { id: "d2", docId: "d2", name: "blue" });
    const docs = client.db("shared").table("docs");
    const own = docs.where("teamId", "==", "d").where("points", "<", 5);
    const [blue, plain] = [
      own.where(tagged("blue")).live(),
      own
        .where(
          none("tags", [
            ["docId", "==", field("id")],
            ["name", "==", "blue"],
          ]),
        )
        .live(),
    ];
    const seen: JsonValue[] = [];
    plain.subscribe(() => seen.push(titles(plain) as JsonValue));
    blue.subscribe(() => {});
    await shows(blue, "d1");
    await shows(plain);
    const renamed = docs.update("d1", { title: "renamed" });
    expect([titles(blue), titles(plain)]).toEqual([["renamed"], []]);
    await renamed;
    const inserted = docs.insert({ id: "d2", title: "d2", points: 2, teamId: "d" });
    expect([titles(blue), titles(plain)]).toEqual([["renamed"], []]);
    await inserted;
    await shows(blue, "renamed", "d2");
    // What is known about the record itself is shown at once.
    const moved = docs.update("d1", { points: 9 });
    expect(titles(blue)).toEqual(["d2"]);
    await moved;
    const removed = docs.delete("d2");
    expect(titles(blue)).toEqual([]);
    await removed;
    await shows(blue);
    expect(seen.flat()).toEqual([]);
  }));

test("[TC363] more than five relations are all judged by the server", () =>
  visit(async (client) => {
    const names = ["n1", "n2", "n3", "n4", "n5", "n6", "n7"];
    for (const id of ["e1", "e2"]) await put("docs", { id, title: id, points: 1, teamId: "e" });
    for (const name of names) await put("tags", { docId: "e1", name });
    for (const name of names.slice(1)) await put("tags", { docId: "e2", name });
    let query = client.db("shared").table("docs").where("teamId", "==", "e");
    for (const name of names) query = query.where(tagged(name));
    const live = query.where("points", "==", 1).live();
    live.subscribe(() => {});
    await shows(live, "e1");
    await platform.service.patch(`${at("docs")}/e2`, { title: "e2b" });
    await put("tags", { docId: "e2", name: "n1" });
    await shows(live, "e1", "e2b");
  }));

test("[TC363] a relation that the server refuses is an error of the query", () =>
  visit(async (client) => {
    const live = client
      .db("shared")
      .table("docs")
      .where(some("tags", [["name", "==", "red"]]))
      .live();
    live.subscribe(() => {});
    await until("it is refused", () => live.status === "error");
    expect(live.error?.message).toContain('indexes: [{ fields: ["name"] }]');
  }));
