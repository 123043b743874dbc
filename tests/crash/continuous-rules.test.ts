import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { numbersIn, restored, untilPassed, untilWhole } from "../http/backup/continuous-support.ts";
import { changedSource, type SourceChange } from "../support/changed-source.ts";
import { requireEqualRestore } from "../support/continuous.ts";
import { platformCommand, type TestPlatform, temporaryDirectory, testPlatform } from "../support/index.ts";
import { cutsUnderLoad } from "./power/continuous-judge.ts";
import { hasTracer } from "./power/load.ts";

// Each rule of docs/decisions/016 is taken out of a copy of the sources once: a server that runs from them has a restore that is wrong.

const CONTINUOUS = "src/server/areas/backup/continuous";
const TIMEOUT_MS = 180_000;
const CUTS = 24;

const config = (folder: string) => `{
  databases: {
    shared: { tables: { notes: { schema: { n: { type: "integer" } } } } },
    clubs: { instance: true, tables: { members: { schema: { n: { type: "integer" } } } } },
  },
  d1: { ledger: {} },
  triggers: { noted: { on: { table: "shared.notes" }, run() {} } },
  backups: { continuous: { to: { folder: ${JSON.stringify(folder)} }, everyMs: 250, verify: false } },
}`;

/** Changes every kind of file. */
async function work(platform: TestPlatform, store: string): Promise<void> {
  const { service } = platform;
  const query = (text: string) => service.post("/api/d1/ledger", { query: text });
  await query("CREATE TABLE l (n INTEGER, text TEXT)");
  for (const club of ["a", "b"]) await service.post(`/api/db/clubs/${club}/tables/members`, { n: 1 });
  await query("INSERT INTO l VALUES (1, 'one')");
  await untilWhole(store);
  await untilPassed(platform);
  for (let n = 0; n < 10; n++) {
    await service.post("/api/db/shared/tables/notes", { n });
  }
  const many = "WITH RECURSIVE c(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM c WHERE n < 3000)";
  await query(`INSERT INTO l ${many} SELECT n, hex(randomblob(300)) FROM c`);
  await query("DELETE FROM l WHERE n % 10 = 0");
  await untilPassed(platform);
  expect((await query("VACUUM")).status).toBe(200);
  // The file is compared, and what was found is stored by the next pass.
  await untilPassed(platform);
  await untilPassed(platform);
  await query("UPDATE l SET text = 'two' WHERE n = 1");
  await untilPassed(platform);
  expect((await service.delete("/api/admin/instances/clubs/a")).status).toBe(200);
  await untilPassed(platform);
}

/** Runs a server from these sources, and compares it with its restore. Errors: they differ. */
async function drill(changes: readonly SourceChange[] | null): Promise<void> {
  const store = join(temporaryDirectory(), "continuous-store");
  const program = changes === null ? platformCommand() : changedSource(changes);
  const platform = await testPlatform({ config: config(store), program });
  await work(platform, store);
  await platform.kill("SIGTERM");
  const { dataDirectory } = platform;
  const compare = () => requireEqualRestore(platformCommand(), { directory: join(store, ".."), dataDirectory });
  await compare();
  // A change that no commit has.
  using sqlite = new Database(join(platform.dataDirectory, "databases", "shared.db"));
  sqlite.run("DELETE FROM notes WHERE n = 5");
  sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
  sqlite.close();
  await platform.restart();
  await untilPassed(platform);
  await platform.kill("SIGTERM");
  await compare();
  await platform.stop();
}

