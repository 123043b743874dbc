import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kvLayout } from "../../../../schema/migrations/index.ts";
import { countTurns } from "../../../../tests/support/event-loop.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine, layOut, SERVER_CALLER, type StorageEngine } from "../../db/index.ts";
import { decodeCursor } from "./actions.ts";
import { LISTED_PAST_EXPIRED_MAX } from "./limits.ts";
import { createEntryStore } from "./store.ts";

let directory = "";
let engine: StorageEngine;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "kv-store-"));
  engine = createStorageEngine({ clock: systemClock });
});
afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

const NOW = 1_000_000;

/** Fills a store in which every other key has expired, `expiredCount` in all. */
async function halfExpired(expiredCount: number) {
  const file = engine.open(join(directory, "a.db"), { migrate: layOut(kvLayout) });
  const kept: string[] = [];
  await file.write((tx) => {
    const insert = tx.query("INSERT INTO entries (key, value, expires_at) VALUES (?1, '1', ?2)");
    for (let index = 0; index < 2 * expiredCount; index++) {
      const key = `k${String(index).padStart(6, "0")}`;
      const isExpired = index % 2 === 0;
      insert.run(key, isExpired ? NOW : NOW + 1);
      if (!isExpired) kept.push(key);
    }
  });
  return { store: createEntryStore(file, "a"), kept };
}

test("[KV3] [KV5] pages of a list are full and have each key once, however many expired keys are not swept", async () => {
  for (const expiredCount of [LISTED_PAST_EXPIRED_MAX, LISTED_PAST_EXPIRED_MAX + 1]) {
    const { store, kept } = await halfExpired(expiredCount);
    for (const limit of [300, kept.length - 1, kept.length]) {
      const got: string[] = [];
      let after: string | null = null;
      do {
        const page = await store.list({ prefix: "k", limit, after }, NOW, SERVER_CALLER);
        expect(page.keys).toHaveLength(Math.min(limit, kept.length - got.length));
        got.push(...page.keys);
        after = page.cursor === null ? null : decodeCursor(page.cursor);
      } while (after !== null);
      expect(got).toEqual(kept);
    }
    await engine.stop();
    rmSync(join(directory, "a.db"));
    engine = createStorageEngine({ clock: systemClock });
  }
});

test("[KV101] a list of very many expired keys is read beside the event loop", async () => {
  const { store, kept } = await halfExpired(20_000);
  const turns = countTurns();
  const { keys } = await store.list({ prefix: "", limit: 1, after: null }, NOW, SERVER_CALLER);
  turns.stop();
  expect(keys).toEqual(kept.slice(0, 1));
  expect(turns.turn).toBeGreaterThan(0);
});
