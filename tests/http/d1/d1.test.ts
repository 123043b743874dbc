import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

const READER = "d1-scoped-key-0123456789abcdefghijklmnop";
const CONFIG = {
  d1: { main: {}, second: {}, slow: {} },
  serviceKeys: { scoped: { key: READER, scopes: ["d1:database:main:*"] } },
};
const ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  await sql("CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT UNIQUE, extra)");
});
afterAll(() => platform.stop());

interface SqlAnswer {
  results: JsonObject[];
  meta: { changes: number; rows_read: number; duration: number };
  message: string;
}
const sql = (query: string, params?: JsonValue[], database = "main") =>
  platform.service.post<SqlAnswer>(`/api/d1/${database}`, { query, ...(params === undefined ? {} : { params }) });
const rows = async (query: string, params?: JsonValue[], database?: string) =>
  (await sql(query, params, database)).body.results;

test("[DQ1] statements answer with their rows and what they did", async () => {
  const inserted = await sql("INSERT INTO posts (title) VALUES (?), (?)", ["one", "two"]);
  expect([inserted.status, inserted.body]).toEqual([
    200,
    { results: [], meta: { changes: 2, rows_read: 0, duration: expect.any(Number) } } as never,
  ]);
  const selected = await sql("SELECT id, title FROM posts WHERE title <> ? ORDER BY id;", ["none"]);
  expect(selected.body.results).toEqual([
    { id: 1, title: "one" },
    { id: 2, title: "two" },
  ]);
  expect(selected.body.meta).toMatchObject({ changes: 0, rows_read: 2 });
  const returning = await sql("UPDATE posts SET title = title || '!' RETURNING title");
  expect(returning.body.results).toEqual([{ title: "one!" }, { title: "two!" }]);
  expect(returning.body.meta).toMatchObject({ changes: 2, rows_read: 2 });
  expect((await sql("DELETE FROM posts WHERE id = 5")).body.meta.changes).toBe(0);
  expect((await sql("CREATE TABLE other (a)")).body.meta.changes).toBe(0);
  expect((await sql("VACUUM")).status).toBe(200);
});

test("[DQ2] values keep their types, in and out", async () => {
  const [types] = await rows("SELECT typeof(?) a, typeof(?) b, typeof(?) c, typeof(?) d, typeof(?) e", [
    ...[1, 2 ** 40, 1.5, true, null],
  ]);
  expect(types).toEqual({ a: "integer", b: "integer", c: "real", d: "integer", e: "null" });
  const [values] = await rows(
    "SELECT 9223372036854775807 big, -9007199254740991 safe, x'00ff10' blob, 1.5 r, 'é\"\n' t, NULL n",
  );
  expect(values).toEqual({
    ...{ big: "9223372036854775807", safe: -9007199254740991, blob: "AP8Q", r: 1.5, t: 'é"\n', n: null },
  });
  expect(await rows('SELECT 1 AS a, 2 AS a, 3 AS "__proto__"')).toEqual([JSON.parse('{"a":2,"__proto__":3}')]);
});

test("[DQ2] many values keep their types, each in its place", async () => {
  const values = ["text", 1.5, true, null, ...Array.from({ length: 5_000 }, (_, n) => n)];
  const listed = values.map(() => "(?)").join(", ");
  const bound = `WITH bound(v) AS (VALUES ${listed}) SELECT count(*) AS n, sum(v) AS total, group_concat(typeof(v)) AS types`;
  const [answer] = await rows(`${bound} FROM (SELECT v FROM bound LIMIT 5)`, values);
  expect(answer).toEqual({ n: 5, total: 2.5, types: "text,real,integer,null,integer" });
  const [all] = await rows(`${bound.replace("group_concat(typeof(v))", "max(v)")} FROM bound WHERE v < 'a'`, values);
  expect(all).toEqual({ n: 5_002, total: (4_999 * 5_000) / 2 + 2.5, types: 4_999 });
});

