import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type HttpClient, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { sendForm } from "./tables-files-support.ts";

// Relations in the conditions of changes: `if`, and batches by filter.

const NOTES = `schema: { docId: { type: "string" }, authorId: { type: "string" }, text: { type: "text" }, tags: { type: "references", references: "docs" } },
  indexes: [{ fields: ["docId"] }, { fields: ["authorId"] }]`;

let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: `import { field, some } from "platform";
      const mine = (auth) => auth !== null && [["authorId", "==", auth.id]];
      const open = { read: true, insert: true, update: true, delete: true };
      export default {
        serviceKeys: { docs: { key: "key-docs-0123456789abcdef", scopes: ["db:shared:docs:read", "db:shared:docs:update"] } },
        databases: { shared: { tables: {
          docs: { schema: { title: { type: "text" }, file: { type: "file", bucket: "all" } }, access: open },
          open: { ${NOTES}, access: open },
          mine: { ${NOTES}, access: { ...open, read: mine } },
          later: { ${NOTES}, access: { ...open, read: async (auth) => { await Bun.sleep(1); return mine(auth); } } },
          linked: { ${NOTES}, access: { ...open, read: (auth) => some("mine", [["docId", "==", field("docId")], ["authorId", "==", auth?.id ?? ""]]) } },
          looked: { ${NOTES}, access: { ...open, read: (auth, _record, context) => auth !== null && context.table("mine").where([["authorId", "==", auth.id]]).exists() } },
          closed: { ${NOTES}, access: {} },
          each: { ${NOTES}, access: { ...open, read: (auth, note) => note.authorId === auth?.id } },
          perRecord: { ${NOTES}, access: { ...open, read: (auth, note) => note.text !== "hidden" } },
        } } },
        storage: { buckets: { all: { access: { read: true } } } },
      };`,
  });
  [ann, bob] = [await signIn(platform), await signIn(platform)];
  for (const id of ["d1", "d2"]) await insert("docs", { id, title: id });
  for (const table of ["open", "mine", "later", "linked", "closed", "each"]) {
    await insert(table, { id: "a", docId: "d1", authorId: ann.id, text: "ann's secret" });
    await insert(table, { id: "b", docId: "d2", authorId: bob.id, text: "bob's secret" });
  }
});
afterAll(() => platform.stop());

const PATH = "/api/db/shared/tables";
async function insert(table: string, record: JsonObject): Promise<void> {
  expect((await platform.service.post(`${PATH}/${table}`, record)).status).toBe(201);
}
const onDoc = ["docId", "==", { field: "id" }];
const some = (table: string, ...where: JsonValue[]) => [{ some: { table, where: [onDoc, ...where] } }];
const none = (table: string, ...where: JsonValue[]) => [{ none: { table, where: [onDoc, ...where] } }];

/** The statuses of every way to change d1 under a condition. */
async function changed(client: HttpClient, condition: JsonValue): Promise<string> {
  const query = `?if=${encodeURIComponent(JSON.stringify(condition))}`;
  const operation = (more: JsonObject) =>
    client.post("/api/db/shared/transaction", { operations: [{ table: "docs", if: condition, ...more }] });
  const form = { method: "PATCH", record: { title: "d1" } };
  const byFilter = await client.post<{ processed: number }>(`${PATH}/docs/batch-by-filter`, {
    action: "update",
    data: { title: "d1" },
    filter: { and: [[["id", "==", "d1"]], condition] },
  });
  const statuses = [
    (await client.patch(`${PATH}/docs/d1${query}`, { title: "d1" })).status,
    (await sendForm(client, `${PATH}/docs/d1${query}`, form)).status,
    (await operation({ action: "update", id: "d1", data: { title: "d1" } })).status,
    (await operation({ action: "upsert", data: { id: "d1", title: "d1" } })).status,
    byFilter.status === 200 && byFilter.body.processed === 0 ? 412 : byFilter.status,
  ];
  return [...new Set(statuses)].join();
}

