/** Tests SQL over the tables of namespaces: what it reads, and everything that it must not. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

const SCOPED = "table-queries-scoped-0123456789abcdefghij";
const FULL = "table-queries-full-0123456789abcdefghijkl";
const CONFIG = `{
  databases: {
    shop: {
      tables: {
        products: {
          schema: {
            title: { type: "string" }, price: { type: "number" }, cost: { type: "number" }, tags: { type: "json" }, spot: { type: "geo" },
          },
          fts: { fields: ["title"] },
          access: { read: false },
        },
        notes: {},
      },
      views: { dear: { sql: "SELECT id, title FROM products WHERE price > 10", schema: { title: { type: "string" } }, access: { read: true } } },
    },
    boards: { instance: true, tables: { cards: { schema: { title: { type: "string" } } } } },
  },
  d1: { reports: {} },
  serviceKeys: {
    scoped: { key: "${SCOPED}", scopes: ["db:*:*:read", "d1:database:*:*", "system:*:*:read"] },
    full: { key: "${FULL}" },
  },
}`;
const ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const { service } = platform;
  for (const [title, price] of [
    ["Lamp", 12],
    ["Pen", 2],
  ] as const) {
    const spot = { lat: 48.1, lng: 11.5 };
    await inserted("shop/tables/products", { title, price, cost: price / 2, tags: ["new", title], spot });
  }
  await inserted("shop/tables/notes", { text: "first", deep: { n: 1 } });
  await inserted("boards/b1/tables/cards", { title: "One" });
  await inserted("boards/b2/tables/cards", { title: "Two" });
  expect((await service.post("/api/d1/reports", { query: "CREATE TABLE t (a)" })).status).toBe(200);
});
afterAll(() => platform.stop());

interface SqlAnswer {
  results: JsonObject[];
  meta: { changes: number; rows_read: number; duration: number };
  message: string;
}
async function inserted(path: string, record: JsonObject): Promise<void> {
  expect((await platform.service.post(`/api/db/${path}`, record)).status).toBe(201);
}
const sql = (query: string, { place = "shop", params }: { place?: string; params?: JsonValue[] } = {}) =>
  platform.service.post<SqlAnswer & ErrorAnswer>(`/api/admin/sql/${place}`, {
    query,
    ...(params === undefined ? {} : { params }),
  });

test("[DQ20] declared tables are joined, also those that nobody else may read, with JSON, in the form of d1", async () => {
  const joined = await sql(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2), named AS (SELECT * FROM products)
     SELECT p.title, p.cost, t.value AS tag, n.i, (SELECT count(*) FROM notes) AS notes
     FROM named AS p JOIN json_each(p.tags) AS t JOIN n ON n.i = 1 WHERE p.price > ? ORDER BY tag`,
    { params: [5] },
  );
  expect([joined.status, joined.body]).toEqual([
    200,
    {
      results: [
        { title: "Lamp", cost: 6, tag: "Lamp", i: 1, notes: 1 },
        { title: "Lamp", cost: 6, tag: "new", i: 1, notes: 1 },
      ],
      meta: { changes: 0, rows_read: 2, duration: expect.any(Number) },
    } as never,
  ]);
  const document = await sql(`SELECT _platform_document ->> '$.text' AS text FROM "NOTES"`);
  expect(document.body.results).toEqual([{ text: "first" }]);
  const plan = await sql("EXPLAIN QUERY PLAN SELECT * FROM products WHERE id = 'x'");
  expect(String(plan.body.results[0]?.["detail"])).toContain("SEARCH products");
  const counted = await sql("WITH c (x, y) AS (VALUES (1, 2), (3, 4)) SELECT count(*) AS n FROM c, (SELECT 1) AS d");
  expect(counted.body.results).toEqual([{ n: 2 }]);
  expect((await sql("VALUES (1), (2)")).body.meta.rows_read).toBe(2);
});

test("[DQ20] nothing else is read, and nothing is changed, however it is written", async () => {
  const before = (await sql("SELECT id, title, price, updatedAt FROM products ORDER BY id")).body.results;
  const refused = [
    `ATTACH '${platform.dataDirectory}/system.db' AS s`,
    `ATTACH DATABASE 'file:${platform.dataDirectory}/system.db?mode=ro' AS s`,
    "DETACH main",
    "PRAGMA table_info(products)",
    "PRAGMA user_version",
    "PRAGMA writable_schema = 1",
    "PRAGMA query_only = 0",
    "SELECT * FROM pragma_table_info('products')",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM main.sqlite_master",
    "SELECT * FROM temp.sqlite_master",
    "SELECT * FROM sqlite_temp_schema",
    "SELECT count(*) FROM sqlite_schema",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM sqlite_schema)",
    "WITH s AS (SELECT * FROM sqlite_schema) SELECT * FROM s",
    "SELECT * FROM products UNION ALL SELECT * FROM sqlite_schema",
    "SELECT * FROM _platform_commit",
    "SELECT count(*) FROM _platform_counts",
    "SELECT * FROM products_fts",
    "SELECT * FROM products_fts WHERE products_fts MATCH 'lamp'",
    "SELECT * FROM products_fts_data",
    "SELECT * FROM dear",
    "SELECT * FROM sqlite_stmt",
    "SELECT * FROM dbstat",
    "SELECT count(*) FROM dbstat",
    "SELECT count(*) FROM products_fts",
    "SELECT count(*) FROM main.sqlite_master",
    "SELECT 1 FROM products, sqlite_schema",
    "SELECT count(*) FROM pragma_table_list",
    "WITH c AS (SELECT 1) SELECT count(*) FROM c, _platform_commit",
    "WITH products AS (SELECT 1) SELECT count(*) FROM products, _platform_counts",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM bytecode('SELECT 1')",
    "INSERT INTO products (id, title) VALUES ('x', 'y')",
    "INSERT INTO products (id, title) VALUES ('x', 'y') RETURNING id",
    "WITH a AS (SELECT 'x' AS id) INSERT INTO products (id) SELECT id FROM a RETURNING *",
    "REPLACE INTO products (id) VALUES ('x')",
    "UPDATE products SET price = 0 RETURNING price",
    "WITH a AS (SELECT 1) UPDATE products SET price = 0",
    "DELETE FROM products",
    "DELETE FROM products RETURNING *",
    "EXPLAIN DELETE FROM products",
    "CREATE TABLE t (a)",
    "CREATE TEMP TABLE t (a)",
    "CREATE TABLE temp.t AS SELECT * FROM products",
    "CREATE VIEW v AS SELECT * FROM sqlite_schema",
    "CREATE TEMP VIEW v AS SELECT * FROM sqlite_schema",
    "CREATE VIRTUAL TABLE v USING fts5vocab('products_fts', 'row')",
    "CREATE TEMP TRIGGER t AFTER INSERT ON products BEGIN SELECT 1; END",
    "DROP TABLE products",
    "ALTER TABLE products ADD COLUMN x",
    "REINDEX",
    "ANALYZE",
    "VACUUM",
    "VACUUM INTO '/tmp/platform-copy.db'",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "SELECT load_extension('x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/platform-x', 'x')",
    "SELECT edit('x')",
    "SELECT * FROM fsdir('/')",
    "SELECT 1; SELECT 2",
    "SELECT 1; DELETE FROM products",
    "/* SELECT */ DELETE FROM products",
    "\ufeffATTACH ':memory:' AS m",
    "",
    "-- nothing",
  ];
  const answers: [string, number][] = [];
  for (const query of refused) answers.push([query, (await sql(query)).status]);
  expect(answers).toEqual(refused.map((query) => [query, 400]));
  const named = await sql("SELECT * FROM sqlite_schema");
  expect(named.body.message).toContain("sqlite_master is not a table of the config");
  expect((await sql("SELECT id, title, price, updatedAt FROM products ORDER BY id")).body.results).toEqual(before);
  // What is tables of another file is not there.
  for (const table of ["cards", "users", "t"]) expect((await sql(`SELECT * FROM ${table}`)).status).toBe(400);
});

