import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ListAnswer, signIn, type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { timedPlatform } from "../../support/timed-platform.ts";
import { until } from "../../support/until.ts";
import { connect, subscribe } from "../../ws/realtime/realtime-support.ts";

// Files with datetimes as 0.2 has stored them: in whatever form they were sent.

const rules = "access: { read: true, insert: true, update: true, delete: true }";
const tables = `{
  events: {
    schema: {
      at: { type: "datetime" }, key: { type: "datetime", unique: true }, title: { type: "string" },
      shown: { type: "datetime", check: "shown LIKE '%+%'" },
    },
    indexes: [{ fields: ["at"] }], fts: ["title"], ${rules},
    migrations: [{ version: 1, description: "a trigger of its own", up:
      "CREATE TRIGGER touched AFTER UPDATE ON events BEGIN UPDATE events SET title = 'touched' WHERE id = new.id; END" }],
  },
  seats: { schema: { of: { type: "datetime", references: { table: "events", column: "key" } }, n: { type: "integer" } }, ${rules} },
  plain: { ${rules} },
  blind: { schema: { at: { type: "datetime" }, key: { type: "datetime", unique: true } }, access: { update: true } },
}`;
const CONFIG = `{ databases: {
  shared: { tables: ${tables} },
  spaces: { instance: true, access: { open: true, create: true }, tables: ${tables} },
} }`;

let platform: TestPlatform;
beforeEach(async () => {
  // The migration runs on a table that is there, so the trigger comes with the second start.
  platform = await testPlatform({ config: CONFIG.replaceAll(/migrations: \[.*\n.*\],\n/g, "") });
  for (const path of ["shared", "spaces/a"]) {
    expect((await platform.service.post(`/api/db/${path}/tables/events`, { id: "first" })).status).toBe(201);
  }
  await platform.restart({ config: CONFIG });
  expect((await platform.get("/api/db/spaces/a/tables/events/first")).status).toBe(200);
  await platform.kill();
});
afterEach(() => platform.stop());

const STATIC = "/api/db/shared/tables";
const INSTANCE = "/api/db/spaces/a/tables";
const fileOf = (path: string) =>
  join(platform.dataDirectory, "databases", path === STATIC ? "shared.db" : "spaces/a.db");

/** Opens a file, once the processes of a killed server have left it. */
function openOf(file: string): Database {
  const sqlite = new Database(file, { readwrite: true });
  sqlite.run("PRAGMA busy_timeout = 20000");
  return sqlite;
}

const asOf02 = (path: string, ...statements: string[]): void => make02(fileOf(path), statements);

/** Makes a file one of 0.2, with these statements. */
function make02(file: string, statements: readonly string[]): void {
  using sqlite = openOf(file);
  const triggers = sqlite
    .query<{ name: string; sql: string }, []>(
      "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name = 'touched'",
    )
    .all();
  for (const { name } of triggers) sqlite.run(`DROP TRIGGER ${name}`);
  for (const statement of statements) sqlite.run(statement);
  for (const { sql } of triggers) sqlite.run(sql);
  sqlite.run("DELETE FROM _platform_meta WHERE name = 'datetimes'");
  sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
}

const inserted = (id: string, values: Record<string, string>) => {
  const named = { id, createdAt: OLD, updatedAt: OLD, ...values };
  const list = (parts: string[]) => parts.join(", ");
  return `INSERT INTO events (${list(Object.keys(named))}) VALUES (${list(Object.values(named).map((one) => `'${one}'`))})`;
};
const OLD = "2020-01-01T00:00:00.000Z";
const INSTANT = "2024-05-06T04:00:00.000Z";
const FORMS = [
  "2024-05-06T06:00:00+02:00",
  "2024-05-06T04:00Z",
  "2024-05-06T09:30:00.000+0530",
  "2024-05-06T04:00:00.000999Z",
];

