import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";

// Each form of condition means in triggers and webhooks what it means in lists.

const OF_PROJECT = ["projectId", "==", { field: "projectId" }];
/** Conditions by name, with the records that meet them. */
const FILTERS: Record<string, { filter: JsonValue; ids: string }> = {
  or: { filter: [{ or: [[["title", "==", "x"]], [["n", "<", 5]]] }], ids: "ab" },
  orOfNothing: { filter: [{ or: [] }], ids: "" },
  and: { filter: [{ and: [[["title", "==", "x"]], [["n", ">", 5]]] }], ids: "a" },
  andOfNothing: { filter: [{ and: [] }], ids: "abc" },
  not: { filter: [{ not: [["title", "==", "x"]] }], ids: "bc" },
  some: { filter: [{ some: { table: "members", where: [OF_PROJECT, ["role", "==", "owner"]] } }], ids: "a" },
  none: { filter: [{ none: { table: "members", where: [OF_PROJECT] } }], ids: "bc" },
  nested: {
    filter: [{ or: [[{ not: [{ some: { table: "members", where: [OF_PROJECT] } }] }, ["n", "==", 1]]] }],
    ids: "b",
  },
  within: { filter: [["at", "within", { lat: 48.2, lng: 16.37, meters: 1000 }]], ids: "a" },
  inBox: { filter: [["at", "inBox", { south: -10, west: 170, north: 10, east: -170 }]], ids: "b" },
  datetime: { filter: [["due", "<", "2030-01-01T00:00:00+02:00"]], ids: "a" },
  date: { filter: [["day", "<", "2030-01-01"]], ids: "a" },
  has: { filter: [["tagIds", "has", "t3"]], ids: "b" },
  hasAny: { filter: [["tagIds", "hasAny", ["t1", "t3"]]], ids: "ab" },
  hasAnyOfNothing: { filter: [["tagIds", "hasAny", []]], ids: "" },
  hasAll: { filter: [["tagIds", "hasAll", ["t1", "t2"]]], ids: "a" },
  hasAllOfNothing: { filter: [["tagIds", "hasAll", []]], ids: "abc" },
  file: { filter: [["paper", "==", null]], ids: "abc" },
};
const RECORDS: JsonObject[] = [
  {
    id: "a",
    title: "x",
    n: 10,
    projectId: "p1",
    at: { lat: 48.201, lng: 16.371 },
    due: "2029-12-31T21:59:59.999Z",
    day: "2029-12-31",
    tagIds: ["t1", "t2"],
  },
  {
    id: "b",
    title: "y",
    n: 1,
    projectId: "p2",
    at: { lat: 0, lng: 180 },
    due: "2029-12-31T22:00:00Z",
    day: "2030-01-01",
    tagIds: ["t3"],
  },
  { id: "c" },
];

const delivered = new Map<string, Set<string>>();
const note = (into: Map<string, Set<string>>, name: string, id: string) =>
  into.set(name, (into.get(name) ?? new Set()).add(id));
const receiver = Bun.serve({
  port: 0,
  async fetch(request) {
    // As a webhook sends it.
    const { data } = (await request.json()) as { data: { after: { id: string } } };
    note(delivered, new URL(request.url).pathname.slice(1), data.after.id);
    return new Response(null, { status: 204 });
  },
});

const config = `
  const filters = ${JSON.stringify(Object.fromEntries(Object.entries(FILTERS).map(([name, { filter }]) => [name, filter])))};
  const on = { table: "shared.tasks", events: ["insert"] };
  const triggers = {}, webhooks = {};
  for (const [name, filter] of Object.entries({ ...filters, last: [["title", "==", "last"]] })) {
    triggers[name] = { on, filter, run: async ({ app, after }) => { await app.db("log").table("runs").insert({ name, of: after.id }); } };
    webhooks[name] = { on, filter, url: "http://127.0.0.1:${receiver.port}/" + name, secret: "whsec_${Buffer.alloc(32, 7).toString("base64")}" };
  }
  export default { triggers, webhooks, storage: { buckets: { papers: {} } }, databases: {
    log: { tables: { runs: {} } },
    shared: { tables: {
      tags: { schema: {} },
      members: { schema: { projectId: { type: "string" }, role: { type: "string" } }, indexes: [{ fields: ["projectId", "role"] }] },
      tasks: { schema: {
        title: { type: "string" }, n: { type: "integer" }, projectId: { type: "string" }, at: { type: "geo" }, due: { type: "datetime" },
        day: { type: "date" }, tagIds: { type: "references", references: "tags" }, paper: { type: "file", bucket: "papers" },
      } },
    } },
  } };`;

const T = "/api/db/shared/tables";
let platform: TestPlatform;
const insert = async (table: string, record: JsonObject) =>
  expect([await platform.service.post(`${T}/${table}`, record).then(({ status }) => status), record]).toEqual([
    201,
    record,
  ]);

beforeAll(async () => {
  platform = await testPlatform({ config });
  for (const id of ["t1", "t2", "t3"]) await insert("tags", { id });
  await insert("members", { projectId: "p1", role: "owner" });
  for (const record of RECORDS) await insert("tasks", record);
  await insert("tasks", { id: "last", title: "last" });
});
afterAll(async () => {
  await platform.stop();
  await receiver.stop(true);
});

/** Returns the ids by name, in order. */
const texts = (found: ReadonlyMap<string, ReadonlySet<string>>) =>
  Object.fromEntries(
    Object.keys(FILTERS).map((name) => [
      name,
      [...(found.get(name) ?? [])]
        .filter((id) => id !== "last")
        .sort()
        .join(""),
    ]),
  );
const expected = Object.fromEntries(Object.entries(FILTERS).map(([name, { ids }]) => [name, ids]));

test("[TG4] a trigger's filter means what a list's does, in every form", async () => {
  const ran = async () => {
    const { body } = await platform.service.get<{ items: { name: string; of: string }[] }>(
      "/api/db/log/tables/runs?limit=1000&total=false",
    );
    const found = new Map<string, Set<string>>();
    for (const { name, of } of body.items) note(found, name, of);
    return found;
  };
  // Rows are passed in the order of the commits: what is wrong had come before.
  await until("the last run", async () => (await ran()).has("last") && Bun.deepEquals(texts(await ran()), expected));
  const listed = new Map<string, Set<string>>();
  for (const [name, { filter }] of Object.entries(FILTERS)) {
    const query = `filter=${encodeURIComponent(JSON.stringify(filter))}`;
    const { status, body } = await platform.service.get<{ items: { id: string }[] }>(`${T}/tasks?${query}`);
    expect([name, status]).toEqual([name, 200]);
    for (const { id } of body.items) note(listed, name, id);
  }
  expect(texts(listed)).toEqual(expected);
  expect(texts(await ran())).toEqual(expected);
});

test("[WH1] a webhook's filter means what a list's does, in every form", async () => {
  await until("the last delivery", () => delivered.has("last") && Bun.deepEquals(texts(delivered), expected));
  expect(texts(delivered)).toEqual(expected);
});
