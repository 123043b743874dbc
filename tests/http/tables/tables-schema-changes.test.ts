import { afterEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import {
  configSource,
  platformCommand,
  type TestPlatform,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";

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

/** Changes of fields: the new form, one value that it then accepts, one that it does not, and the message. */
const NARROWED: readonly [name: string, before: string, after: string, fits: unknown, unfit: unknown, says: string][] =
  [
    ["status", 'type: "string"', 'type: "string", enum: ["open", "done"]', "open", "lost", 'be one of "open", "done"'],
    ["kind", 'type: "string", enum: ["a", "b"]', 'type: "string", enum: ["a"]', "a", "b", 'be one of "a"'],
    ["level", 'type: "integer"', 'type: "integer", enum: [1, 2]', 2, 3, "be one of 1, 2"],
    ["low", 'type: "number"', 'type: "number", min: 0.5', 0.5, 0.25, "be at least 0.5"],
    ["high", 'type: "integer", max: 20', 'type: "integer", max: 10', 10, 11, "be at most 10"],
    ["short", 'type: "text"', 'type: "text", max: 2', "😀😀", "abc", "have at most 2 characters"],
    ["long", 'type: "string", min: 1', 'type: "string", min: 2', "ab", "😀", "have at least 2 characters"],
    ["slug", 'type: "string"', 'type: "string", pattern: /^[a-z]+$/giu', "ABC", "a b", "match ^[a-z]+$"],
    [
      "both",
      'type: "string"',
      'type: "string", min: 2, pattern: "^a"',
      "aa",
      "a",
      "have at least 2 characters and match ^a",
    ],
  ];
const fieldsOf = (of: (one: (typeof NARROWED)[number]) => string): string =>
  `{ schema: { ${NARROWED.map((one) => `${one[0]}: { ${of(one)} }`).join(", ")} } }`;
const NARROWED_BEFORE = fieldsOf(([, before]) => before);
const NARROWED_AFTER = fieldsOf(([, , after]) => after);

async function withValues(): Promise<TestPlatform> {
  const started = await start(NARROWED_BEFORE);
  const [fits, unfit] = [3, 4].map((at) => Object.fromEntries(NARROWED.map((one) => [one[0], one[at]])));
  for (const [id, values] of [
    ["fits", fits],
    ["bad1", unfit],
    ["bad2", unfit],
    ["none", {}],
  ] as const) {
    expect((await started.service.post(P, { id, ...values })).status).toBe(201);
  }
  return started;
}

async function checkData(of: TestPlatform, table: string) {
  const file = `${of.configFile}.next.ts`;
  writeFileSync(file, configSource(config(table)));
  const child = Bun.spawn([...platformCommand(), "check", "--config", file, "--data", of.dataDirectory], {
    env: testEnvironment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  return { output: (await child.stdout.text()) + (await child.stderr.text()), code: await child.exited };
}

test("[DB330] values that a narrowed field does not accept are named and counted, by check --data and the start", async () => {
  const one = await withValues();
  const { code, output } = await checkData(one, NARROWED_AFTER);
  const refusal = await one.restart({ config: config(NARROWED_AFTER) }).then(
    () => "started",
    (cause: Error) => cause.message,
  );
  expect([code, refusal]).toEqual([1, expect.stringContaining("ended with 1")]);
  for (const [name, , , , , says] of NARROWED) {
    const line = `shared.items.${name}: must ${says}, and 2 records have another value`;
    expect([output, refusal]).toEqual([expect.stringContaining(line), expect.stringContaining(line)]);
  }
  await one.restart({ config: config(NARROWED_BEFORE) });
  for (const id of ["bad1", "bad2"]) expect((await one.service.delete(`${P}/${id}`)).status).toBe(200);
  expect((await checkData(one, NARROWED_AFTER)).output).toContain("It fits the 1 database file");
  await one.restart({ config: config(NARROWED_AFTER) });
});

test('[DB330] validate: "new" keeps stored values and refuses new ones; without it they are compared again', async () => {
  const one = await withValues();
  const kept = fieldsOf(([, , after]) => `${after}, validate: "new"`);
  expect((await checkData(one, kept)).output).toContain("It fits the 1 database file");
  await one.restart({ config: config(kept) });
  for (const [name, , , fits, unfit] of NARROWED) {
    expect((await one.service.get(`${P}/bad1`)).body[name]).toBe(unfit as string);
    expect((await one.service.post<object>(P, { [name]: unfit as string })).body).toMatchObject({
      data: { [name]: {} },
    });
    expect((await one.service.patch(`${P}/bad1`, { [name]: fits as string })).status).toBe(200);
  }
  const { output } = await checkData(one, NARROWED_AFTER);
  expect(output).toContain("shared.items.status: must be one of");
  expect(output).toContain("and 1 records have another value");
});

test("[DB330] a migration that changes the values settles it, also of another type", async () => {
  const one = await start(`{ schema: { status: { type: "string" }, at: { type: "string" } } }`);
  await one.service.post(P, { id: "a", status: "Open", at: "1.2.2026" });
  const after = (up: string) => `{ schema: { status: { type: "string", enum: ["open"] }, at: { type: "datetime" } },
    migrations: [{ version: 1, description: "lower case", up: \`${up}\` }] }`;
  const { output } = await checkData(one, after("UPDATE items SET status = lower(status)"));
  expect(output).toContain(
    "shared.items.at: must be a date and time with an offset, such as 2024-05-06T04:00:00.000Z, and 1 records have another value",
  );
  expect(output).not.toContain("items.status");
  await one.restart({
    config: config(after("UPDATE items SET status = lower(status), at = '2026-02-01T01:00+01:00'")),
  });
  expect((await one.service.get(`${P}/a`)).body).toMatchObject({ status: "open", at: "2026-02-01T00:00:00.000Z" });
});

test("[DB330] a reference that records break names its field and counts them", async () => {
  const one = await start(`{ schema: { parent: { type: "string" } } }`);
  for (const parent of ["a", "x", "y"])
    await one.service.post(P, { id: parent === "a" ? "a" : `of-${parent}`, parent });
  const { output } = await checkData(one, `{ schema: { parent: { type: "string", references: "items" } } }`);
  expect(output).toContain("shared.items.parent: 2 records refer to records of items that do not exist");
});

test.each([
  ["a required field", 'phone: { type: "string", required: true }', "UPDATE items SET phone = name"],
  ["an optional one, by table", "phone: { type: 'string' }", "UPDATE items SET name = items.phone"],
  ["one that is inserted", "phone: { type: 'string' }", "INSERT INTO items (id, phone) VALUES ('b', 'x')"],
])(
  "[DB331] a migration that uses a new field before it is there says what belongs into it: %s",
  async (_, field, up) => {
    const one = await start(`{ schema: { name: { type: "string" } } }`);
    await one.service.post(P, { id: "a", name: "one" });
    const with1 = (text: string) => `{ schema: { name: { type: "string" }, ${field} },
    migrations: [{ version: 1, description: "phones", up: \`${text}\` }] }`;
    const { code, output } = await checkData(one, with1(up));
    const add = 'ALTER TABLE "items" ADD COLUMN "phone" TEXT';
    expect([code, output]).toEqual([1, expect.stringContaining(`${add} has to come first`)]);
    const unsaid = await checkData(one, `{ schema: { name: { type: "string" }, ${field} } }`);
    if (field.includes("required")) expect(unsaid.output).toContain(`a migration can add it (${add})`);
    const mended = `${add}; UPDATE items SET phone = name`;
    await one.restart({ config: config(with1(mended)) });
    expect((await one.service.get(`${P}/a`)).body).toMatchObject({ name: "one", phone: "one" });
  },
);

test("[DB331] a migration that fills a new table says that it has to create it", async () => {
  const one = await start(`{ schema: { name: { type: "string" } } }`);
  await one.service.post(P, { id: "a", name: "one" });
  const filled = (
    up: string,
  ) => `{ schema: { name: { type: "string" } }, migrations: [{ version: 1, description: "x", up: \`${up}\` }] },
    names: { schema: { name: { type: "string" } } }`;
  const { output } = await checkData(one, filled("INSERT INTO names (id, name) SELECT id, name FROM items"));
  expect(output).toContain("this one has to create names");
});