test.each([STATIC, INSTANCE])(
  "[TB684] every form of 0.2 with an offset is rewritten at the next start, in %p",
  async (path) => {
    asOf02(
      path,
      "UPDATE plain SET createdAt = createdAt",
      ...FORMS.map((at, index) => inserted(`r${index}`, { at, title: "word" })),
      inserted("imported", { createdAt: "2020-01-01T01:00+01:00" }),
    );
    await platform.restart({});
    const { body } = await platform.get<ListAnswer>(`${path}/events`, {
      query: { filter: '[["at","!=",null]]', sort: "id" },
    });
    expect(body.items).toEqual(
      FORMS.map((_, index) => ({
        id: `r${index}`,
        at: INSTANT,
        key: null,
        title: "word",
        shown: null,
        createdAt: OLD,
        updatedAt: OLD,
      })),
    );
    expect((await platform.get(`${path}/events/imported`)).body).toMatchObject({ createdAt: OLD });
    // The index of texts, and the config's own trigger, are there again.
    expect((await platform.get(`${path}/events/search`, { query: { q: "word" } })).body).toMatchObject({ total: 4 });
    expect((await platform.patch(`${path}/events/r0`, { title: "changed" })).status).toBe(200);
    expect((await platform.get(`${path}/events/r0`)).body).toMatchObject({ title: "touched" });
    // Once: what another program writes later is left alone.
    await platform.kill();
    using sqlite = openOf(fileOf(path));
    sqlite.run("UPDATE events SET at = '2024-05-06T06:00:00+02:00' WHERE id = 'r1'");
    sqlite.close();
    await platform.restart({});
    expect((await platform.get(`${path}/events/r1`)).body).toMatchObject({ at: FORMS[0] });
  },
);

test.each([STATIC, INSTANCE])(
  "[TB684] what cannot be read stays, is counted in the log, and may be sent back, in %p",
  async (path) => {
    asOf02(path, inserted("day", { at: "2024-05-06" }), inserted("local", { at: "2024-05-06T04:00" }));
    await platform.restart({});
    const { body: day } = await platform.get<JsonObject>(`${path}/events/day`);
    expect(day).toMatchObject({ at: "2024-05-06", updatedAt: OLD });
    const where = path === STATIC ? "databases.shared.events.at" : "databases.spaces.events.at";
    expect(platform.stderr()).toContain(`${where}: 2 datetimes have no offset and stay as they were`);
    expect((await platform.patch(`${path}/events/day`, { title: "x" })).body).toMatchObject({ at: "2024-05-06" });
    expect((await platform.patch(`${path}/events/day`, { ...day, title: "y" })).status).toBe(200);
    expect((await platform.patch(`${path}/events/day`, { at: "2024-05-07" })).status).toBe(400);
    expect((await platform.patch(`${path}/events/local`, { at: "2024-05-06" })).status).toBe(400);
    const upsert = await platform.service.post(
      `${path}/events`,
      { id: "day", at: "2024-05-06" },
      { query: { upsert: "true" } },
    );
    expect(upsert).toMatchObject({ status: 200, body: { at: "2024-05-06" } });
    expect((await platform.patch(`${path}/events/day`, { at: FORMS[0] ?? "" })).body).toMatchObject({ at: INSTANT });
    expect((await platform.patch(`${path}/events/day`, { at: "2024-05-06" })).status).toBe(400);
  },
);

test("[TB684] of two values of a unique field that are one instant the later one stays, is named, and may be sent back", async () => {
  asOf02(
    STATIC,
    ...FORMS.slice(0, 2).map((key, index) => inserted(`k${index}`, { key })),
    inserted("other", { key: "2024-05-07T00:00Z" }),
    inserted("odd", { shown: "2024-05-06T06:00:00+02:00" }),
  );
  await platform.restart({});
  expect((await platform.get(`${STATIC}/events/k0`)).body).toMatchObject({ key: INSTANT });
  expect((await platform.get(`${STATIC}/events/k1`)).body).toMatchObject({ key: FORMS[1] });
  expect((await platform.get(`${STATIC}/events/other`)).body).toMatchObject({ key: "2024-05-07T00:00:00.000Z" });
  expect((await platform.get(`${STATIC}/events/odd`)).body).toMatchObject({ shown: FORMS[0] });
  const log = platform.stderr();
  expect(log).toMatch(/shared\.events\.key: 1 datetimes .* in the records k1/);
  expect(log).toMatch(/shared\.events\.shown: 1 datetimes .* in the records odd/);
  const back = { title: "x", key: FORMS[1] ?? "" };
  expect((await platform.patch(`${STATIC}/events/k1`, back)).body).toMatchObject({ key: FORMS[1] });
  expect((await platform.patch(`${STATIC}/events/k1`, { key: FORMS[2] ?? "" })).status).toBe(409);
});

