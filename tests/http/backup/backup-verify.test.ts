import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import type { Logger } from "../../../src/kernel/logger.ts";
import { type TestClock, type TestPlatform, temporaryDirectory, testClock, testPlatform } from "../../support/index.ts";
import { SERVICE_KEY } from "../../support/platform.ts";
import { type TimedPlatform, timedPlatform } from "../../support/timed-platform.ts";
import { until } from "../../support/until.ts";
import { upload } from "../storage/storage-support.ts";
import { runCommand, startCommand } from "./backup-support.ts";

const CONFIG = {
  kv: { cache: {} },
  d1: { main: {} },
  storage: { buckets: { files: {} } },
  vectorize: { near: { dimensions: 4 } },
  databases: {
    shared: { tables: { notes: { schema: { text: { type: "text" } } } } },
    clubs: { instance: true, tables: { films: {} } },
  },
} as const;
const PAGE_BYTES = 4096;
const DAY_MS = 24 * 60 * 60 * 1_000;

let platform: TestPlatform;
/** A good backup, and the stopped data directory of which it was made. */
let good: string;
let directory: string;

const backUp = async (data: string): Promise<string> => {
  const file = join(temporaryDirectory(), "b.tar.zst");
  expect(await runCommand(["backup", file, "--data", data])).toMatchObject({ code: 0 });
  return file;
};
const verify = (file: string, ...options: string[]) => runCommand(["verify-backup", file, ...options]);
const folderOf = (file: string): string => join(file, "..");

/** A copy of the data directory after `change`. */
function changed(change: (copy: string) => void): string {
  const copy = join(temporaryDirectory(), "data");
  cpSync(directory, copy, { recursive: true });
  change(copy);
  return copy;
}

/** Overwrites what the pages after the first contain. */
function damage(path: string): void {
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0x7f, PAGE_BYTES));
}

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const { service } = platform;
  await service.post("/api/kv/cache", { action: "set", key: "a", value: "x".repeat(20_000) });
  await service.post("/api/d1/main", { query: "CREATE TABLE t (x)" });
  await service.post("/api/db/shared/tables/notes", { text: "kept" });
  await service.post("/api/db/clubs/noir/tables/films", { title: "Kept" });
  const vectors = [{ id: "v1", values: [1, 0, 0, 0] }];
  await service.post("/api/vectorize/near", { action: "upsert", vectors });
  await upload(service, "files", "one", "content".repeat(1_000));
  await platform.kill("SIGTERM");
  directory = platform.dataDirectory;
  good = await backUp(directory);
}, 60_000);
afterAll(() => platform.stop());

test("[BK300] a backup that holds: exit code 0, what is in it, and nothing is left", async () => {
  const { code, stdout, stderr } = await verify(good);
  expect([code, stdout, stderr]).toEqual([
    0,
    "",
    expect.stringMatching(/b\.tar\.zst holds: \d+ files, .*, \d+ databases, as of 2/),
  ]);
  expect(readdirSync(folderOf(good))).toEqual(["b.tar.zst"]);
});

test("[BK301] what follows the end of the archive is named: bytes, and another compressed text", async () => {
  const tails: [tail: Uint8Array, found: string][] = [
    [Buffer.from("not of the backup"), "it has 17 bytes after its end"],
    [new Uint8Array(100), "it has 100 bytes after its end"],
    [zstdCompressSync(Buffer.from("of nobody")), "is damaged"],
    [zstdCompressSync(Buffer.alloc(2_048, "x")), "is damaged"],
  ];
  for (const [tail, found] of tails) {
    const file = join(temporaryDirectory(), "b.tar.zst");
    writeFileSync(file, Buffer.concat([readFileSync(good), tail]));
    const { code, stderr } = await verify(file);
    expect([code, stderr]).toEqual([1, expect.stringContaining(found)]);
    const data = join(temporaryDirectory(), "data");
    expect(await runCommand(["restore", file, "--data", data])).toMatchObject({ code: 1 });
    expect(existsSync(data)).toBe(false);
  }
});