test("[DQ3] what SQLite refuses is 400 with its message", async () => {
  await sql("INSERT INTO posts (id, title) VALUES (100, 'taken')");
  const failures: [string, JsonValue[] | undefined, string][] = [
    ["SELEC 1", undefined, "syntax error"],
    ["SELECT * FROM nowhere", undefined, "no such table: nowhere"],
    ["INSERT INTO posts (title) VALUES ('taken')", undefined, "UNIQUE constraint failed"],
    ["SELECT ?, ?", [1], "takes 2 parameters, got 1"],
    ["SELECT ?", [1, 2], "takes 1 parameter, got 2"],
    ["SELECT ?", [[1]], "params.0"],
    ["SELECT ?", [{}], "params.0"],
    ["SELECT abs(-9223372036854775807 - 1)", undefined, "integer overflow"],
  ];
  for (const [query, params, message] of failures) {
    const answer = await sql(query, params);
    expect([query, answer.status]).toEqual([query, 400]);
    expect(answer.body.message).toContain(message);
  }
  expect((await platform.service.post("/api/d1/main", {})).status).toBe(400);
  expect((await platform.service.post("/api/d1/main", { query: "SELECT 1", params: "x" })).status).toBe(400);
});

test("[DQ4] several statements are refused, and none runs", async () => {
  expect((await sql("INSERT INTO other VALUES (1); DROP TABLE other")).status).toBe(400);
  expect(await rows("SELECT count(*) AS n FROM other")).toEqual([{ n: 0 }]);
});

test("[DQ5] nothing leads out of the file, and pragmas only read", async () => {
  const refused = [
    `ATTACH '${platform.dataDirectory}/system.db' AS s`,
    "VACUUM INTO '/tmp/copy.db'",
    "SELECT load_extension('x')",
    "BEGIN",
    "COMMIT",
    "PRAGMA journal_mode = delete",
    "PRAGMA user_version = 5",
    "CREATE TEMP TABLE t (a)",
    "CREATE TABLE 'temp'.t (a)",
    `\ufeffATTACH '${platform.dataDirectory}/system.db' AS s`,
    ` \vATTACH '${platform.dataDirectory}/system.db' AS s`,
    "VACUUM \ufeffINTO '/tmp/copy.db'",
    "\ufeffBEGIN",
    "CREATE \ufeffTEMP TABLE t (a)",
    "SELECT * FROM 'pragma_database_list'",
    "SELECT #a('), file FROM pragma_database_list --')",
  ];
  for (const query of refused) expect([query, (await sql(query)).status]).toEqual([query, 400]);
  expect((await sql("SELECT * FROM s.sqlite_schema")).status).toBe(400);
  expect(await rows("PRAGMA user_version")).toEqual([{ user_version: 0 }]);
  expect((await rows("PRAGMA table_info(posts)")).map(({ name }) => name)).toEqual(["id", "title", "extra"]);
  expect((await rows("SELECT name FROM pragma_table_info('posts')")).length).toBe(3);
});

test("[DQ101] keywords in names and texts are allowed", async () => {
  expect((await sql("CREATE TABLE words (attach TEXT, pragma_note TEXT, load_extension TEXT)")).status).toBe(200);
  expect((await sql("CREATE TABLE pragma_words (begin_at)")).status).toBe(200);
  expect((await sql("INSERT INTO words VALUES ('ATTACH ''x'' AS y', 'pragma_database_list', 'x')")).status).toBe(200);
  expect(await rows("SELECT attach, pragma_note FROM words, 'pragma_words' WHERE 0 OR attach = ?", ["x"])).toEqual([]);
  expect(await rows("SELECT count(*) AS vacuum FROM words")).toEqual([{ vacuum: 1 }]);
  // A comment before the first word sends it to the other process first.
  expect((await sql("/* c */ INSERT INTO words VALUES (?1, :a, ?1)", ["one", "two"])).body.meta.changes).toBe(1);
  expect(await rows("SELECT * FROM words WHERE attach = 'one'")).toEqual([
    { attach: "one", pragma_note: "two", load_extension: "one" },
  ]);
});