test("[TB684] who may not read a record does not learn by sending it back what has stayed", async () => {
  const [first = "", second = "", third = ""] = FORMS;
  const blind = (id: string, at: string, key: string) => inserted(id, { at, key }).replace("INTO events", "INTO blind");
  asOf02(STATIC, blind("b0", "2024-05-06", first), blind("b1", "2024-05-06", second));
  await platform.restart({});
  const sending = async (changes: JsonObject) => {
    const { status, body } = await platform.patch<{ message: string }>(`${STATIC}/blind/b1`, changes);
    return [status, body.message?.replace(/, got .*/, "")];
  };
  expect(await sending({ at: "2024-05-06" })).toEqual(await sending({ at: "2024-05-07" }));
  expect((await sending({ at: "2024-05-06" }))[0]).toBe(400);
  expect(await sending({ key: second })).toEqual(await sending({ key: third }));
  expect((await sending({ key: second }))[0]).toBe(409);
  const upsert = (at: string) => platform.post(`${STATIC}/blind`, { id: "b1", at }, { query: { upsert: "true" } });
  expect((await upsert("2024-05-06")).status).toBe((await upsert("2024-05-07")).status);
  expect((await platform.service.get(`${STATIC}/blind/b1`)).body).toMatchObject({ at: "2024-05-06", key: second });
});

test("[TB684] references to a datetime follow the value that they refer to", async () => {
  const seat = (id: string, of: string) =>
    `INSERT INTO seats (id, "of", createdAt, updatedAt) VALUES ('${id}', '${of}', '${OLD}', '${OLD}')`;
  const [first = "", second = ""] = FORMS;
  asOf02(
    STATIC,
    inserted("k0", { key: first }),
    inserted("k1", { key: second }),
    seat("s0", first),
    seat("s1", second),
  );
  await platform.restart({});
  const expanded = async (id: string) =>
    (await platform.get(`${STATIC}/seats/${id}`, { query: { expand: "of" } })).body;
  expect(await expanded("s0")).toMatchObject({ of: INSTANT, expand: { of: { id: "k0" } } });
  expect(await expanded("s1")).toMatchObject({ of: second, expand: { of: { id: "k1" } } });
});

test.each([STATIC, INSTANCE])("[TB684] feeds of before are told to load again, in %p", async (path) => {
  asOf02(path, inserted("r", { at: FORMS[0] ?? "" }));
  await platform.restart({});
  const channel = path === STATIC ? "realtime:shared:events" : "realtime:spaces:a:events";
  const user = await signIn(platform);
  const before = await connect(platform, user);
  const { seq } = await subscribe(before, channel);
  await before.close();
  await platform.kill();
  asOf02(path, "UPDATE plain SET createdAt = createdAt");
  await platform.restart({});
  const after = await connect(platform, user);
  expect(await subscribe(after, channel, { since: seq })).toMatchObject({ resync: true });
  await after.close();
});

/** Adds so many records that another process rewrites them. */
const many = (count: number) => `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${count})
  INSERT INTO events (id, at, title, createdAt, updatedAt)
  SELECT 'm' || n, strftime('%Y-%m-%dT%H:%M', 1700000000 + n * 60, 'unixepoch') || '+02:00', 't', '${OLD}', '${OLD}' FROM c`;
const COUNT = 25_000;
const LAST = new Date((1_700_000_000 + COUNT * 60) * 1000 - 7_200_000).toISOString().slice(0, 17);