test("[DQ20] the root key alone may, and a body that is wrong is named", async () => {
  const body = { query: "SELECT 1" };
  for (const place of ["shop", "boards/b1", "nowhere"]) {
    const path = `/api/admin/sql/${place}`;
    expect((await platform.post(path, body)).status).toBe(401);
    expect((await (await signIn(platform)).post(path, body)).status).toBe(401);
    for (const key of [SCOPED, FULL]) expect((await platform.withKey(key).post(path, body)).status).toBe(403);
  }
  for (const wrong of [{}, { query: 5 }, { query: "SELECT ?", params: [[]] }, { query: "SELECT 1", sql: "" }]) {
    expect((await platform.service.post("/api/admin/sql/shop", wrong)).status).toBe(400);
  }
  expect((await platform.service.post("/api/admin/sql/shop?limit=1", body)).status).toBe(400);
  expect((await sql("SELECT ?")).body.message).toContain("takes 1 parameter, got 0");
});

test("[DQ21] each instance is queried alone, and none is made", async () => {
  expect((await sql("SELECT title FROM cards", { place: "boards/b1" })).body.results).toEqual([{ title: "One" }]);
  expect((await sql("SELECT title FROM cards", { place: "boards/b2" })).body.results).toEqual([{ title: "Two" }]);
  for (const place of ["nowhere", "boards", "boards/b3", "boards/..%2Fshop", "boards/b%2F1", "shop/b1", "reports"]) {
    expect([place, (await sql("SELECT 1", { place })).status]).toEqual([place, 404]);
  }
  const { body } = await platform.service.get<{ instances: { id: string }[] }>("/api/admin/instances/boards");
  expect(body.instances.map(({ id }) => id)).toEqual(["b1", "b2"]);
});

