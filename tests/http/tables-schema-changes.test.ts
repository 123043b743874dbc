import { afterEach, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../support/index.ts";

let platform: TestPlatform | null = null;
afterEach(async () => {
  await platform?.stop();
  platform = null;
});

const config = (table: string, more = "") => `{ databases: { shared: { tables: { items: ${table} ${more} } } } }`;
const P = "/api/db/shared/tables/items";
const start = async (table: string) => {
  platform = await testPlatform({ config: config(table) });
  return platform;
};

test("[TB63] new tables, columns and indexes are added at start", async () => {
  const { service, restart } = await start(`{ schema: { name: { type: "string" } } }`);
  await service.post(P, { id: "a", name: "one" });
  await restart({
    config: config(
      `{ schema: { name: { type: "string" }, n: { type: "integer", required: true, default: 7 }, tags: { type: "json" } }, fts: ["name"], indexes: [{ fields: ["n"] }] }`,
      `, extra: { schema: { item: { type: "string", references: "items" } } }`,
    ),
  });
  expect((await service.get(`${P}/a`)).body).toMatchObject({ name: "one", n: 7, tags: null });
  expect((await service.get<{ total: number }>(`${P}/search?q=one`)).body.total).toBe(1);
  expect((await service.post("/api/db/shared/tables/extra", { item: "a" })).status).toBe(201);
  expect((await service.get<{ total: number }>(`${P}/count`)).body.total).toBe(1);
});

test("[TB63] changes that would lose data stop the start and are named", async () => {
  const before = `{ schema: { name: { type: "string" }, n: { type: "integer" } } }`;
  const { service, restart } = await start(before);
  await service.post(P, { id: "a", name: "one", n: 1 });
  await service.post(P, { id: "b", name: "one", n: null });
  const refusals: [string, string][] = [
    [`{ schema: { name: { type: "string" } } }`, "n"],
    [`{ schema: { name: { type: "string" }, n: { type: "string" } } }`, "n"],
    [`{ schema: { name: { type: "datetime" }, n: { type: "integer" } } }`, "name"],
    [`{ schema: { name: { type: "string" }, n: { type: "integer", required: true } } }`, "n"],
    [`{ schema: { name: { type: "string", unique: true }, n: { type: "integer" } } }`, "name"],
    [
      `{ schema: { name: { type: "string" }, n: { type: "integer" }, sku: { type: "string", required: true, unique: true, default: "none" } } }`,
      "shared.items.sku: is unique, and several records would get the same default of sku",
    ],
    [`{}`, "items"],
  ];
  for (const [table, word] of refusals) {
    const failure = await restart({ config: config(table) }).then(
      () => "started",
      (cause: Error) => cause.message,
    );
    expect(failure).toContain("ended with 1");
    expect(failure).toContain(word);
  }
  await restart({ config: config(before) });
  expect((await service.get<{ total: number }>(`${P}/count`)).body.total).toBe(2);
});

test("[TB64] migrations run once each, in order, or not at all", async () => {
  const { service, restart } = await start(`{ schema: { name: { type: "string" } } }`);
  await service.post(P, { id: "a", name: "one two" });
  const failing = `{ schema: { title: { type: "string" } }, migrations: [
    { version: 1, description: "rename", up: 'ALTER TABLE items RENAME COLUMN name TO title' },
    { version: 2, description: "broken", up: 'UPDATE nowhere SET x = 1' } ] }`;
  const failure = await restart({ config: config(failing) }).then(
    () => "started",
    (cause: Error) => cause.message,
  );
  expect(failure).toContain("ended with 1");
  await restart({ config: config(`{ schema: { name: { type: "string" } } }`) });
  expect((await service.get(`${P}/a`)).body["name"]).toBe("one two");
  const working = `{ schema: { title: { type: "string" } }, migrations: [
    { version: 1, description: "rename", up: 'ALTER TABLE items RENAME COLUMN name TO title' },
    { version: 2, description: "shout", up: "UPDATE items SET title = title || '!'" } ] }`;
  await restart({ config: config(working) });
  expect((await service.get(`${P}/a`)).body["title"]).toBe("one two!");
  await restart({ config: config(working) });
  expect((await service.get(`${P}/a`)).body["title"]).toBe("one two!");
});

test("[TB64] [TB31] a migration may write the documents of a schemaless table as JSON of any form", async () => {
  const { service, restart } = await start("{}");
  const documents = { a: "{ }", b: ' { "n" : 1 } ', c: '{"id":"other","n":2}', d: '{\n  "n": 3\n}' };
  for (const id of Object.keys(documents)) await service.post(P, { id, n: 0 });
  const migrations = Object.entries(documents).map(([id, document], index) => {
    const up = `UPDATE items SET _platform_document = '${document}' WHERE id = '${id}'`;
    return { version: index + 1, description: id, up };
  });
  await restart({ config: config(`{ migrations: ${JSON.stringify(migrations)} }`) });
  const items = [{ id: "a" }, { id: "b", n: 1 }, { id: "c", n: 2 }, { id: "d", n: 3 }];
  expect((await service.get(P, { query: { sort: "id:asc" } })).body).toMatchObject({ items });
  for (const item of items) expect((await service.get(`${P}/${item.id}`)).body).toMatchObject(item);
});

test("[TB64] a migration that would end the transaction is refused before anything runs", async () => {
  const { service, restart } = await start(
    `{ schema: { n: { type: "integer" }, name: { type: "string", unique: true } } }`,
  );
  await service.post(P, { id: "a", n: 1, name: "one" });
  const schema = `schema: { n: { type: "integer" }, name: { type: "string", unique: true } }`;
  const ending = `{ ${schema}, migrations: [
    { version: 1, description: "add", up: "UPDATE items SET n = n + 100" },
    { version: 2, description: "end", up: "UPDATE items SET n = n + 100; COMMIT" } ] }`;
  const failure = await restart({ config: config(ending) }).then(
    () => "started",
    (cause: Error) => cause.message,
  );
  expect(failure).toContain("migrations.1.up: must not contain COMMIT");
  await restart({ config: config(`{ ${schema} }`) });
  expect((await service.get(`${P}/a`)).body["n"]).toBe(1);
  expect((await service.post(P, { name: "one" })).status).toBe(409);
});

test("[TB77] a namespace with the records of the other kind stops the start, with both remedies", async () => {
  const tables = "tables: { items: { access: { read: true } } }";
  const of = (instance: boolean) =>
    `{ databases: { shared: { ${instance ? "instance: true, access: { create: true, open: true }, " : ""}${tables} } } }`;
  const failure = (restarting: Promise<unknown>) =>
    restarting.then(
      () => "started",
      (cause: Error) => cause.message,
    );
  const { service, restart } = await start("{ access: { read: true } }");
  await service.post(P, { id: "a" });
  const toDynamic = await failure(restart({ config: of(true) }));
  expect(toDynamic).toContain("databases.shared: it is declared with instance: true");
  expect(toDynamic).toContain("shared.db");
  expect(toDynamic).toContain("Remove instance: true");
  await restart({ config: of(false) });
  expect((await service.get(`${P}/a`)).status).toBe(200);

  await platform?.stop();
  platform = await testPlatform({ config: of(true) });
  expect((await platform.service.post("/api/db/shared/one/tables/items", { id: "a" })).status).toBe(201);
  const toStatic = await failure(platform.restart({ config: of(false) }));
  expect(toStatic).toContain("Declare instance: true again");
  await platform.restart({ config: of(true) });
  expect((await platform.service.get("/api/db/shared/one/tables/items/a")).status).toBe(200);
});

test("[TB77] records of a table whose name looks like that of a search index count too", async () => {
  const tables =
    'tables: { lib_fts_notes: { schema: { text: { type: "string" } }, fts: ["text"], access: { read: true } } }';
  platform = await testPlatform({ config: `{ databases: { shared: { ${tables} } } }` });
  const { status } = await platform.service.post("/api/db/shared/tables/lib_fts_notes", { id: "a", text: "one" });
  expect(status).toBe(201);
  const config = `{ databases: { shared: { instance: true, access: { create: true, open: true }, ${tables} } } }`;
  const failure = platform.restart({ config }).then(
    () => "started",
    (cause: Error) => cause.message,
  );
  expect(await failure).toContain("databases.shared: it is declared with instance: true");
});

test("[TB77] an empty namespace may become one of the other kind", async () => {
  const { restart } = await start('{ schema: { title: { type: "string" } }, fts: ["title"] }');
  const kind = "instance: true, access: { create: true, open: true }";
  await restart({ config: `{ databases: { shared: { ${kind}, tables: { items: {} } } } }` });
  const created = await platform?.service.post("/api/db/shared/one/tables/items", { id: "a" });
  expect(created?.status).toBe(201);
});

test("[TB78] records of an undeclared namespace are logged, and are back when it is declared again", async () => {
  const { service, restart } = await start("{ access: { read: true } }");
  await service.post(P, { id: "a" });
  await restart({ config: "{ databases: { shard: { tables: { items: {} } } } }" });
  expect(platform?.stderr()).toContain("databases.shared is not declared");
  await restart({ config: config("{ access: { read: true } }") });
  expect((await service.get(`${P}/a`)).status).toBe(200);
  expect(platform?.stderr()).not.toContain("is not declared");
});
