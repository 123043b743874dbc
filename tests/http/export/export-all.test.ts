import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SQL } from "bun";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { type Postgres, startPostgres } from "../../support/postgres.ts";
import { runCommand } from "../backup/backup-support.ts";
import { sendForm } from "../tables/tables-files-support.ts";

// What an export holds, read by other programs: Python and PostgreSQL.

setDefaultTimeout(120_000);

const PASSWORD = "correct horse battery";
const CONFIG = `{
  auth: { users: { in: "shared", schema: { bio: { type: "text" } } } },
  storage: { buckets: { files: {}, attic: {} } },
  databases: {
    shared: { tables: {
      authors: { schema: { name: { type: "string", required: true, unique: true }, best: { references: "films" } } },
      films: {
        schema: {
          title: { type: "string", required: true },
          year: { type: "integer", min: 1888 },
          rating: { type: "number" },
          seen: { type: "boolean", required: true, default: false },
          genre: { type: "string", enum: ["drama", "it's"] },
          premiere: { type: "date" },
          shownAt: { type: "datetime" },
          place: { type: "geo" },
          facts: { type: "json" },
          authorId: { references: "authors", required: true },
          cast: { type: "references", references: "authors" },
          poster: { type: "file", bucket: "files" },
          stills: { type: "file", bucket: "files", many: 3 },
        },
        indexes: [{ fields: ["year", "title"] }],
      },
      notes: {},
    }, views: { titles: { sql: "SELECT id, title FROM films", schema: { title: { type: "string" } } } } },
    clubs: { instance: true, tables: { members: { schema: { name: { type: "string" } } } } },
  },
}`;

interface Read {
  namespaces: {
    shared: Record<string, { records: JsonObject[]; csv: Record<string, string>[] }>;
    clubs: Record<string, Record<string, { records: JsonObject[] }>>;
  };
  accounts: (JsonObject & { id: string; email: string | null })[];
  files: { bucket: string; key: string; path: string; size: number; sha256: string; contentType: string }[];
  hashes: Record<string, string>;
  paths: string[];
  sqlite: Record<string, number>;
}

let platform: TestPlatform;
let postgres: Postgres;
let folder: string;
let read: Read;
let before: Record<string, JsonObject[]>;

const tables = "/api/db/shared/tables";
const KEYS = ["a/b.txt", "ä b?.txt", "ä b.txt", `${"long".repeat(70)}/x`, "a", "A/B.txt", "con*|.txt"];
const sha256 = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");
const items = async (path: string): Promise<JsonObject[]> =>
  (await platform.service.get<{ items: JsonObject[] }>(`${path}?limit=200&sort=id`)).body.items;

async function ok(answer: Promise<{ status: number; body: unknown }>): Promise<void> {
  const { status, body } = await answer;
  if (status >= 300) throw new Error(`refused with ${status}: ${JSON.stringify(body)}`);
}

async function fill(): Promise<void> {
  const { service } = platform;
  const users = [
    { id: "ann", email: "ann@example.com", password: PASSWORD, role: "editor", verified: true, metadata: { a: [1] } },
    { id: "bob", email: "bob@example.com" },
  ];
  await ok(service.post("/api/admin/auth/users/import", { users }));
  await ok(service.patch(`${tables}/users/ann`, { bio: "=1+1" }));
  for (const id of ["x", "y"]) await ok(service.post(`${tables}/authors`, { id, name: `Author ${id}` }));
  const film = {
    id: "heat",
    ...{ title: '=A "title", 🎬\n', year: 1995, rating: 8.25, seen: true, genre: "it's", premiere: "1995-12-15" },
    ...{ shownAt: "2024-05-06T06:00:00+02:00", place: { lat: 48.1, lng: -11.5 }, facts: { a: [1, null, "\\\\x"] } },
    ...{ authorId: "x", cast: ["y", "x"] },
  };
  const named = (content: string, name: string, field: string) => ({ content, name, field });
  const files = [named("poster", "p.txt", "poster"), named("one", "s.txt", "stills"), named("two", "s.txt", "stills")];
  await ok(sendForm(service, `${tables}/films`, { record: film, files }));
  await ok(service.post(`${tables}/films`, { id: "a:b", title: "'", authorId: "y", facts: "text" }));
  await ok(service.patch(`${tables}/authors/x`, { best: "heat" }));
  await ok(service.post(`${tables}/notes`, { id: "n", text: "free", list: [{ a: 1 }] }));
  await ok(service.post("/api/db/clubs/one/tables/members", { id: "m", name: "Ann" }));
  await ok(service.post("/api/db/clubs/two/tables/members", { id: "m", name: "Bob" }));
  for (const key of KEYS) {
    const form = new FormData();
    form.append("file", new Blob([`content of ${key}`], { type: "text/plain" }));
    form.append("key", key);
    form.append("metadata", JSON.stringify({ k: "v" }));
    const answer = await service.fetch("/api/storage/attic/upload", { method: "POST", body: form });
    if (answer.status !== 201) throw new Error(await answer.text());
  }
}

const exportAll = (into: string, ...more: string[]) =>
  runCommand(["export", "--all", into, "--config", platform.configFile, "--data", platform.dataDirectory, ...more]);

