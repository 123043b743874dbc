import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../support/index.ts";
import { attemptStart } from "../support/start-attempt.ts";

const CONFIG = `{
  databases: {
    shared: { tables: { notes: { schema: { text: { type: "text" } } } } },
    tenants: { instance: true, tables: { lines: {} } },
  },
  auth: { magicLink: true },
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { near: { dimensions: 4 } },
  rooms: { game: {} },
}`;
const PAGE_BYTES = 4096;

let platform: TestPlatform;
/** Directories as a server leaves them that was stopped, and one that was killed. */
let stopped: string;
let killed: string;

const copyOf = (directory: string): string => {
  const copy = join(temporaryDirectory(), "data");
  cpSync(directory, copy, { recursive: true });
  return copy;
};
const line = (tenant: string) =>
  platform.service.post(`/api/db/tenants/${tenant}/tables/lines`, { text: "x".repeat(9_000) });
const text = "y".repeat(300);
const fill = () =>
  platform.service.post("/api/db/shared/tables/notes/batch", {
    inserts: Array.from({ length: 100 }, () => ({ text })),
  });

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  await fill();
  for (const tenant of ["one", "two"]) await line(tenant);
  await platform.service.post("/api/d1/main", { query: "CREATE TABLE t (x)" });
  // A mail is a job.
  await platform.post("/api/auth/signin/magic-link", { email: "ann@example.com" });
  await platform.kill("SIGTERM");
  stopped = copyOf(platform.dataDirectory);
  await platform.restart();
  await fill();
  await platform.service.post("/api/kv/cache", { action: "set", key: "k", value: "v" });
  for (const tenant of ["one", "two"]) await line(tenant);
  await platform.kill("SIGKILL");
  killed = copyOf(platform.dataDirectory);
  await platform.restart();
});
afterAll(() => platform.stop());

interface Damage {
  damage: (path: string) => void;
  reason: string;
  files: readonly string[];
}
const AREAS = ["kv/cache.db", "d1/main.db", "vectorize/near.db", "rooms.db", "jobs.db"];
const FILES = ["system.db", "databases/shared.db", ...AREAS];

const DAMAGES: Record<string, Damage> = {
  "a garbage header": {
    damage(path) {
      const bytes = readFileSync(path);
      writeFileSync(path, bytes.fill("A", 0, 100));
    },
    reason: "it is not an SQLite database",
    files: FILES,
  },
  "half of it missing": {
    damage: (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
    reason: "its content is damaged",
    files: ["system.db", "databases/shared.db"],
  },
  "a directory in its place": {
    damage(path) {
      rmSync(path);
      mkdirSync(path);
    },
    reason: "it cannot be opened or created",
    files: ["databases/shared.db"],
  },
};

test.each(Object.entries(DAMAGES))("[DB22] %s: the server does not start, and names the file", async (_, kind) => {
  for (const file of kind.files) {
    const dataDirectory = copyOf(stopped);
    const path = join(dataDirectory, file);
    kind.damage(path);
    const { hasStarted, exitCode, stderr } = await attemptStart({ configFile: platform.configFile, dataDirectory });
    expect([file, hasStarted, exitCode]).toEqual([file, false, 1]);
    expect(stderr).toContain(`platform: Cannot open the database ${path}: ${kind.reason}`);
  }
});

test("[DB50] after a crash a damaged file is found before it is used", async () => {
  const dataDirectory = copyOf(killed);
  const path = join(dataDirectory, "databases/shared.db");
  const bytes = readFileSync(path);
  // A leaf of the records, which nothing reads at start. Behind them are pages of entries that the audit log has taken.
  const rootEnd = (Math.floor(bytes.indexOf(text) / PAGE_BYTES) + 1) * PAGE_BYTES;
  const leaf = Math.floor(bytes.indexOf(text, rootEnd) / PAGE_BYTES) * PAGE_BYTES;
  writeFileSync(path, bytes.fill("Z", leaf, leaf + PAGE_BYTES));
  const { hasStarted, stderr } = await attemptStart({ configFile: platform.configFile, dataDirectory });
  expect(hasStarted).toBe(false);
  expect(stderr).toContain(`Cannot open the database ${path}: its content is damaged`);
});

test("[DB50] the WAL of another database is refused, and both files stay as they are", async () => {
  for (const [file, other] of [
    ["databases/shared.db", "kv/cache.db"],
    ["databases/shared.db", "databases/tenants/one.db"],
    ["system.db", "databases/shared.db"],
    ["kv/cache.db", "databases/tenants/two.db"],
  ] as const) {
    const dataDirectory = copyOf(stopped);
    const path = join(dataDirectory, file);
    cpSync(join(killed, `${other}-wal`), `${path}-wal`);
    const before = [readFileSync(path), readFileSync(`${path}-wal`)];
    const { hasStarted, stderr } = await attemptStart({ configFile: platform.configFile, dataDirectory });
    expect([file, other, hasStarted]).toEqual([file, other, false]);
    expect(stderr).toContain(`Cannot open the database ${path}: `);
    // A WAL so short that the file is not even readable with it is told as damage.
    expect(stderr).toMatch(/its -wal file belongs to another database|its content is damaged/);
    expect([readFileSync(path), readFileSync(`${path}-wal`)]).toEqual(before);
  }
});

test("[DB50] no new file is made beside the WAL of one that is missing, which stays as it is", async () => {
  for (const file of ["databases/shared.db", "kv/cache.db"]) {
    const dataDirectory = copyOf(killed);
    const path = join(dataDirectory, file);
    rmSync(path);
    const wal = readFileSync(`${path}-wal`);
    const { hasStarted, stderr } = await attemptStart({ configFile: platform.configFile, dataDirectory });
    expect([file, hasStarted]).toEqual([file, false]);
    expect(stderr).toContain(`Cannot open the database ${path}: it is missing, and its -wal file is there`);
    expect([existsSync(path), readFileSync(`${path}-wal`).equals(wal)]).toEqual([false, true]);
  }
});

test("[DB50] a file that is not a WAL is ignored", async () => {
  const dataDirectory = copyOf(stopped);
  writeFileSync(join(dataDirectory, "databases/shared.db-wal"), Buffer.alloc(20_000, 7));
  const { hasStarted } = await attemptStart({ configFile: platform.configFile, dataDirectory });
  expect(hasStarted).toBe(true);
});

test("[DB51] a damaged instance is 500, others are not affected, and the log names the file", async () => {
  const lines = (tenant: string) => platform.service.get(`/api/db/tenants/${tenant}/tables/lines`);
  // Opened and closed: nothing of it is left in the WAL of the killed server.
  expect((await lines("one")).body["total"]).toBe(2);
  await platform.kill("SIGTERM");
  const path = join(platform.dataDirectory, "databases/tenants/one.db");
  const whole = readFileSync(path);
  writeFileSync(path, Buffer.from(whole).fill("A", 0, 100));
  await platform.restart();
  expect(await lines("one")).toMatchObject({ status: 500, body: { code: 500, message: "Internal error" } });
  expect((await line("one")).status).toBe(500);
  expect((await lines("two")).body["total"]).toBe(2);
  expect(platform.stderr()).toContain(`Cannot open the database ${path}: it is not an SQLite database (file is not`);
  expect(platform.stderr()).toContain("restore a backup");
  // Put right while the server runs: the next request finds it.
  for (const suffix of ["-wal", "-shm"]) if (existsSync(path + suffix)) rmSync(path + suffix);
  writeFileSync(path, whole);
  expect((await lines("one")).body["total"]).toBe(2);
});
