/** Tests of a follower whose process ends in the middle of any of its writes. */
import { Database } from "bun:sqlite";
import { beforeAll, expect, test } from "bun:test";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { FileLog } from "../support/cluster/file-log.ts";
import { soakFollower } from "../support/cluster/follow-soak.ts";
import { openOwnerFiles } from "../support/cluster/owner-files.ts";
import { temporaryDirectory } from "../support/index.ts";
import { random, testSeed } from "../support/random.ts";

const PROGRAM = join(import.meta.dir, "../support/cluster/follower-process.ts");
const PATHS = ["system.db", "databases/notes.db"];
const INSERT = `INSERT INTO "notes" ("text", "copies") VALUES (?, ?)`;
/** Writes of which one ends the process; PLATFORM_TEST_CRASHES=all: each. */
const CRASHES = process.env["PLATFORM_TEST_CRASHES"] ?? "12";

const owned = temporaryDirectory();
const log = join(temporaryDirectory(), "log");
/** A follower that has applied the first half of the log. */
const half = temporaryDirectory();
const halfLog = join(temporaryDirectory(), "log");

interface Outcome {
  exitCode: number | null;
  signal: string | number | null;
  text: string;
}

async function follow(directory: string, from: string, endAt = 0): Promise<Outcome> {
  const child = Bun.spawn([process.execPath, PROGRAM, directory, from], {
    env: { ...process.env, END_AT_WRITE: String(endAt) },
    stdout: "pipe",
    stderr: "inherit",
  });
  const text = await new Response(child.stdout).text();
  await child.exited;
  return { exitCode: child.exitCode, signal: child.signalCode, text };
}

let writesMax = 0;
let lastPosition = 0;

beforeAll(async () => {
  const chance = random(testSeed(65));
  const whole = new FileLog(log);
  const first = new FileLog(halfLog);
  let waiting: Parameters<FileLog["append"]>[0][number][] = [];
  const owner = openOwnerFiles(owned, (row) => void waiting.push(row));
  const files = PATHS.map((path) => owner.open(path));
  for (let round = 0; round < 40; round++) {
    for (const file of files) {
      const rows = round === 32 ? 3_000 : 1 + chance.below(5);
      await file.write((tx) => {
        for (let row = 0; row < rows; row++) tx.query(INSERT).run(String(chance.next()).repeat(20), row);
      });
    }
    if (chance.chance(0.3)) continue;
    whole.append(waiting);
    if (round < 20) first.append(waiting);
    waiting = [];
  }
  if (waiting.length > 0) whole.append(waiting);
  lastPosition = whole.position;
  await owner.stop();
  expect((await follow(half, halfLog)).exitCode).toBe(0);
  const copy = temporaryDirectory();
  cpSync(half, copy, { recursive: true });
  const { writes } = JSON.parse((await follow(copy, log)).text) as { writes: number };
  writesMax = writes;
});

/** Content of a file with its WAL, as a database that was closed has it. */
function contentOf(path: string): Buffer {
  const sqlite = new Database(path, { readwrite: true });
  expect(sqlite.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
  sqlite.close();
  return readFileSync(path);
}

for (const isRead of [false, true])
  test(`[CLU65] a follower that ends in the middle of a write goes on, ${isRead ? "while others read its files" : "and nobody has kept the index"}`, async () => {
    expect(writesMax).toBeGreaterThan(100);
    const chance = random(testSeed(isRead ? 66 : 65));
    const all = Array.from({ length: writesMax }, (_, index) => index + 1);
    // The first writes and the last ones are of every kind.
    const some = [
      1,
      2,
      3,
      writesMax - 1,
      writesMax,
      ...Array.from({ length: Number(CRASHES) || 0 }, () => chance.pick(all)),
    ];
    let ended = 0;
    for (const endAt of CRASHES === "all" ? all : some) {
      const directory = temporaryDirectory();
      cpSync(half, directory, { recursive: true });
      const readers = isRead ? PATHS.map((path) => new Database(join(directory, path), { readonly: true })) : [];
      for (const reader of readers) reader.query(`SELECT count(*) FROM "notes"`).get();
      const crash = await follow(directory, log, endAt);
      if (crash.signal === "SIGKILL") ended += 1;
      for (const reader of readers)
        expect(reader.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
      const again = await follow(directory, log);
      expect(again).toMatchObject({ exitCode: 0, signal: null });
      expect(again.text).not.toContain("failed");
      expect(JSON.parse(again.text)).toMatchObject({ position: lastPosition });
      for (const reader of readers) {
        expect(reader.query(`SELECT count(*) AS "count" FROM "notes"`).get()).toEqual(
          reader.query(`SELECT count(*) AS "count" FROM "notes" INDEXED BY "notes_text" WHERE "text" >= ''`).get(),
        );
        reader.close();
      }
      for (const path of PATHS)
        expect(contentOf(join(directory, path)).equals(readFileSync(join(owned, path)))).toBe(true);
      rmSync(directory, { recursive: true, force: true });
    }
    expect(ended).toBeGreaterThan(5);
  }, 3_600_000);

test("[CLU66] every snapshot of a follower's file is one of the owner's states, while it is killed again and again", async () => {
  const { kills, snapshots, ...outcome } = await soakFollower({ rounds: 150, pauseMs: 0, seed: testSeed(67) });
  expect(outcome).toEqual({ wrong: [], isEqual: true, integrity: "ok" });
  expect(kills).toBeGreaterThan(0);
  expect(snapshots).toBeGreaterThan(20);
}, 600_000);