test("[DQ6] a write that fails in the middle leaves nothing, and one that was answered survives a killed server", async () => {
  await sql("CREATE TABLE numbers (n INTEGER PRIMARY KEY)", [], "second");
  await sql("INSERT INTO numbers VALUES (5)", [], "second");
  const failing = await sql("INSERT INTO numbers SELECT value FROM json_each('[1,2,5]')", [], "second");
  expect(failing.status).toBe(400);
  await Promise.all(Array.from({ length: 20 }, (_, n) => sql("INSERT INTO numbers VALUES (?)", [100 + n], "second")));
  await platform.kill("SIGKILL");
  await platform.restart();
  const left = (await rows("SELECT n FROM numbers ORDER BY n", [], "second")).map(({ n }) => n);
  expect(left).toEqual([5, ...Array.from({ length: 20 }, (_, n) => 100 + n)]);
});

test("[DQ8] a query that does not end delays nothing else", async () => {
  await sql("CREATE TABLE t (a)", [], "slow");
  const abort = new AbortController();
  const long = platform.service
    .fetch("/api/d1/slow", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query: ENDLESS }),
      signal: abort.signal,
    })
    .catch(() => null);
  await Bun.sleep(100);
  for (let turn = 0; turn < 10; turn++) {
    expect((await sql("INSERT INTO t VALUES (?)", [turn], "slow")).status).toBe(200);
    expect(await rows("SELECT count(*) AS n FROM t", [], "slow")).toEqual([{ n: turn + 1 }]);
    expect((await platform.get("/api/health")).status).toBe(200);
  }
  abort.abort();
  await long;
});

test("[DQ15] a read whose client disconnects releases its place", async () => {
  const abort = new AbortController();
  const init = { method: "POST", headers: { "content-type": "application/json" }, signal: abort.signal };
  const body = JSON.stringify({ query: ENDLESS });
  const abandoned = Array.from({ length: 8 }, () =>
    platform.service.fetch("/api/d1/slow", { ...init, body }).catch(() => null),
  );
  await Bun.sleep(200);
  abort.abort();
  await Promise.all(abandoned);
  // Four endless reads would hold every place, and four more would wait before this one.
  expect(await rows("SELECT 1 AS one", [], "slow")).toEqual([{ one: 1 }]);
});

test("[DQ10] too many rows are 413, and the statement has changed nothing", async () => {
  const euros = "SELECT replace(hex(zeroblob(5000)), '0', '€') AS a FROM json_each(?)";
  const list = (length: number): string => JSON.stringify(Array.from({ length }, () => 0));
  // 30,000 bytes of UTF-8 a row, 10,000 UTF-16 units.
  expect((await sql(euros, [list(1_100)])).status).toBe(200);
  expect((await sql(euros, [list(1_200)])).status).toBe(413);
  const endlessRows = ENDLESS.replace("count(*)", "printf('%.40000c', 'x') AS a");
  expect((await sql(endlessRows)).status).toBe(413);
  await sql("CREATE TABLE filled (a)");
  expect((await sql(`INSERT INTO filled ${endlessRows} LIMIT 900 RETURNING a`)).status).toBe(413);
  expect(await rows("SELECT count(*) AS n FROM filled")).toEqual([{ n: 0 }]);
});

test("[DQ11] a service key with the scope is required", async () => {
  const body = { query: "SELECT 1" };
  expect((await platform.post("/api/d1/main", body)).status).toBe(401);
  expect((await platform.withKey("wrong").post("/api/d1/main", body)).status).toBe(401);
  expect((await platform.service.post("/api/d1/nowhere", body)).status).toBe(404);
  expect((await platform.withKey(READER).post("/api/d1/main", body)).status).toBe(200);
  expect((await platform.withKey(READER).post("/api/d1/second", {})).status).toBe(403);
});

test("[DQ14] foreign keys are enforced", async () => {
  await sql("CREATE TABLE parents (id INTEGER PRIMARY KEY)");
  await sql("CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)");
  const answer = await sql("INSERT INTO children VALUES (1)");
  expect([answer.status, answer.body.message]).toEqual([400, "FOREIGN KEY constraint failed"]);
  expect(await rows("SELECT * FROM children")).toEqual([]);
});