test("[BK302] --scratch names another place, and the backup may be in a folder that nobody may write to", async () => {
  const scratch = temporaryDirectory();
  const before = statSync(good).mtimeMs;
  expect(await verify(good, "--scratch", scratch)).toMatchObject({ code: 0 });
  expect([readdirSync(scratch), statSync(good).mtimeMs]).toEqual([[], before]);
  const missing = await verify(good, "--scratch", join(scratch, "missing"));
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining("There is no folder")]);
});

test("[BK301] [BK302] a changed or truncated archive: exit code 1, and nothing is left", async () => {
  const bytes = readFileSync(good);
  const flipped = Buffer.from(bytes);
  flipped[bytes.length >> 1] = (flipped[bytes.length >> 1] ?? 0) ^ 0xff;
  for (const wrong of [flipped, bytes.subarray(0, bytes.length - 100), Buffer.from("nothing")]) {
    const file = join(temporaryDirectory(), "wrong.tar.zst");
    writeFileSync(file, wrong);
    const { code, stderr } = await verify(file);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/damaged|not a backup|does not match/)]);
    expect(readdirSync(folderOf(file))).toEqual(["wrong.tar.zst"]);
  }
  expect(await verify(join(temporaryDirectory(), "none"))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is no file"),
  });
});

test("[BK301] databases that were damaged before the backup are all named, though their hashes are right", async () => {
  const data = changed((copy) => {
    damage(join(copy, "kv/cache.db"));
    damage(join(copy, "databases/clubs/noir.db"));
  });
  const file = await backUp(data);
  const { code, stderr } = await verify(file);
  expect(code).toBe(1);
  expect(stderr).toContain("does not hold");
  expect(stderr).toContain("kv/cache.db: ");
  expect(stderr).toContain("databases/clubs/noir.db: ");
  expect(stderr).not.toContain("shared.db");
  expect(readdirSync(folderOf(file))).toEqual(["b.tar.zst"]);
});

test("[BK7] [BK301] a database that had lost every byte before the backup is named", async () => {
  for (const path of ["system.db", "jobs.db", "databases/shared.db"]) {
    const data = changed((copy) => writeFileSync(join(copy, path), ""));
    const { code, stderr } = await verify(await backUp(data));
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${path}: it is empty (0 bytes)`)]);
  }
  // A power cut can leave these empty as they are made: they would keep every later backup from counting.
  const data = changed((copy) => {
    for (const path of ["databases/clubs/noir.db", "d1/main.db"]) writeFileSync(join(copy, path), "");
  });
  expect((await verify(await backUp(data))).code).toBe(0);
});

test("[BK301] a file of a later executable is named with its version", async () => {
  for (const path of ["databases/shared.db", "vectorize/near.db", "system.db"]) {
    const data = changed((copy) => {
      using sqlite = new Database(join(copy, path));
      sqlite.run("PRAGMA user_version = 999");
    });
    const { code, stderr } = await verify(await backUp(data));
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${path}: `)]);
    expect(stderr).toContain("has version 999");
  }
});

test("[BK301] a directory that the program cannot open", async () => {
  const data = changed((copy) => writeFileSync(join(copy, "secrets.json"), "not JSON"));
  const { code, stderr } = await verify(await backUp(data));
  expect([code, stderr]).toEqual([1, expect.stringContaining("the program cannot open it")]);
});

