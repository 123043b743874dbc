import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { differences, restored, untilStored, untilWhole } from "../http/backup/continuous-support.ts";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../support/index.ts";
import { random as randomOf, testSeed } from "../support/random.ts";

// A server that is killed under load while it is backed up continuously. PLATFORM_CRASH_ROUNDS kills; 4 by default.

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 4);
/** A file that nobody writes to during the load, so that the store has its last commit at each kill. */
const STILL = "databases/clubs/still";
const FILES = ["system", "jobs", "audit", "analytics", STILL];
/** An interval, with room for a machine that does much else. */
const BEHIND_MAX_MS = 2_500;

const config = (folder: string) => `{
  databases: {
    shared: { tables: { notes: { schema: { w: { type: "integer" }, n: { type: "integer" }, text: { type: "text" } }, fts: ["text"] } } },
    clubs: { instance: true, tables: { notes: { schema: { w: { type: "integer" }, n: { type: "integer" }, text: { type: "text" } } } } },
  },
  d1: { ledger: {} },
  backups: { continuous: { to: { folder: ${JSON.stringify(folder)} }, everyMs: 250 } },
}`;

/** One sequence of writes to one file. */
interface Writer {
  path: string;
  table: string;
  w: number;
  /** Numbers that were sent, and the times at which each was acknowledged. */
  sent: number;
  acknowledged: number[];
}

const writers = (): Writer[] =>
  [
    ...Array.from({ length: 4 }, () => ({ path: "databases/shared", table: "notes" })),
    ...Array.from({ length: 3 }, (_, n) => ({ path: `databases/clubs/club${n}`, table: "notes" })),
    { path: "d1/ledger", table: "l" },
  ].map((place, w) => ({ ...place, w, sent: 0, acknowledged: [] }));

const LONG = "text ".repeat(1200);

async function write(platform: TestPlatform, writer: Writer, isLong: boolean): Promise<boolean> {
  const n = writer.sent++;
  const { w, path } = writer;
  const [, namespace, instance] = path.split("/");
  const answer =
    path === "d1/ledger"
      ? await platform.service.post("/api/d1/ledger", { query: "INSERT INTO l (w, n) VALUES (?, ?)", params: [w, n] })
      : await platform.service.post(
          instance === undefined
            ? `/api/db/${namespace}/tables/notes`
            : `/api/db/${namespace}/${instance}/tables/notes`,
          { w, n, text: isLong ? LONG : `note ${n}` },
        );
  if (answer.status >= 300) return false;
  writer.acknowledged.push(Date.now());
  return true;
}

/** Writes until the server is killed. */
async function load(platform: TestPlatform, all: readonly Writer[], random: () => number): Promise<void> {
  await Promise.all(
    all.map(async (writer) => {
      try {
        while (await write(platform, writer, random() < 0.7));
      } catch {
        // Killed.
      }
    }),
  );
}

/** Numbers of a writer that a restored file has. */
function numbersOf(copy: string, { path, table, w }: Writer): number[] {
  const file = join(copy, `${path}.db`);
  if (!existsSync(file)) return [];
  using sqlite = new Database(file, { readonly: true });
  // A server that has just been restarted may be moving what its predecessor has left in the WAL.
  sqlite.run("PRAGMA busy_timeout = 5000");
  return sqlite
    .query<{ n: number }, [number]>(`SELECT n FROM "${table}" WHERE w = ? ORDER BY n`)
    .all(w)
    .map(({ n }) => n);
}

/** Returns the number of the last commit; null: the file is not there, or has none. */
function commitOf(file: string): number | null {
  if (!existsSync(file)) return null;
  using sqlite = new Database(file, { readwrite: true, create: false });
  return sqlite.query<{ number: number }, []>(`SELECT number FROM "_platform_commit"`).get()?.number ?? null;
}

/** Names the pages in which a restored file differs from the one that was killed, if both hold the same commit. null: they do not. */
function differencesAtSameCommit(killed: string, restored: string): number[] | null {
  const live = join(temporaryDirectory(), "live.db");
  for (const ending of ["", "-wal"]) {
    if (existsSync(`${killed}${ending}`)) copyFileSync(`${killed}${ending}`, `${live}${ending}`);
  }
  const number = commitOf(live);
  return number !== null && number === commitOf(restored) ? differences(live, restored) : null;
}

const seed = testSeed(1);

test(`[BK332] [BK338] after each of ${ROUNDS} kills the store has a prefix of each file's writes, an interval old at most (seed ${seed})`, async () => {
  const random = randomOf(seed).next;
  const place = join(temporaryDirectory(), "store");
  const platform = await testPlatform({ config: config(place) });
  await platform.service.post("/api/d1/ledger", { query: "CREATE TABLE l (w INTEGER, n INTEGER)" });
  await platform.service.post("/api/db/clubs/still/tables/notes", { w: 0, n: 0, text: "still" });
  await untilWhole(place);
  await untilStored(platform);
  const all = writers();
  let sameCount = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const running = load(platform, all, random);
    await Bun.sleep(1_500 + random() * 2_500);
    const killedAt = Date.now();
    await platform.kill("SIGKILL");
    await running;
    const copy = await restored(place);
    for (const path of [...FILES, ...new Set(all.map((writer) => writer.path))]) {
      const pages = differencesAtSameCommit(join(platform.dataDirectory, `${path}.db`), join(copy, `${path}.db`));
      expect([round, path, pages ?? []]).toEqual([round, path, []]);
      if (pages !== null && path === STILL) sameCount++;
    }
    for (const writer of all) {
      const numbers = numbersOf(copy, writer);
      const due = writer.acknowledged.filter((at) => at < killedAt - BEHIND_MAX_MS).length;
      expect([round, writer.path, writer.w, numbers]).toEqual([round, writer.path, writer.w, numbers.map((_, n) => n)]);
      expect([round, writer.path, writer.w, numbers.length >= due]).toEqual([round, writer.path, writer.w, true]);
    }
    await platform.restart();
    // Files that a kill has left open are compared with the store first.
    if (round < ROUNDS - 1) await untilStored(platform);
    // A write without an answer may be there or not: the next numbers follow what is there.
    for (const writer of all) {
      const numbers = numbersOf(platform.dataDirectory, writer);
      writer.sent = numbers.length;
      writer.acknowledged = numbers.map((_, n) => writer.acknowledged[n] ?? killedAt);
    }
  }
  expect(sameCount).toBe(ROUNDS);
  await platform.kill("SIGTERM");
  const copy = await restored(place);
  const paths = [...FILES, ...new Set(all.map(({ path }) => path))];
  const present = paths.filter((path) => existsSync(join(platform.dataDirectory, `${path}.db`)));
  const found = present.map((path) => [
    path,
    differences(join(platform.dataDirectory, `${path}.db`), join(copy, `${path}.db`)),
  ]);
  expect(found.filter(([, pages]) => pages?.length !== 0)).toEqual([]);
  await platform.stop();
}, 600_000);
