import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kvLayout } from "../../../../schema/migrations/index.ts";
import { testClock } from "../../../../tests/support/clock.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { createStorageEngine, layOut, SERVER_ACTOR, type StorageEngine } from "../../db/index.ts";
import { SWEEP_INTERVAL_MS, SWEEP_PAUSE_MS, SWEEP_STEP_BYTES, SWEEP_STEP_KEYS } from "./limits.ts";
import { createEntryStore, startSweep } from "./store.ts";

let directory = "";
let engine: StorageEngine;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "kv-sweep-"));
  engine = createStorageEngine({ clock: systemClock });
});
afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

function sweptFile() {
  const file = engine.open(join(directory, "a.db"), { migrate: layOut(kvLayout) });
  const store = createEntryStore(file, "a");
  const clock = testClock(1_000_000);
  const rowCount = () => file.sqlite.query<{ count: number }, []>("SELECT count(*) AS count FROM entries").get()?.count;
  return {
    store,
    clock,
    set: (key: string, expiresAt: number | null, value = "1") => store.set(key, value, { expiresAt, by: SERVER_ACTOR }),
    async waitFor(count: number) {
      for (let turn = 0; turn < 500 && (rowCount() !== count || clock.waiting === 0); turn++) await Bun.sleep(2);
      expect(rowCount()).toBe(count);
    },
  };
}

test("[KV10] expired keys leave the file step by step, and only they", async () => {
  const { store, clock, set, waitFor } = sweptFile();
  const expiredCount = SWEEP_STEP_KEYS + 20;
  const sets = Array.from({ length: expiredCount }, (_, index) => set(`old${index}`, clock.now() + 1_000));
  await Promise.all([...sets, set("kept", null), set("later", clock.now() + 3_600_000)]);

  const stop = startSweep({ stores: [store], clock, logger: silentLogger });
  clock.advance(SWEEP_INTERVAL_MS);
  await waitFor(22);
  clock.advance(SWEEP_PAUSE_MS);
  await waitFor(2);
  clock.advance(3_600_000);
  await waitFor(2);
  clock.advance(SWEEP_INTERVAL_MS);
  await waitFor(1);
  expect(store.get("kept", clock.now())).toBe("1");
  await stop();
  expect(clock.waiting).toBe(0);
});

test("[KV10] a step removes few large values", async () => {
  const { store, clock, set, waitFor } = sweptFile();
  const value = JSON.stringify("x".repeat(SWEEP_STEP_BYTES / 4));
  for (let index = 0; index < 6; index++) await set(`large${index}`, clock.now() + 1_000, value);
  const stop = startSweep({ stores: [store], clock, logger: silentLogger });
  clock.advance(SWEEP_INTERVAL_MS);
  await waitFor(2);
  clock.advance(SWEEP_PAUSE_MS);
  await waitFor(0);
  await stop();
});
