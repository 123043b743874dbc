/** Tests of commits that other processes make. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../../../kernel/clock.ts";
import { systemIds } from "../../../../../kernel/ids.ts";
import { createStorageEngine } from "../../../../db/index.ts";
import { FRAMES_READ_AT_ONCE_BYTES } from "../../../../db/limits.ts";
import { commitValues, UPDATE_COMMIT } from "../../../../db/writer/commit-gate.ts";
import { SqlFile } from "../../../d1/database-file.ts";
import { Capture } from "./capture.ts";
import { decodeRecords } from "./records.ts";
import { Spool } from "./spool.ts";

function opened() {
  const dataDirectory = mkdtempSync(join(tmpdir(), "capture-"));
  const time = { now: 1_000 };
  const clock = { ...systemClock, now: () => time.now };
  const spool = new Spool({ dataDirectory, clock, bytesMax: 100_000_000 });
  const capture = new Capture({ dataDirectory, spool, clock });
  const engine = createStorageEngine({ clock, capture });
  const path = join(dataDirectory, "d1", "ledger.db");
  Bun.spawnSync(["mkdir", join(dataDirectory, "d1")]);
  const file = new SqlFile(path, { engine, ids: systemIds });
  /** Commits as the process of a query does. */
  const commit = (sql: string) =>
    file.gate.elsewhere(
      async (answer) => {
        const mark = await answer("commit");
        if (mark === null) throw new Error("there is no mark");
        using other = new Database(path);
        other.transaction(() => {
          other.run(sql);
          other.run(UPDATE_COMMIT, [...commitValues(mark)]);
        })();
      },
      () => {},
    );
  /** Returns the types of the records that have come, with the number of frames. */
  const records = (): [type: string, frames: number][] => {
    const file = spool.rotate();
    if (file === null) return [];
    const bytes = readFileSync(file.path);
    const read = (into: Uint8Array, offset: number) => void bytes.copy(into, 0, offset);
    return [...decodeRecords(file.bytes, read)].map(({ record, content }) => [
      record.type,
      record.type === "frames" ? content.byteLength / (24 + record.pageBytes) : 0,
    ]);
  };
  return { time, spool, file, commit, records, engine };
}

test("[BK337] [BK338] a commit of d1, which another process makes, is read right after it, and counts in the lag from then on", async () => {
  const { time, spool, file, commit, records, engine } = opened();
  expect(records()).toEqual([["opened", 0]]);
  // A read, and an attempt to write that has failed.
  time.now = 2_000;
  await file.gate.elsewhere(
    async () => {},
    () => {},
  );
  expect(spool.firstAt).toBeNull();
  time.now = 3_000;
  await commit("CREATE TABLE t (x)");
  expect(spool.firstAt).toBe(3_000);
  expect(records()).toEqual([["frames", 3]]);
  await file.close();
  expect(records()).toEqual([["closed", 0]]);
  await engine.stop();
});

test("[BK338] a large commit of d1 is read in turns, before the next one", async () => {
  const { file, commit, records, engine } = opened();
  await commit("CREATE TABLE t (x)");
  records();
  const bytes = 3 * FRAMES_READ_AT_ONCE_BYTES;
  await commit(`INSERT INTO t VALUES (zeroblob(${bytes}))`);
  const later = commit("INSERT INTO t VALUES (1)");
  await later;
  await file.gate.observed();
  const found = records();
  const frames = found.reduce((sum, [, count]) => sum + count, 0);
  expect(found.length).toBeGreaterThan(3);
  expect(frames).toBeGreaterThan(bytes / 4096);
  // The last record is the second commit alone.
  expect(found.at(-1)?.[1]).toBeLessThan(5);
  await file.close();
  await engine.stop();
});