test("[DQ21] a query ends with its instance", async () => {
  await inserted("boards/gone/tables/cards", { title: "Gone" });
  const endless = sql(ENDLESS, { place: "boards/gone" });
  // Queries begin in their order: the endless one runs.
  expect((await sql("SELECT 1", { place: "boards/gone" })).status).toBe(200);
  const deleted = await platform.service.delete("/api/admin/instances/boards/gone");
  expect(deleted.status).toBe(200);
  expect((await endless).status).toBe(404);
});

test("[DQ20] a query runs 30 s at most, and delays nobody; too many rows are 413", async () => {
  const endless = sql(ENDLESS);
  expect((await platform.service.get("/api/db/shop/tables/products")).status).toBe(200);
  const many = await sql(`${ENDLESS.slice(0, -"SELECT count(*) FROM c".length)} SELECT printf('%1000s', x) FROM c`);
  expect(many.status).toBe(413);
  expect((await endless).status).toBe(408);
}, 60_000);

test("[DQ20] large bodies and answers go the same way", async () => {
  const long = "x".repeat(200_000);
  const answer = await sql("SELECT length(?) AS n, title FROM products ORDER BY title", { params: [long] });
  expect(answer.body.results).toEqual([
    { n: 200_000, title: "Lamp" },
    { n: 200_000, title: "Pen" },
  ]);
  expect((await sql(`DELETE FROM products WHERE title = '${long}'`)).status).toBe(400);
  const large = await sql("SELECT printf('%3000000s', 'x') AS text");
  expect(String(large.body.results[0]?.["text"]).length).toBe(3_000_000);
});

test("[DQ22] queries are in the audit log, by their place and without values", async () => {
  await sql("SELECT title FROM products WHERE title = ?", { params: ["hidden-value"] });
  await sql("SELECT title FROM cards WHERE title = ?", { place: "boards/b1", params: ["hidden-value"] });
  await sql("SELECT nothing FROM products");
  const large = await sql("SELECT length(?) AS n", { params: ["hidden-value".repeat(20_000)] });
  expect(large.status).toBe(200);
  type Entries = { entries: { action: string; target: string; after: JsonObject }[] };
  const { body } = await platform.service.get<Entries>("/api/admin/audit?action=sql.query&limit=3");
  expect(body.entries.map(({ target, after }) => [target, after["sql"]])).toEqual([
    ["db/shop", "SELECT length(?) AS n"],
    ["db/boards/b1", "SELECT title FROM cards WHERE title = ?"],
    ["db/shop", "SELECT title FROM products WHERE title = ?"],
  ]);
  expect(JSON.stringify(body)).not.toContain("hidden-value");
});
