/**
 * A soak of the files of a follower: an owner commits, a follower in another process applies and is killed at random moments, and
 * others read all the time. `bun tests/support/cluster/follow-soak.ts ROUNDS PAUSE_MS` runs it alone.
 */
import { Database } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../platform.ts";
import { type Random, random } from "../random.ts";
import { until } from "../until.ts";
import { FileLog } from "./file-log.ts";
import { openOwnerFiles } from "./owner-files.ts";

const PATH = "databases/notes.db";
const READERS = 2;
const ROWS_MAX = 20_000;

/** Outcome of a soak. `wrong`: snapshots that were no state of the owner. */
export interface SoakOutcome {
  kills: number;
  snapshots: number;
  wrong: unknown[];
  isEqual: boolean;
  integrity: string | undefined;
}

/** Runs so many rounds, each with a commit or some. */
export async function soakFollower({
  rounds,
  pauseMs,
  seed,
}: {
  rounds: number;
  pauseMs: number;
  seed: number;
}): Promise<SoakOutcome> {
  const chance = random(seed);
  const [owned, followed] = [temporaryDirectory(), temporaryDirectory()];
  const path = join(temporaryDirectory(), "log");
  const log = new FileLog(path);
  let waiting: Parameters<FileLog["append"]>[0][number][] = [];
  const owner = openOwnerFiles(owned, (row) => void waiting.push(row));
  const file = owner.open(PATH);
  const append = (): void => {
    if (waiting.length > 0) log.append(waiting);
    waiting = [];
  };
  append();
  let follower = startFollower(followed, path);
  await until("the follower has the file", () => existsSync(join(followed, PATH)));
  const readers = Array.from({ length: READERS }, () =>
    Bun.spawn([process.execPath, join(import.meta.dir, "reader-process.ts"), join(followed, PATH)], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    }),
  );
  let kills = 0;
  for (let round = 0; round < rounds; round++) {
    for (let commit = chance.below(4); commit >= 0; commit--) await file.write((tx) => change(tx, chance));
    append();
    if (pauseMs > 0) await Bun.sleep(chance.below(2 * pauseMs));
    if (!chance.chance(0.02)) continue;
    follower.kill("SIGKILL");
    await follower.exited;
    kills += 1;
    follower = startFollower(followed, path);
  }
  await owner.stop();
  append();
  const number = numberOf(join(owned, PATH));
  await until("the follower has everything", () => numberOf(join(followed, PATH)) === number);
  const outcomes = await Promise.all(
    readers.map(async (reader) => {
      reader.stdin.end();
      return JSON.parse(await new Response(reader.stdout).text()) as { snapshots: number; wrong: unknown[] };
    }),
  );
  follower.kill("SIGKILL");
  await follower.exited;
  const sqlite = new Database(join(followed, PATH), { readwrite: true });
  const integrity = sqlite.query<{ integrity_check: string }, []>("PRAGMA integrity_check").get()?.integrity_check;
  sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
  sqlite.close();
  return {
    kills,
    snapshots: outcomes.reduce((sum, { snapshots }) => sum + snapshots, 0),
    wrong: outcomes.flatMap(({ wrong }) => wrong),
    isEqual: readFileSync(join(followed, PATH)).equals(readFileSync(join(owned, PATH))),
    integrity,
  };
}

const startFollower = (directory: string, log: string) =>
  Bun.spawn([process.execPath, join(import.meta.dir, "follower-process.ts"), directory, log, "live"], {
    stdout: "inherit",
    stderr: "inherit",
  });

/** Changes records so that the sum of their copies stays 0. */
function change(
  tx: Parameters<Parameters<ReturnType<ReturnType<typeof openOwnerFiles>["open"]>["write"]>[0]>[0],
  chance: Random,
): void {
  const rows = tx.query<{ rows: number }>(`SELECT count(*) AS "rows" FROM "notes"`).get()?.rows ?? 0;
  if (rows > ROWS_MAX || chance.chance(0.02)) {
    // Records lie in pairs.
    tx.query(`DELETE FROM "notes" WHERE ("id" + 1) / 2 % 3 = ?`).run(chance.below(3));
    return;
  }
  const pairs = chance.chance(0.003) ? 1_500 : 1 + chance.below(8);
  const next =
    tx.query<{ id: number }>(`SELECT coalesce(max("id"), 0) / 2 * 2 + 1 AS "id" FROM "notes"`).get()?.id ?? 1;
  for (let pair = 0; pair < pairs; pair++)
    for (const [offset, copies] of [
      [0, pair],
      [1, -pair],
    ] as const)
      tx.query(`INSERT INTO "notes" ("id", "text", "copies") VALUES (?, ?, ?)`).run(
        next + 2 * pair + offset,
        String(chance.next()).repeat(1 + chance.below(40)),
        copies,
      );
}

function numberOf(path: string): number {
  const sqlite = new Database(path, { readonly: true });
  try {
    sqlite.run("PRAGMA busy_timeout = 5000");
    return sqlite.query<{ number: number }, []>(`SELECT "number" FROM "_platform_commit"`).get()?.number ?? 0;
  } finally {
    sqlite.close();
  }
}

if (import.meta.main) {
  const [rounds = "1000", pauseMs = "50"] = process.argv.slice(2);
  const startedAt = performance.now();
  const outcome = await soakFollower({ rounds: Number(rounds), pauseMs: Number(pauseMs), seed: 1 });
  console.log(JSON.stringify({ ...outcome, seconds: Math.round((performance.now() - startedAt) / 1000) }));
}
