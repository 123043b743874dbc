import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import {
  type Answer,
  type ErrorAnswer,
  type ListAnswer,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";

let platform: TestPlatform;
let ann: SignedIn;
const path = (table: string) => `/api/db/shared/tables/${table}`;

beforeAll(async () => {
  platform = await testPlatform({
    config: `
      import { anyOf, defineConfig } from "platform";
      const tags = (more = {}) => ({ type: "references", references: "tags", ...more });
      const open = { read: true, insert: true, update: true, delete: true };
      const tables = {
        tags: { schema: { name: { type: "string" }, owner: { type: "string" }, hidden: { type: "boolean" } }, access: {
          read: (auth) => [["hidden", "!=", true]], insert: true, delete: true } },
        docs: { schema: { title: { type: "string" }, n: { type: "integer" }, tags: tags({ max: 3 }), kept: tags({ onDelete: "restrict" }) },
          indexes: [{ fields: ["n"] }], access: open },
        must: { schema: { tags: tags({ required: true }), title: { type: "string" } }, access: open },
        open: { schema: { tags: tags({ mayBeHidden: true }) }, access: open },
        blind: { schema: { tags: tags() }, access: { update: true, insert: true } },
        fixed: { schema: { tags: tags({ fixed: true }) }, access: open },
        team: { schema: { members: { type: "references", references: "people" }, owner: { type: "string" }, text: { type: "string" } },
          access: { read: (auth) => auth !== null && anyOf([["owner", "==", auth.id]], [["members", "has", auth.id]]), update: true } },
        rooms: { schema: { members: { type: "references", references: "people" }, n: { type: "integer" } },
          indexes: [{ fields: ["n"] }], access: { read: (auth) => auth !== null && [["members", "has", auth.id]] } },
        looked: { schema: { text: { type: "string" } }, access: {
          read: (auth, record, context) => context.table("rooms").exists([["members", "hasAny", [auth.id]]]) } },
        related: { schema: { n: { type: "integer" } }, access: {
          read: (auth) => auth !== null && [{ some: { table: "rooms", where: [["members", "has", auth.id]] } }] } },
        people: { schema: { name: { type: "string" } }, access: { read: true } },
        hooked: { schema: { tags: tags(), n: { type: "integer" } }, access: open, hooks: {
          beforeInsert: (auth, record) => ({ ...record, tags: [...record.tags, "secret"] }),
          beforeUpdate: (auth, record, changes) => ({ ...changes, tags: null }) } },
        self: { schema: { others: { type: "references", references: "self" } }, access: open },
        parents: { schema: { list: tags() }, access: open },
        children: { schema: { parent: { type: "string", references: "parents", onDelete: "cascade" }, siblings: { type: "references", references: "children" } }, access: open },
      };
      export default defineConfig({ api: { schemaEndpoint: true }, databases: { shared: { tables } } });`,
  });
  ann = await signIn(platform);
  const batch = await platform.service.post(`${path("tags")}/batch`, {
    inserts: [
      ...["a", "b", "c", "d", "e", "once"].map((id) => ({ id, name: id.toUpperCase() })),
      { id: "secret", name: "S", hidden: true },
    ],
  });
  expect(batch.status).toBe(200);
});
afterAll(() => platform.stop());

const problemOf = async (answer: Answer<JsonValue>) => (answer.body as unknown as ErrorAnswer).data;
const idsOf = async (filter: JsonValue, table = "docs", client: Pick<TestPlatform, "get"> = platform) => {
  const answer = await client.get(`${path(table)}?filter=${encodeURIComponent(JSON.stringify(filter))}`);
  const list = answer.body as unknown as ListAnswer & ErrorAnswer;
  return answer.status === 200 ? list.items.map(({ id }) => id) : [answer.status, list.message];
};
const tagsOf = async (table: string, id: string) =>
  ((await platform.service.get(`${path(table)}/${id}`)).body as JsonObject)["tags"];

test("[TB650] several references are an array of ids in their order, [] without any, never null", async () => {
  const insert = (body: JsonObject, table = "docs") => platform.post(path(table), body);
  const plain = (await insert({ id: "w1", title: "Plain" })).body as JsonObject;
  expect([plain["tags"], plain["kept"]]).toEqual([[], []]);
  const ordered = (await insert({ id: "w2", tags: ["c", "a", "b"], kept: null })).body as JsonObject;
  expect([ordered["tags"], ordered["kept"]]).toEqual([["c", "a", "b"], []]);
  expect(await tagsOf("docs", "w2")).toEqual(["c", "a", "b"]);
  for (const [tags, code] of [
    [["a", "a"], "invalid_value"],
    [["a", "b", "c", "d"], "too_long"],
    ["a", "invalid_type"],
    [[1], "invalid_type"],
    [["a/b"], "invalid_value"],
    [["none"], "unknown_reference"],
    [["a", "secret"], "unknown_reference"],
  ] as const) {
    const answer = await insert({ tags: tags as JsonValue });
    expect([tags, answer.status, (await problemOf(answer))?.["tags"]?.code]).toEqual([tags, 400, code]);
    const change = await platform.patch(`${path("docs")}/w1`, { tags: tags as JsonValue });
    expect([tags, change.status, (await problemOf(change))?.["tags"]?.code]).toEqual([tags, 400, code]);
  }
  for (const body of [{}, { tags: [] }, { tags: null }] as JsonObject[]) {
    const answer = await insert(body, "must");
    expect([answer.status, (await problemOf(answer))?.["tags"]?.code]).toEqual([400, "required"]);
  }
  await insert({ id: "m1", tags: ["a"] }, "must");
  for (const tags of [[], null, { $op: "remove", value: "a" }, { $op: "deleteField" }] as JsonValue[]) {
    const answer = await platform.patch(`${path("must")}/m1`, { tags });
    expect([tags, answer.status, (await problemOf(answer))?.["tags"]?.code]).toEqual([tags, 400, "required"]);
  }
  for (const tags of [null, { $op: "deleteField" }] as JsonValue[]) {
    await platform.patch(`${path("docs")}/w2`, { tags: ["b"] });
    const answer = (await platform.patch(`${path("docs")}/w2`, { tags })).body as JsonObject;
    expect(answer["tags"]).toEqual([]);
  }
  for (const id of ["w1", "w2"]) await platform.service.delete(`${path("docs")}/${id}`);
});

test("[TB651] each id is checked as one reference is: hidden ones, those of the same batch, those of hooks, itself", async () => {
  const hidden = await platform.post(path("open"), { tags: ["secret", "a"] });
  expect(hidden.status).toBe(201);
  const missing = await platform.post(path("open"), { tags: ["none"] });
  expect((await problemOf(missing))?.["tags"]?.message).toBe('tags: there is no record of tags with id "none"');
  const together = await platform.service.post(`/api/db/shared/transaction`, {
    operations: [
      { action: "insert", table: "tags", data: { id: "fresh", hidden: true } },
      { action: "insert", table: "docs", data: { id: "with-fresh", tags: ["fresh"] } },
    ],
  });
  expect([together.status, together.body]).toMatchObject([200, {}]);
  const stays = await platform.patch(`${path("docs")}/with-fresh`, { tags: ["b", "fresh"] });
  expect([stays.status, (stays.body as JsonObject)["tags"]]).toEqual([200, ["b", "fresh"]]);
  await platform.service.delete(`${path("docs")}/with-fresh`);
  const hooked = await platform.post(path("hooked"), { id: "h1", tags: ["a"] });
  expect((hooked.body as JsonObject)["tags"]).toEqual(["a", "secret"]);
  const cleared = await platform.patch(`${path("hooked")}/h1`, { n: 1 });
  expect((cleared.body as JsonObject)["tags"]).toEqual([]);
  expect((await platform.post(path("self"), { id: "s1", others: ["s1"] })).status).toBe(201);
  const fixed = await platform.post(path("fixed"), { id: "f1", tags: ["a", "b"] });
  expect(fixed.status).toBe(201);
  expect((await platform.patch(`${path("fixed")}/f1`, { tags: ["a", "b"] })).status).toBe(200);
  expect((await platform.patch(`${path("fixed")}/f1`, { tags: { $op: "add", value: "a" } })).status).toBe(200);
  expect((await platform.patch(`${path("fixed")}/f1`, { tags: { $op: "add", value: "c" } })).status).toBe(400);
});

test("[TB659] [TB160] [TB408] the schema endpoint and OpenAPI describe such a field as it is sent, answered and expanded", async () => {
  const { body } = await platform.get<JsonObject>("/api/schema");
  expect(body).toMatchObject({
    namespaces: { shared: { tables: { docs: { fields: { tags: { type: "references", max: 3, required: false } } } } } },
  });
  expect(JSON.stringify(body)).toContain('{"table":"tags","column":"id","onDelete":"remove"}');
  const document = (await platform.get<{ components: { schemas: Record<string, JsonObject> } }>("/swagger/json")).body;
  const { schemas } = document.components;
  const ids = { type: "array", items: { type: "string" }, uniqueItems: true, maxItems: 3 };
  const tag = { $ref: "#/components/schemas/shared.tags" };
  expect(schemas["shared.docs"]).toMatchObject({
    properties: { tags: ids, expand: { properties: { tags: { type: "array", items: tag } } } },
  });
  expect(schemas["shared.docs.insert"]).toMatchObject({ properties: { tags: { ...ids, type: ["array", "null"] } } });
  const operator = { $ref: "#/components/schemas/FieldReference" };
  expect(JSON.stringify(schemas["shared.docs.update"])).toContain(JSON.stringify(operator));
  expect(schemas["shared.must.insert"]).toMatchObject({
    properties: { tags: { type: "array", minItems: 1, maxItems: 100 } },
    required: ["tags"],
  });
  expect(schemas["FieldReference"]).toBeDefined();
});

test("[TB652] one request adds and removes at most 5,000 ids of such fields: 413", async () => {
  await platform.service.post(`${path("people")}/batch`, {
    inserts: Array.from({ length: 100 }, (_, n) => ({ id: `p${n}` })),
  });
  const members = Array.from({ length: 100 }, (_, n) => `p${n}`);
  const batch = (count: number) =>
    platform.service.post(`${path("team")}/batch`, { inserts: Array.from({ length: count }, () => ({ members })) });
  expect((await batch(51)).status).toBe(413);
  expect((await batch(50)).status).toBe(200);
  const stored = await platform.service.get<ListAnswer>(`${path("team")}?limit=100`);
  const ids = stored.body.items.map(({ id }) => String(id));
  expect((await platform.service.post(`${path("team")}/batch`, { inserts: [{ members }], deletes: ids })).status).toBe(
    413,
  );
  const byFilter = { action: "delete", filter: [["members", "has", "p1"]] };
  const first = await platform.service.post<JsonObject>(`${path("team")}/batch-by-filter`, byFilter);
  expect(first.body).toEqual({ processed: 26, succeeded: 26 });
  const second = await platform.service.post<JsonObject>(`${path("team")}/batch-by-filter`, byFilter);
  expect(second.body).toEqual({ processed: 24, succeeded: 24 });
});

test("[TB653] has, hasAny and hasAll find records by the ids, in lists and groups, and nothing else compares them", async () => {
  await platform.service.post(`${path("docs")}/batch`, {
    inserts: [
      { id: "d1", n: 1, tags: ["a", "b"] },
      { id: "d2", n: 2, tags: ["b", "c"] },
      { id: "d3", n: 3, tags: [] },
      { id: "d4", n: 4, tags: ["c", "a", "b"] },
    ],
  });
  expect(await idsOf([["tags", "has", "a"]])).toEqual(["d1", "d4"]);
  expect(await idsOf([["tags", "has", "none"]])).toEqual([]);
  expect(await idsOf([["tags", "hasAny", ["a", "c", "a"]]])).toEqual(["d1", "d2", "d4"]);
  expect(await idsOf([["tags", "hasAll", ["c", "b", "b"]]])).toEqual(["d2", "d4"]);
  expect(await idsOf([["tags", "hasAny", []]])).toEqual([]);
  expect(await idsOf([["tags", "hasAll", []]])).toEqual(["d1", "d2", "d3", "d4"]);
  expect(await idsOf({ not: [["tags", "has", "a"]] })).toEqual(["d2", "d3"]);
  expect(await idsOf({ not: [["tags", "hasAll", ["a", "b"]]] })).toEqual(["d2", "d3"]);
  expect(await idsOf([{ or: [[["tags", "has", "c"]], [["n", "==", 3]]] }, ["n", "<", 4]])).toEqual(["d2", "d3"]);
  expect(
    await idsOf([
      ["n", ">", 1],
      ["tags", "has", "a"],
      ["tags", "has", "c"],
    ]),
  ).toEqual(["d4"]);
  for (const condition of [
    ["tags", "==", "a"],
    ["tags", "contains", "a"],
    ["tags", "==", null],
    ["tags", "in", ["a"]],
    ["title", "has", "a"],
    ["tags", "has", ["a"]],
    ["tags", "has", null],
    ["tags", "hasAny", "a"],
    ["tags", "hasAll", [1]],
    ["tags", "hasAny", Array(1001).fill("a")],
  ] as JsonValue[]) {
    expect((await idsOf([condition]))[0]).toBe(400);
  }
  const query = (text: string) => platform.get(`${path("docs")}${text}`);
  expect((await query("?sort=tags")).status).toBe(400);
  expect((await query("/aggregate?groupBy=tags")).status).toBe(400);
  expect((await query("/aggregate?select=max(tags)")).status).toBe(400);
  const filter = encodeURIComponent(JSON.stringify([["tags", "has", "b"]]));
  expect((await query(`/count?filter=${filter}`)).body).toEqual({ total: 3 });
  expect((await query(`/aggregate?select=sum(n)&filter=${filter}`)).body).toEqual({
    groups: [{ "sum(n)": 7 }],
  });
  const sorted = (await query(`?filter=${filter}&sort=n:desc&limit=2`)).body as unknown as ListAnswer;
  expect(sorted.items.map(({ id }) => id)).toEqual(["d4", "d2"]);
  const rest = (await query(`?filter=${filter}&sort=n:desc&after=${sorted.cursor}`)).body as unknown as ListAnswer;
  expect(rest.items.map(({ id }) => id)).toEqual(["d1"]);
  const met = await platform.patch(`${path("docs")}/d1?if=${encodeURIComponent('[["tags","has","a"]]')}`, {
    title: "x",
  });
  const unmet = await platform.patch(`${path("docs")}/d2?if=${encodeURIComponent('[["tags","has","a"]]')}`, {
    title: "x",
  });
  expect([met.status, unmet.status]).toEqual([200, 412]);
  const byFilter = await platform.service.post(`${path("docs")}/batch-by-filter`, {
    action: "update",
    filter: [["tags", "hasAll", ["a", "c"]]],
    data: { title: "by filter" },
  });
  expect(byFilter.body).toEqual({ processed: 1, succeeded: 1 });
});

test("[TB654] rules answer with has: lists, single records, lookups, relations and groups agree", async () => {
  await platform.service.post(`${path("people")}/batch`, { inserts: [{ id: ann.id }, { id: "other" }] });
  await platform.service.post(`${path("team")}/batch`, {
    inserts: [
      { id: "t1", members: ["other", ann.id] },
      { id: "t2", members: ["other"], owner: ann.id },
      { id: "t3", members: ["other"] },
    ],
  });
  await platform.service.post(`${path("rooms")}/batch`, {
    inserts: [
      { id: "r1", n: 1, members: [ann.id] },
      { id: "r2", n: 2, members: ["other"] },
      { id: "r3", n: 3, members: ["other", ann.id] },
    ],
  });
  expect(await idsOf([], "team", ann)).toEqual(["t1", "t2"]);
  expect(await idsOf([["members", "has", "other"]], "team", ann)).toEqual(["t1", "t2"]);
  expect(await idsOf([["members", "has", "other"]], "rooms", ann)).toEqual(["r3"]);
  expect(await idsOf([["n", ">", 1]], "rooms", ann)).toEqual(["r3"]);
  const statuses = async (table: string, ids: string[]) =>
    Promise.all(ids.map(async (id) => (await ann.get(`${path(table)}/${id}`)).status));
  expect(await statuses("team", ["t1", "t2", "t3"])).toEqual([200, 200, 404]);
  expect(await statuses("rooms", ["r1", "r2", "r3"])).toEqual([200, 404, 200]);
  await platform.service.post(path("looked"), { id: "l1", text: "x" });
  await platform.service.post(path("related"), { id: "x1", n: 1 });
  expect(await statuses("looked", ["l1"])).toEqual([200]);
  expect(await statuses("related", ["x1"])).toEqual([200]);
  expect(await idsOf([], "related", ann)).toEqual(["x1"]);
  const asked = [
    {
      some: {
        table: "rooms",
        where: [
          ["members", "has", "other"],
          ["n", "==", 3],
        ],
      },
    },
  ];
  expect(await idsOf(asked, "related", ann)).toEqual(["x1"]);
  const linked = [{ some: { table: "rooms", where: [["members", "hasAll", ["other", ann.id]]] } }];
  expect(await idsOf(linked, "related", ann)).toEqual(["x1"]);
  await platform.service.patch(`${path("rooms")}/r1`, { members: { $op: "remove", value: ann.id } });
  await platform.service.patch(`${path("rooms")}/r3`, { members: { $op: "remove", value: ann.id } });
  expect(await idsOf([], "related", ann)).toEqual([]);
  expect(await idsOf([], "rooms", ann)).toEqual([]);
  expect(await statuses("looked", ["l1"])).toEqual([403]);
  expect(await statuses("rooms", ["r1", "r3"])).toEqual([404, 404]);
});

test("[TB655] add and remove change one id atomically; one that is there, or is not, changes nothing", async () => {
  const doc = `${path("docs")}/ops`;
  await platform.post(path("docs"), { id: "ops", tags: ["a"] });
  const change = async (tags: JsonValue) => {
    const answer = await platform.patch(doc, { tags });
    return answer.status === 200 ? (answer.body as JsonObject)["tags"] : answer.status;
  };
  expect(await change({ $op: "add", value: "c" })).toEqual(["a", "c"]);
  const before = (await platform.get(doc)).body as JsonObject;
  expect(await change({ $op: "add", value: "a" })).toEqual(["a", "c"]);
  expect(await change({ $op: "remove", value: "none" })).toEqual(["a", "c"]);
  expect((await platform.get(doc)).body).toEqual(before);
  expect(await change({ $op: "add", value: "none" })).toBe(400);
  expect(await change({ $op: "add", value: "secret" })).toBe(400);
  expect(await change({ $op: "add", value: 1 })).toBe(400);
  expect(await change({ $op: "add" })).toBe(400);
  expect(await change({ $op: "add", value: "b", more: 1 })).toBe(400);
  expect(await change({ $op: "add", value: "b" })).toEqual(["a", "c", "b"]);
  expect(await change({ $op: "add", value: "d" })).toBe(400);
  expect((await platform.patch(doc, { title: { $op: "add", value: "a" } })).status).toBe(400);
  expect((await platform.post(path("docs"), { tags: { $op: "add", value: "a" } })).status).toBe(400);
  await Promise.all(["a", "b", "c"].map((value) => platform.patch(doc, { tags: { $op: "remove", value } })));
  expect(await tagsOf("docs", "ops")).toEqual([]);
  const batch = await platform.service.post(`${path("docs")}/batch`, {
    updates: ["a", "b"].map((value) => ({ id: "ops", data: { tags: { $op: "add", value } } })),
  });
  expect([batch.status, await tagsOf("docs", "ops")]).toEqual([200, ["a", "b"]]);
  await platform.service.delete(doc);
});

test("[TB655] a caller that may not read the record is refused whether the id is there or not", async () => {
  await platform.service.post(path("blind"), { id: "b1", tags: ["a"] });
  for (const tags of [
    { $op: "add", value: "a" },
    { $op: "add", value: "b" },
    { $op: "remove", value: "a" },
    { $op: "remove", value: "b" },
  ]) {
    expect((await platform.patch(`${path("blind")}/b1`, { tags })).status).toBe(401);
    expect((await ann.patch(`${path("blind")}/b1`, { tags })).status).toBe(403);
  }
});

test("[TB656] expand answers the records in order, without hidden ones, and table(field) those that refer back", async () => {
  await platform.service.post(`${path("docs")}/batch`, {
    inserts: [
      { id: "e1", tags: ["c", "secret", "a"] },
      { id: "e2", tags: ["e"] },
      { id: "e3", tags: ["e", "c"] },
    ],
  });
  const get = async (text: string) => (await platform.get(text)).body as unknown as JsonObject & ListAnswer;
  const expanded = (record: JsonObject | undefined) => record?.["expand"] as JsonObject;
  const idsIn = (list: JsonValue | undefined) => (list as JsonObject[]).map((one) => one["id"]);
  const first = await get(`${path("docs")}/e1?expand=tags,kept`);
  expect(idsIn(expanded(first)["tags"])).toEqual(["c", "a"]);
  expect(expanded(first)["kept"]).toEqual([]);
  const filter = encodeURIComponent('[["id","in",["e1","e2","e3"]]]');
  const list = await get(`${path("docs")}?filter=${filter}&expand=tags`);
  expect(list.items.map((one) => idsIn(expanded(one)["tags"]))).toEqual([["c", "a"], ["e"], ["e", "c"]]);
  const back = await get(
    `${path("tags")}?filter=${encodeURIComponent('[["id","in",["c","e","once"]]]')}&expand=docs(tags)`,
  );
  const pages = back.items.map((one) => expanded(one)["docs(tags)"] as JsonObject);
  expect(pages.map((page) => idsIn(page["items"]).filter((id) => String(id).startsWith("e")))).toEqual([
    ["e1", "e3"],
    ["e2", "e3"],
    [],
  ]);
  const nested = await get(`${path("docs")}/e1?expand=tags.docs(tags).tags`);
  const inner = (expanded(nested)["tags"] as JsonObject[]).map((tag) => expanded(tag)["docs(tags)"] as JsonObject);
  const found = ((inner[0]?.["items"] ?? []) as JsonObject[]).filter(({ id }) => id === "e3");
  expect(found.map((one) => idsIn(expanded(one)["tags"]))).toEqual([["e", "c"]]);
  const many = Array.from({ length: 130 }, (_, n) => ({ id: `x${String(n).padStart(3, "0")}`, tags: ["once", "d"] }));
  await platform.service.post(`${path("docs")}/batch`, { inserts: many });
  const page = expanded(await get(`${path("tags")}/once?expand=docs(tags)`))["docs(tags)"] as JsonObject;
  expect([idsIn(page["items"]).length, page["hasMore"], idsIn(page["items"])[99]]).toEqual([100, true, "x099"]);
  const rooms = `${path("people")}/other?expand=rooms(members)`;
  await platform.service.patch(`${path("rooms")}/r3`, { members: ["other", ann.id] });
  const readable = expanded((await ann.get(rooms)).body as JsonObject)["rooms(members)"] as JsonObject;
  expect(idsIn(readable["items"])).toEqual(["r3"]);
  const gone = await platform.service.post(`${path("docs")}/batch`, {
    deletes: [...many.map(({ id }) => id), "e1", "e2", "e3"],
  });
  expect(gone.status).toBe(200);
});

test("[TB657] deleting a record takes its id out, once for each record; restrict and the last of a required field are 409", async () => {
  const put = (table: string, body: JsonObject) => platform.service.post(path(table), body);
  for (const id of ["x", "y", "z"]) await put("tags", { id });
  await put("docs", { id: "o1", tags: ["x", "y"], kept: [] });
  await put("docs", { id: "o2", tags: ["a"], kept: ["y"] });
  const before = (await platform.get(`${path("docs")}/o1`)).body as JsonObject;
  expect((await platform.delete(`${path("tags")}/x`)).status).toBe(200);
  const after = (await platform.get(`${path("docs")}/o1`)).body as JsonObject;
  expect(after["tags"]).toEqual(["y"]);
  expect(after["updatedAt"] === before["updatedAt"]).toBe(false);
  expect(await idsOf([["tags", "has", "x"]])).toEqual([]);
  expect((await platform.delete(`${path("tags")}/y`)).status).toBe(409);
  expect(await tagsOf("docs", "o1")).toEqual(["y"]);
  await put("must", { id: "m2", tags: ["z"] });
  expect((await platform.delete(`${path("tags")}/z`)).status).toBe(409);
  await platform.patch(`${path("must")}/m2`, { tags: ["a", "z"] });
  expect((await platform.delete(`${path("tags")}/z`)).status).toBe(200);
  expect(await tagsOf("must", "m2")).toEqual(["a"]);
  await put("parents", { id: "p" });
  await platform.service.post(`${path("children")}/batch`, {
    inserts: [
      { id: "c1", parent: "p" },
      { id: "c2", parent: "p", siblings: ["c1"] },
      { id: "c3", siblings: ["c1", "c2", "c3"] },
    ],
  });
  expect((await platform.delete(`${path("parents")}/p`)).status).toBe(200);
  const left = (await platform.get(path("children"))).body as unknown as ListAnswer;
  expect(left.items.map(({ id, siblings }) => [id, siblings as JsonValue])).toEqual([["c3", ["c3"]]]);
});

test("[TB657] a service key deletes in steps what many records refer to among several", async () => {
  await platform.service.post(path("tags"), { id: "popular" });
  for (let start = 0; start < 3000; start += 500) {
    const inserts = Array.from({ length: 500 }, () => ({ tags: ["popular", "b"] }));
    expect((await platform.service.post(`${path("docs")}/batch`, { inserts })).status).toBe(200);
  }
  expect((await platform.delete(`${path("tags")}/popular`)).status).toBe(409);
  expect((await platform.service.delete(`${path("tags")}/popular`)).status).toBe(200);
  expect(await idsOf([["tags", "has", "popular"]])).toEqual([]);
  const filter = encodeURIComponent('[["tags","has","b"]]');
  const { total } = (await platform.get(`${path("docs")}/count?filter=${filter}`)).body as unknown as ListAnswer;
  expect(total).toBeGreaterThanOrEqual(3000);
});