test("[TB610] if and batches by filter ask relations among the records that the caller may read", async () => {
  const callers: HttpClient[] = [ann, bob, platform.service];
  const all = async (condition: JsonValue) => {
    const answers: string[] = [];
    for (const client of callers) answers.push(await changed(client, condition));
    return answers;
  };
  expect(await all(some("open"))).toEqual(["200", "200", "200"]);
  expect(await all(none("open"))).toEqual(["412", "412", "412"]);
  for (const table of ["mine", "later", "linked"]) {
    expect(await all(some(table))).toEqual(["200", "412", "200"]);
    expect(await all(none(table))).toEqual(["412", "200", "412"]);
    expect(await all(some(table, ["text", "contains", "secret"]))).toEqual(["200", "412", "200"]);
    expect(await all([{ not: some(table) }])).toEqual(["412", "200", "412"]);
    const nested = { some: { table, where: [["docId", "==", { field: "docId" }]] } };
    expect(await all(some("open", nested))).toEqual(["200", "412", "200"]);
  }
});

test("[TB610] of a table that the caller may not read nothing is told; one whose rule looks at each record is 403", async () => {
  for (const where of [[onDoc], [["text", "contains", "secret"]], [["nothing", "==", 1]], "odd"]) {
    expect(await changed(ann, [{ some: { table: "closed", where } }])).toBe("412");
    expect(await changed(ann, [{ none: { table: "closed", where } }])).toBe("200");
    expect(
      await changed(platform.withKey("key-docs-0123456789abcdef"), [{ some: { table: "mine", where } }]),
    ).not.toContain("200");
  }
  expect(await changed(ann, some("each"))).toBe("403");
});

test("[TB610] a relation that is not valid is 400 and named", async () => {
  for (const [condition, name] of [
    [[{ some: { table: "nobody", where: [] } }], "0.some.table"],
    [[{ some: { table: "open", where: [["text", "==", "x"]] } }], "0.some"],
    [some("open", ["nothing", "==", 1]), "0.some.where.1"],
  ] as [JsonValue, string][]) {
    const query = `?if=${encodeURIComponent(JSON.stringify(condition))}`;
    const patch = await ann.patch<{ data: object }>(`${PATH}/docs/d1${query}`, { title: "x" });
    const operations = [{ table: "docs", action: "delete", id: "d1", if: condition }];
    const transaction = await ann.post<{ data: object }>("/api/db/shared/transaction", { operations });
    const batch = await ann.post<{ data: object }>(`${PATH}/docs/batch-by-filter`, {
      action: "delete",
      filter: condition,
    });
    expect([patch.status, transaction.status, batch.status]).toEqual([400, 400, 400]);
    const named = [patch, transaction, batch].map(({ body }) => Object.keys(body.data).join());
    expect(named).toEqual([`if.${name}`, `operations.0.if.${name}`, `filter.${name}`]);
  }
});

test("[TB610] inside a transaction they see what it has done, and rights that it has given or taken", async () => {
  const ofAnn = { docId: "d1", authorId: ann.id };
  await insert("looked", { id: "seen", ...ofAnn });
  const update = { table: "docs", action: "update", id: "d1", data: { title: "d1" } };
  const run = async (...operations: JsonObject[]) =>
    (await ann.post("/api/db/shared/transaction", { operations })).status;
  expect(await run({ ...update, if: some("looked") })).toBe(200);
  // The right to read `looked` hangs on this record.
  expect(await run({ table: "mine", action: "delete", id: "a" }, { ...update, if: some("looked") })).toBe(412);
  expect(await run({ table: "mine", action: "delete", id: "a" }, { ...update, if: none("looked") })).toBe(200);
  expect(
    await run({ table: "mine", action: "insert", data: { id: "a", ...ofAnn } }, { ...update, if: some("looked") }),
  ).toBe(200);
  expect(await run({ table: "open", action: "delete", id: "a" }, { ...update, if: none("open") })).toBe(200);
  expect(await run({ ...update, if: some("open") })).toBe(412);
  await insert("open", { id: "a", ...ofAnn });
});