test("[DQ12] a killed server leaves no query running", async () => {
  const processes = (): { id: number; parent: number }[] => {
    const list = Bun.spawnSync(["ps", "-eo", "pid=,ppid="]).stdout.toString().trim().split("\n");
    return list.map((line) => {
      const [id, parent] = line.trim().split(/\s+/).map(Number);
      return { id: id ?? 0, parent: parent ?? 0 };
    });
  };
  const ofServer = () => {
    const all = processes();
    const servers = all.filter(({ parent }) => parent === process.pid).map(({ id }) => id);
    return all.filter(({ parent }) => servers.includes(parent));
  };
  const long = sql(ENDLESS).catch(() => null);
  for (let turn = 0; turn < 200 && ofServer().length === 0; turn++) await Bun.sleep(10);
  const ids = ofServer().map(({ id }) => id);
  expect(ids.length).toBeGreaterThan(0);
  await platform.kill("SIGKILL");
  await long;
  const left = () => processes().filter(({ id }) => ids.includes(id));
  for (let turn = 0; turn < 200 && left().length > 0; turn++) await Bun.sleep(10);
  expect(left()).toEqual([]);
  await platform.restart();
});

test("[DQ100] an unknown member of a query is 400 and named, and nothing runs", async () => {
  const body = { query: "CREATE TABLE strict (a)", params: [], bindings: [1] };
  const answer = await platform.service.post<ErrorAnswer>("/api/d1/main", body);
  expect([answer.status, answer.body.data?.["bindings"]?.code]).toEqual([400, "unknown_field"]);
  expect(await rows("SELECT name FROM sqlite_schema WHERE name = 'strict'")).toEqual([]);
});

test("[DQ105] a large body is checked like a small one, and runs where its statement belongs", async () => {
  const large = "é".repeat(100_000);
  const post = async (body: string, type = "application/json") => {
    const headers = { "content-type": type };
    const response = await platform.service.fetch("/api/d1/main", { method: "POST", headers, body });
    return { status: response.status, body: (await response.json()) as ErrorAnswer & SqlAnswer };
  };
  const refused = async (body: string) => {
    const { status, body: answer } = await post(body);
    return [status, answer.message, answer.data ?? null];
  };
  expect((await sql("SELECT length(?) AS n", [large])).body.results).toEqual([{ n: 100_000 }]);
  await sql("CREATE TABLE large (text)");
  // Where the statement comes last, nothing says that it writes until the whole body is parsed.
  for (const body of [
    { query: "INSERT INTO large VALUES (?)", params: [large] },
    { params: [large], query: "INSERT INTO large VALUES (?)" },
  ]) {
    expect((await post(JSON.stringify(body))).body.meta.changes).toBe(1);
  }
  expect(await rows("SELECT count(*) AS n, min(length(text)) AS m FROM large")).toEqual([{ n: 2, m: 100_000 }]);

  const field = (name: string, code: string) => ({ [name]: { code, message: expect.any(String) } });
  const bodies: [unknown, object | null][] = [
    [{ params: [large] }, field("query", "required")],
    [{ query: 1, params: [large] }, field("query", "invalid_type")],
    [{ query: "x".repeat(1_000_001) }, field("query", "too_long")],
    [{ query: "SELECT ?", params: [large], other: 1 }, field("other", "unknown_field")],
    [{ query: "SELECT ?", params: [large, [1]] }, field("params.1", "invalid_type")],
    [{ query: "SELECT ?", params: [large, "\ud800"] }, field("params.1", "invalid_value")],
    [{ query: "SELECT 1; SELECT ?", params: [large] }, field("query", "invalid_value")],
    // What SQLite itself refuses names no field.
    [{ query: "SELECT nowhere WHERE 1 = ?", params: [large] }, null],
  ];
  for (const [body, data] of bodies) {
    expect(await refused(JSON.stringify(body))).toEqual([400, expect.any(String), data]);
  }
  expect(await refused(`["${large}"]`)).toEqual([400, "The body must be a JSON object", null]);
  expect(await refused(`{"query":"${large}`)).toEqual([400, "The body is not valid JSON", null]);
  expect(await refused("[".repeat(100_000))).toEqual([400, "The body nests deeper than 64 levels", null]);
  expect((await post(`{"query":"SELECT 1"${" ".repeat(11 * 1024 * 1024)}}`)).status).toBe(413);
  expect((await post(JSON.stringify({ query: large }), "text/plain")).status).toBe(415);
});
