/** Tests of what counts as not stored although there is no record of it. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../../../kernel/clock.ts";
import { createStorageEngine } from "../../../../db/index.ts";
import { commitValues, UPDATE_COMMIT } from "../../../../db/writer/commit-gate.ts";
import { Capture } from "./capture.ts";
import { Spool } from "./spool.ts";

test("[BK337] a commit of d1, which another process makes, counts in the lag from then on", async () => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "capture-"));
  let now = 1_000;
  const clock = { ...systemClock, now: () => now };
  const spool = new Spool({ dataDirectory, clock, bytesMax: 1_000_000 });
  const capture = new Capture({ dataDirectory, spool, clock });
  const engine = createStorageEngine({ clock, capture });
  const path = join(dataDirectory, "ledger.db");
  const kept = new Database(path, { create: true });
  kept.run("PRAGMA journal_mode = WAL");
  const gate = engine.gate(kept, { isRewritten: false });
  gate.open(() => {});
  spool.rotate();
  // A read, and an attempt to write that has failed.
  now = 2_000;
  await gate.elsewhere(
    async () => {},
    () => {},
  );
  expect(spool.firstAt).toBeNull();
  now = 3_000;
  await gate.elsewhere(
    async (answer) => {
      const mark = await answer("commit");
      if (mark === null) throw new Error("there is no mark");
      using other = new Database(path);
      other.run(UPDATE_COMMIT, [...commitValues(mark)]);
    },
    () => {},
  );
  expect(spool.firstAt).toBe(3_000);
  expect(spool.rotate()).toMatchObject({ bytes: 0, firstAt: 3_000 });
  expect(spool.firstAt).toBeNull();
  gate.close();
  kept.close();
  await engine.stop();
});