const capture = `${CONTINUOUS}/capture/capture.ts`;
const OFF: readonly { rule: string; changes: readonly SourceChange[] }[] = [
  {
    rule: "the comparison of a difference's base",
    changes: [{ file: `${CONTINUOUS}/ship/bases.ts`, from: "known?.hash === hash ?", to: "known !== undefined ?" }],
  },
  {
    rule: "the comparison of a file that was changed outside of its WAL",
    changes: [
      {
        file: `${CONTINUOUS}/ship/tracked-file.ts`,
        from: "one.mtimeMs === other.mtimeMs && one.bytes === other.bytes",
        to: "one.bytes === other.bytes",
      },
      { file: capture, from: "const isUnchanged = !hadWal && ", to: "const isUnchanged = !hadWal || " },
    ],
  },
  {
    rule: "the entry of a deletion",
    changes: [
      { file: capture, from: 'this.#spool.add({ type: "removed",', to: 'void ({ type: "removed",' },
      { file: `${CONTINUOUS}/ship/shipper.ts`, from: "!present.has(path) && !disk.exists(path)", to: "false" },
    ],
  },
  {
    rule: "the open mark of VACUUM",
    changes: [
      {
        file: "src/server/areas/d1/process/execute.ts",
        from: "...(await nextMark()), nonce: OPEN_MARK",
        to: "...(await nextMark())",
      },
    ],
  },
  {
    rule: "the frames of d1",
    changes: [
      {
        file: capture,
        from: "frames: ({ pageBytes, first, salts, content }) =>",
        to: 'frames: ({ pageBytes, first, salts, content }) => path !== "d1/ledger" &&',
      },
    ],
  },
  {
    rule: "the frames of jobs.db",
    changes: [
      {
        file: capture,
        from: "frames: ({ pageBytes, first, salts, content }) =>",
        to: 'frames: ({ pageBytes, first, salts, content }) => path !== "jobs" &&',
      },
    ],
  },
];

test(
  "[BK366] with every rule the restore is what the server has, also after a change that no commit has",
  async () => {
    await drill(null);
  },
  TIMEOUT_MS,
);

for (const { rule, changes } of OFF) {
  test(
    `[BK366] without this rule the restore of a server is wrong: ${rule}`,
    async () => {
      await expect(drill(changes)).rejects.toThrow(/differs from the server|could not be restored/);
    },
    TIMEOUT_MS,
  );
}

test(
  "[BK366] without this rule a moment of a server is wrong: one order over all files",
  async () => {
    const store = join(temporaryDirectory(), "store");
    const program = changedSource([
      {
        file: "src/server/db/writer/commit-gate.ts",
        from: "this.#last = Math.max(this.#last + 1, this.#clock.now() * MICROSECONDS_PER_MS) + count - 1;",
        to: "this.#last = this.#clock.now() * MICROSECONDS_PER_MS + Math.floor((Math.random() - 0.5) * 400_000) + count;",
      },
    ]);
    const platform = await testPlatform({ config: config(store), program });
    await untilWhole(store);
    const moments: string[] = [];
    for (let n = 0; n < 10; n++) {
      await platform.service.post("/api/db/shared/tables/notes", { n });
      await platform.service.post("/api/db/clubs/a/tables/members", { n });
      await Bun.sleep(10);
      moments.push(new Date().toISOString());
      await Bun.sleep(10);
    }
    await platform.kill("SIGTERM");
    const wrong: number[] = [];
    for (const [n, at] of moments.entries()) {
      const expected = JSON.stringify(Array.from({ length: n + 1 }, (_, index) => index));
      const found = await restored(store, "--at", at)
        .then((copy) => [numbersIn(copy, "databases/shared", "notes"), numbersIn(copy, "databases/clubs/a", "members")])
        .catch(() => []);
      if (found.length === 0 || found.some((numbers) => JSON.stringify(numbers) !== expected)) wrong.push(n);
    }
    expect(wrong).not.toEqual([]);
    await platform.stop();
  },
  TIMEOUT_MS,
);

describe.if(hasTracer)("a power cut", () => {
  test(
    "[BK366] without this rule the store has what a power cut takes: the sync before an upload",
    async () => {
      const program = changedSource([
        {
          file: "src/server/db/engine.ts",
          from: "const files = [...this.#files.values()].filter((file) => file.hasUnsyncedCommits);",
          to: "const files: OpenFile[] = [];",
        },
        // So slow that there always is something that is not on the disk.
        {
          file: "src/server/db/writer/wal-sync.ts",
          from: "syncFile = fs.fdatasync }",
          to: "syncFile = (file, done) => void setTimeout(() => fs.fdatasync(file, done), 500) }",
        },
      ]);
      const cuts = await cutsUnderLoad(CUTS, program);
      expect(cuts.filter(({ ahead }) => ahead.length > 0)).not.toEqual([]);
    },
    TIMEOUT_MS,
  );
});