test("[TB610] a batch by filter whose read rule looks at each record asks relations about the readable ones", async () => {
  for (const [id, text] of [
    ["r1", "shown"],
    ["r2", "hidden"],
    ["r3", "shown"],
  ] as [JsonValue, string][]) {
    await insert("perRecord", { id, docId: id === "r3" ? "d9" : "d1", text });
  }
  const filter = [{ some: { table: "open", where: [["docId", "==", { field: "docId" }]] } }];
  const answer = await ann.post(`${PATH}/perRecord/batch-by-filter`, {
    action: "update",
    data: { text: "shown" },
    filter,
  });
  expect([answer.status, answer.body]).toEqual([200, { processed: 1, succeeded: 1 }]);
});

/** Inserts notes about one document, most of them hidden from bob in `mine`. */
async function fill(table: string, docId: string, count: number, more: JsonObject = {}): Promise<void> {
  const record = { docId, authorId: ann.id, ...more };
  for (let left = count; left > 0; left -= 500) {
    const inserts = Array(Math.min(left, 500)).fill(record);
    expect((await platform.service.post(`${PATH}/${table}/batch`, { inserts })).status).toBe(200);
  }
}

test("[TB611] relations of one request examine at most 10,000 records: 413", async () => {
  await insert("docs", { id: "many", title: "x" });
  await insert("docs", { id: "few", title: "x" });
  await fill("open", "many", 10_001);
  await fill("open", "few", 200, { text: "y".repeat(10_000) });
  const if_ = async (id: string, condition: JsonValue) =>
    (await ann.patch(`${PATH}/docs/${id}?if=${encodeURIComponent(JSON.stringify(condition))}`, { title: "x" })).status;
  expect(await if_("many", some("open", ["text", "==", "x"]))).toBe(413);
  expect(await if_("few", some("open", ["text", "==", "x"]))).toBe(412);
  // Each of two hundred records leads to two hundred others.
  const pairs = {
    some: {
      table: "open",
      where: [
        ["docId", "==", { field: "docId" }],
        ["id", "!=", { field: "id" }],
      ],
    },
  };
  expect(await if_("few", some("open", pairs))).toBe(413);
  // Two megabytes of text are searched, but not eight times.
  expect(await if_("few", some("open", ["text", "!=", "z"]))).toBe(200);
  expect(await if_("few", some("open", ["text", "contains", "z"]))).toBe(413);
  // Places of an index count where they are empty too.
  const ids = Array.from({ length: 1_000 }, (_, at) => `nobody${at}`);
  const places = { some: { table: "open", where: [["authorId", "in", ids]] } };
  expect(await if_("d1", some("open", places))).toBe(412);
  expect(await if_("few", some("open", places))).toBe(413);
  const byFilter = (id: string) =>
    ann.post(`${PATH}/docs/batch-by-filter`, {
      action: "update",
      data: { title: "x" },
      filter: [["id", "==", id], ...some("open", ["docId", "!=", "x"])],
    });
  expect([(await byFilter("many")).status, (await byFilter("few")).status]).toEqual([413, 200]);
});

test("[TB611] a batch by filter ends where its relations have examined enough, and goes on when it is repeated", async () => {
  await fill("open", "shared", 400);
  for (let at = 0; at < 60; at++) await insert("docs", { id: `p${at}`, title: "before" });
  const filter = [
    ["title", "==", "before"],
    {
      some: {
        table: "open",
        where: [
          ["docId", "==", "shared"],
          ["authorId", "==", ann.id],
        ],
      },
    },
  ];
  const body = { action: "update", data: { title: "after" }, filter };
  const counts: number[] = [];
  do counts.push((await ann.post<{ processed: number }>(`${PATH}/docs/batch-by-filter`, body)).body.processed);
  while (counts.at(-1) !== 0);
  expect(counts.length).toBeGreaterThan(2);
  expect(counts.reduce((sum, one) => sum + one)).toBe(60);
});

test("[TB611] the size of hidden texts is not told by the bound", async () => {
  await insert("docs", { id: "secret", title: "x" });
  await fill("mine", "secret", 100, { text: "z".repeat(100_000) });
  const condition = encodeURIComponent(JSON.stringify(some("mine", ["text", "contains", "q"])));
  const asked = async (client: HttpClient) =>
    (await client.patch(`${PATH}/docs/secret?if=${condition}`, { title: "x" })).status;
  expect([await asked(ann), await asked(bob)]).toEqual([413, 412]);
});