beforeAll(async () => {
  [platform, postgres] = await Promise.all([testPlatform({ config: CONFIG }), startPostgres()]);
  await fill();
  before = {};
  for (const table of ["users", "authors", "films", "notes"]) before[table] = await items(`${tables}/${table}`);
  folder = join(temporaryDirectory(), "out");
  // Beside the running server.
  const { code, stderr } = await exportAll(folder);
  if (code !== 0) throw new Error(stderr);
  const reader = Bun.spawnSync(["python3", join(import.meta.dir, "read-export.py"), folder]);
  if (!reader.success) throw new Error(String(reader.stderr));
  read = JSON.parse(String(reader.stdout));
});
afterAll(async () => {
  await platform?.stop();
  await postgres?.stop();
});

test("[CL470] another program reads every record, account and path of the API", () => {
  const { shared, clubs } = read.namespaces;
  for (const [table, records] of Object.entries(before))
    expect([table, shared[table]?.records]).toEqual([table, records]);
  expect(Object.keys(shared).sort()).toEqual(["authors", "films", "notes", "users"]);
  const heat = shared["films"]?.csv.find(({ id }) => id === "heat");
  expect(heat).toMatchObject({ title: '=A "title", 🎬\n', year: "1995", seen: "true", cast: '["y","x"]' });
  expect(shared["users"]?.csv.map(({ bio }) => bio)).toEqual(["=1+1", ""]);
  expect(shared["notes"]?.csv).toMatchObject([{ id: "n", text: "free" }]);
  expect([clubs["one"], clubs["two"]].map((one) => one?.["members"]?.records.map(({ name }) => name))).toEqual([
    ["Ann"],
    ["Bob"],
  ]);
  expect(read.paths).toContain("/api/db/shared/tables/films");
  expect(read.accounts.map(({ id, email }) => [id, email])).toEqual([
    ["ann", "ann@example.com"],
    ["bob", "bob@example.com"],
  ]);
});

test("[CL470] the folder is for its owner alone, and one that has something in it stays as it is", async () => {
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const there = temporaryDirectory();
  chmodSync(there, 0o755);
  writeFileSync(join(there, "mine.txt"), "mine");
  const refused = await exportAll(there);
  expect([refused.code, refused.stderr]).toEqual([1, `platform: ${there} is not empty: name a new folder\n`]);
  expect(readdirSync(there)).toEqual(["mine.txt"]);
  const empty = join(temporaryDirectory(), "empty");
  mkdirSync(empty, { mode: 0o755 });
  expect((await exportAll(empty)).code).toBe(0);
  expect(statSync(empty).mode & 0o777).toBe(0o700);
});

test("[CL471] hashes of passwords do not leave a running server, and what has no meaning beside --all is refused", async () => {
  const into = join(temporaryDirectory(), "out");
  const remote = ["--url", platform.url, "--key", platform.serviceKey];
  for (const more of [remote, ["shared/films"], ["--files", "x"]]) {
    expect((await runCommand(["export", ...more, "--all", into])).code).toBe(2);
  }
  expect((await runCommand(["export"])).code).toBe(2);
  expect(existsSync(into)).toBe(false);
});

test("[CL472] accounts are imported by another server, and sign in with the password of before", async () => {
  const other = await testPlatform({ config: CONFIG });
  try {
    await ok(other.service.post("/api/admin/auth/users/import", { users: read.accounts }));
    const answer = await other.post<{ user: JsonObject }>("/api/auth/signin", {
      email: "ann@example.com",
      password: PASSWORD,
    });
    expect(answer.body.user).toMatchObject({ id: "ann", role: "editor", emailVerified: true, metadata: { a: [1] } });
    const list = "/api/auth/admin/users";
    const createdAt = async (server: TestPlatform) =>
      (await server.service.get<JsonObject>(`${list}/ann`)).body["createdAt"];
    expect(await createdAt(other)).toBe(await createdAt(platform));
    for (const table of ["authors", "films"]) {
      const lines = read.namespaces.shared[table]?.records ?? [];
      const plain = lines.map(({ best: _best, poster: _poster, stills: _stills, ...record }) => record);
      writeFileSync(join(folder, "..", `${table}.ndjson`), plain.map((one) => `${JSON.stringify(one)}\n`).join(""));
      const target = ["--url", other.url, "--key", other.serviceKey];
      expect(
        await runCommand(["import", `shared/${table}`, join(folder, "..", `${table}.ndjson`), ...target]),
      ).toMatchObject({
        code: 0,
      });
    }
    const films = (await other.service.get<{ items: JsonObject[] }>(`${tables}/films?sort=id`)).body.items;
    const times = { poster: undefined, stills: undefined, createdAt: undefined, updatedAt: undefined };
    const told = (records: JsonObject[]) => records.map((record) => ({ ...record, ...times }));
    expect(told(films)).toEqual(told(before["films"] ?? []));
  } finally {
    await other.stop();
  }
});