test("[BK302] SIGTERM and SIGINT leave nothing; what SIGKILL leaves is removed by the next verification", async () => {
  for (const signal of ["SIGTERM", "SIGINT", "SIGKILL"] as const) {
    const child = startCommand(["verify-backup", good]);
    await until("it has begun", () => existsSync(`${good}.verify`));
    child.kill(signal);
    const code = await child.exited;
    if (signal !== "SIGKILL") {
      expect([code, await child.stderr.text()]).toEqual([1, expect.stringContaining("was stopped")]);
      expect(readdirSync(folderOf(good))).toEqual(["b.tar.zst"]);
    }
  }
  expect(readdirSync(folderOf(good))).toContain("b.tar.zst.verify");
  expect(await verify(good)).toMatchObject({ code: 0 });
  expect(readdirSync(folderOf(good))).toEqual(["b.tar.zst"]);
});

async function ask<Answer>(timed: TimedPlatform, path: string): Promise<Answer> {
  const answer = await timed.fetch(path, { headers: { "x-platform-service-key": SERVICE_KEY } });
  // The documented form of the answer.
  return (await answer.json()) as Answer;
}

/** A server with verified backups every day, and what it logs. */
async function scheduled(dataDirectory: string, place: string, clock: TestClock) {
  const logged: string[] = [];
  const note = (message: string, facts?: unknown): void => void logged.push(`${message} ${JSON.stringify(facts)}`);
  const logger: Logger = { info: note, warn: note, error: note };
  const backups = { schedule: "0 3 * * *", keep: 2, verify: true, to: { folder: place } };
  const timed = await timedPlatform({ backups }, { dataDirectory, logger, clock });
  const make = async (): Promise<string> => {
    const before = logged.length;
    const ends = () => logged.slice(before).find((line) => /a backup (was made|failed)/.test(line));
    const jobCount = async () => (await ask<{ jobs: unknown[] }>(timed, "/api/admin/jobs")).jobs.length;
    const jobsBefore = await jobCount();
    await until("a backup has ended", async () => {
      // The schedule begins shortly after the start.
      if ((await jobCount()) === jobsBefore) timed.clock.advance(DAY_MS);
      return ends() !== undefined;
    });
    return ends() ?? "";
  };
  return { timed, make };
}

const backupHealth = async (timed: TimedPlatform) => {
  // A report is kept for a moment.
  timed.clock.advance(60_000);
  type Health = { checks: { backup: { ok: boolean; verifiedAt: string | null } } };
  return (await ask<Health>(timed, "/api/health?full")).checks.backup;
};

test("[BK303] [BK304] scheduled backups are verified; one that does not hold is set aside and reported", async () => {
  const place = join(temporaryDirectory(), "backups");
  const names = (end: string) => (existsSync(place) ? readdirSync(place).filter((name) => name.endsWith(end)) : []);
  const data = changed(() => {});
  const clock = testClock();
  let { timed, make } = await scheduled(data, place, clock);
  expect((await backupHealth(timed)).verifiedAt).toBeNull();
  expect(await make()).toContain("was made");
  const held = await backupHealth(timed);
  expect([held.ok, typeof held.verifiedAt]).toEqual([true, "string"]);
  expect([names(".zst").length, names(".failed"), names(".verify")]).toEqual([1, [], []]);
  await timed.stop();

  mkdirSync(join(data, "kv"), { recursive: true });
  damage(join(data, "kv/cache.db"));
  ({ timed, make } = await scheduled(data, place, clock));
  await until("the destination was read", async () => (await backupHealth(timed)).verifiedAt === held.verifiedAt);
  for (let day = 0; day < 2; day++) expect(await make()).toContain("kv/cache.db");
  expect(await backupHealth(timed)).toMatchObject({ ok: false, verifiedAt: held.verifiedAt });
  expect([names(".zst").length, names(".failed").length, names(".verify")]).toEqual([1, 1, []]);
  await timed.stop();

  ({ timed } = await scheduled(data, place, clock));
  await until("the failure is known", async () => !(await backupHealth(timed)).ok);
  const metrics = await timed.fetch("/metrics", { headers: { "x-platform-service-key": SERVICE_KEY } });
  expect(await metrics.text()).toMatch(/^platform_backup_verified_timestamp_seconds [1-9]/m);
  await timed.stop();
}, 60_000);