test.each([STATIC, INSTANCE])(
  "[TB685] requests to a large file wait while another process rewrites it, in %p",
  async (path) => {
    asOf02(path, many(COUNT));
    expect(statSync(fileOf(path)).size).toBeGreaterThan(2 * 1024 * 1024);
    await platform.restart({});
    let answered = 0;
    const note = <T>(answer: T): T => {
      answered += 1;
      return answer;
    };
    const waiting = [
      platform.get<ListAnswer>(`${path}/events`, { query: { sort: "at:desc", limit: "1" } }).then(note),
      platform.get<ListAnswer>(`${path}/events/m${COUNT}`).then(note),
      platform.service.post(`${path}/events`, { id: "new", at: FORMS[0] ?? "" }).then(note),
    ] as const;
    for (let asked = 0; asked < 3; asked++) expect((await platform.get("/api/health")).status).toBe(200);
    expect(answered).toBe(0);
    const [list, one, insert] = await Promise.all(waiting);
    expect(list.body.items?.[0]).toMatchObject({ id: `m${COUNT}`, at: expect.stringContaining(LAST) });
    expect(one.body).toMatchObject({ at: expect.stringContaining(LAST), updatedAt: OLD });
    expect(insert).toMatchObject({ status: 201, body: { at: INSTANT } });
    const before = await platform.get(`${path}/events/count`, { query: { filter: `[["at","<","${INSTANT}"]]` } });
    const expected = (Date.parse(INSTANT) - (1_700_000_000_000 - 7_200_000)) / 60_000;
    expect(before.body).toMatchObject({ total: Math.min(COUNT, Math.ceil(expected) - 1) });
  },
);

test.each([STATIC, INSTANCE])(
  "[TB685] a server that is killed meanwhile finds the file as it was, and begins again, in %p",
  async (path) => {
    const count = 3 * COUNT;
    asOf02(path, many(count));
    await platform.restart({});
    const waiting = platform.get(`${path}/events/m1`).catch(() => null);
    await until(
      "the change begins",
      () => existsSync(`${fileOf(path)}-wal`) && statSync(`${fileOf(path)}-wal`).size > 100_000,
    );
    await platform.kill();
    await waiting;
    // The other process ends by itself, and its transaction with it.
    await platform.restart({});
    expect((await platform.get(`${path}/events/m${COUNT}`)).body).toMatchObject({ at: expect.stringContaining(LAST) });
    const query = { filter: '[["id","!=",""]]' };
    expect((await platform.get(`${path}/events/count`, { query })).body).toMatchObject({ total: count + 1 });
  },
);

/** Returns the processes that this one has started, of which one rewrites. */
function ownProcesses(): number[] {
  const lines = Bun.spawnSync(["ps", "-A", "-o", "pid=,ppid=,comm="]).stdout.toString().split("\n");
  const all = lines.map((line) => line.trim().split(/\s+/));
  return all.flatMap(([pid, parent, name]) => (Number(parent) === process.pid && name !== "ps" ? [Number(pid)] : []));
}

test("[TB685] a request waits for 20 seconds at most, then it is 503; others are answered", async () => {
  const config = {
    databases: {
      shared: {
        tables: { events: { schema: { at: { type: "datetime" }, title: { type: "string" } }, access: { read: true } } },
      },
      other: { tables: { notes: { access: { read: true } } } },
    },
  } as const;
  const dataDirectory = temporaryDirectory();
  await (await timedPlatform(config, { dataDirectory })).stop();
  make02(join(dataDirectory, "databases/shared.db"), [many(COUNT)]);
  const timed = await timedPlatform(config, { dataDirectory });
  try {
    const own = ownProcesses();
    expect(own).not.toEqual([]);
    for (const pid of own) process.kill(pid, "SIGSTOP");
    const waiting = timed.get(`${STATIC}/events/m1`);
    expect((await timed.get("/api/db/other/tables/notes")).status).toBe(200);
    await timed.clock.advanceAsync(20_000);
    const { status, headers } = await waiting;
    expect([status, headers.get("retry-after")]).toEqual([503, "1"]);
    for (const pid of own) process.kill(pid, "SIGCONT");
    expect((await timed.get(`${STATIC}/events/m${COUNT}`)).body).toMatchObject({ at: expect.stringContaining(LAST) });
  } finally {
    await timed.stop();
  }
});