test("[CL473] files keep their keys and names as paths, and what cannot be a path gets its hash", () => {
  expect(read.files.map(({ bucket, key }) => `${bucket} ${key}`).sort()).toEqual(
    KEYS.map((key) => `attic ${key}`).sort(),
  );
  for (const { key, path, size, sha256: hash, contentType } of read.files) {
    const content = `content of ${key}`;
    expect([size, hash, contentType]).toEqual([
      Buffer.byteLength(content),
      sha256(content),
      "text/plain;charset=utf-8",
    ]);
    expect([key, read.hashes[path]]).toEqual([key, hash]);
  }
  const pathOf = (key: string) => read.files.find((one) => one.key === key)?.path;
  expect([pathOf("a"), pathOf("ä b.txt")]).toEqual(["files/attic/a", "files/attic/ä b.txt"]);
  // "a" is a file already, and no folder.
  for (const key of ["a/b.txt", "ä b?.txt", "con*|.txt", KEYS[3] ?? ""])
    expect(pathOf(key)).toBe(`files/attic/${sha256(key)}`);
  const heat = "files/shared/films/heat";
  expect(read.hashes[`${heat}/poster/p.txt`]).toBe(sha256("poster"));
  expect(read.hashes[`${heat}/stills/s.txt`]).toBe(sha256("one"));
  // The second one of its name is called by its id.
  const [, second] = (before["films"]?.find(({ id }) => id === "heat")?.["stills"] ?? []) as { id: string }[];
  expect(read.hashes[`${heat}/stills/${second?.id}`]).toBe(sha256("two"));
});

test("[CL474] the schema makes tables of SQLite that take every record", () => {
  expect(read.sqlite).toEqual({ "shared.authors": 2, "shared.films": 2, "shared.notes": 1, "shared.users": 2 });
});

/** Fills the tables of PostgreSQL by the statements that the schema's comments have. */
async function restore(sql: SQL): Promise<void> {
  const schema = readFileSync(join(folder, "schema.postgres.sql"), "utf8");
  await sql.unsafe(schema).simple();
  await sql.begin(async (tx) => {
    await tx.unsafe("CREATE TEMPORARY TABLE lines (line jsonb)");
    for (const [, statement = "", namespace, table] of schema.matchAll(/^-- (INSERT INTO "(\w+)"\."(\w+)".*)$/gm)) {
      const file = join(folder, namespace ?? "", `${table}.ndjson`);
      if (!existsSync(file)) continue;
      await tx.unsafe("TRUNCATE lines");
      for (const line of readFileSync(file, "utf8").trimEnd().split("\n")) {
        await tx.unsafe("INSERT INTO lines VALUES ($1::text::jsonb)", [line]);
      }
      await tx.unsafe(statement);
    }
  });
}

test("[CL474] a restore into PostgreSQL has every record, with types, references and bounds", async () => {
  const sql = postgres.open();
  await restore(sql);
  for (const [table, records] of Object.entries(before)) {
    if (table === "notes") continue;
    const rows: { record: string }[] = await sql.unsafe(
      `SELECT to_jsonb(t)::text AS record FROM "shared"."${table}" AS t ORDER BY id COLLATE "C"`,
    );
    const found = rows.map(({ record }) => inUtc(JSON.parse(record)));
    expect([table, found]).toEqual([table, records]);
  }
  const [note] = await sql.unsafe(`SELECT id, record::text AS record FROM "shared"."notes"`);
  expect([note.id, JSON.parse(note.record)]).toEqual(["n", { text: "free", list: [{ a: 1 }] }]);
  const refused = (statement: string): Promise<string> =>
    sql.unsafe(statement).then(
      () => "taken",
      (cause: { errno: string }) => cause.errno,
    );
  expect(await refused(`UPDATE "shared"."films" SET genre = 'war'`)).toBe("23514");
  expect(await refused(`UPDATE "shared"."films" SET year = 1800`)).toBe("23514");
  expect(await refused(`UPDATE "shared"."films" SET "authorId" = 'nobody'`)).toBe("23503");
  expect(await refused(`UPDATE "shared"."authors" SET name = 'Author x'`)).toBe("23505");
  expect(await refused(`UPDATE "shared"."films" SET title = NULL`)).toBe("23502");
});

/** Returns a record of PostgreSQL with times as this server writes them. */
function inUtc(record: JsonObject): JsonObject {
  const isTime = (value: unknown): value is string => typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value);
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, isTime(value) ? new Date(value).toISOString() : value]),
  );
}

test("[CL475] an export of files that are damaged fails, names them, and leaves nothing", async () => {
  const into = join(temporaryDirectory(), "out");
  const objects = join(platform.dataDirectory, "storage", "objects");
  const [content] = [...new Bun.Glob("*/*").scanSync({ cwd: objects, absolute: true })].filter(
    (path) => readFileSync(path, "utf8") === "content of a",
  );
  if (content === undefined) throw new Error("there is no content");
  writeFileSync(content, "content of");
  try {
    const { code, stderr } = await exportAll(into);
    expect([code, stderr]).toEqual([1, expect.stringContaining("has 10 bytes, and should have 12")]);
    expect(readdirSync(into)).toEqual([]);
  } finally {
    writeFileSync(content, "content of a");
  }
});
