import { expect, test } from "bun:test";
import { join } from "node:path";
import { auditLayout } from "../../../../schema/migrations/index.ts";
import { temporaryDirectory, testClock } from "../../../../tests/support/index.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { silentLogger } from "../../../kernel/logger.ts";
import { DAY_MS } from "../../../kernel/time/duration.ts";
import {
  type AuditRow,
  type AuditText,
  createStorageEngine,
  entryText,
  layOut,
  originOf,
  SERVER_CALLER,
} from "../../db/index.ts";
import { SWEEP_FIRST_MS, SWEEP_INTERVAL_MS, SWEEP_PAUSE_MS, SWEEP_STEP_ROWS } from "./limits.ts";
import { startRetention } from "./retention.ts";
import { createAuditStore, REMOVE_FIRST, REMOVE_OLD } from "./store.ts";

const NOW = 1_000 * DAY_MS;

const entryAt = (at: number, action: string): AuditText =>
  entryText(
    { action, target: "db/shared/notes/a" },
    { actor: { kind: "serviceKey", name: "root" }, at, from: originOf(undefined) },
  );

test("[AL8] old entries are removed, and those above the bounds; failed sign-ins push out no change", async () => {
  const engine = createStorageEngine({ clock: systemClock });
  const file = engine.open(join(temporaryDirectory(), "audit.db"), { migrate: layOut(auditLayout) });
  const store = createAuditStore(file);
  const insert = async (rows: number, at: number, action: string) => {
    const { kind, text } = entryAt(at, action);
    const made = Array.from({ length: rows }, () => ({
      seq: 0,
      id: crypto.randomUUID(),
      kind,
      at,
      entries: `[${text}]`,
    }));
    await store.insertRows(made);
  };
  await insert(SWEEP_STEP_ROWS + 5, NOW - 11 * DAY_MS, "record.update");
  await insert(7, NOW - DAY_MS, "record.update");
  await insert(30, NOW, "signin.failed");
  const clock = testClock(NOW - SWEEP_FIRST_MS);
  const bytesOf = (action: string) => entryAt(NOW, action).text.length + 2;
  const bounds = { changes: 6 * bytesOf("record.update"), sessions: 8 * bytesOf("signin.failed") };
  const stop = startRetention({ store: () => store, retentionMs: 10 * DAY_MS, clock, logger: silentLogger, bounds });
  const rows = (kind: string): number =>
    file.sqlite.query<{ n: number }, [string]>("SELECT count(*) AS n FROM batches WHERE kind = ?").get(kind)?.n ?? 0;
  clock.advance(SWEEP_FIRST_MS);
  for (let step = 0; step < 2_000; step++) {
    if (rows("change") === 0 && rows("session") <= 10) break;
    if (clock.waiting > 0) clock.advance(SWEEP_PAUSE_MS);
    await Bun.sleep(1);
  }
  // Whole steps are removed: the surplus of changes was less than one.
  expect([rows("change"), rows("session")]).toEqual([0, 10]);
  await stop();
  await engine.stop();
});

test("[AL8] what is removed is found without reading the rest of the log, which may be gigabytes", async () => {
  const engine = createStorageEngine({ clock: systemClock });
  const file = engine.open(join(temporaryDirectory(), "audit.db"), { migrate: layOut(auditLayout) });
  for (const sql of [REMOVE_OLD, REMOVE_FIRST]) {
    const plan = file.sqlite.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`).all();
    expect(plan.filter(({ detail }) => detail.startsWith("SCAN")).map(({ detail }) => [sql, detail])).toEqual([]);
  }
  await engine.stop();
});

test("[AL2] rows that the log has taken before are left out", async () => {
  const engine = createStorageEngine({ clock: systemClock });
  const file = engine.open(join(temporaryDirectory(), "audit.db"), { migrate: layOut(auditLayout) });
  const store = createAuditStore(file);
  const row = (seq: number, id: string, ...actions: string[]): AuditRow => {
    const entries = `[${actions.map((action) => entryAt(NOW, action).text).join(",")}]`;
    return { seq, id, kind: "change", at: NOW, entries };
  };
  const first = row(1, "a", "record.insert", "record.update");
  await store.insertRows([first]);
  await store.insertRows([first, row(2, "b", "record.delete")]);
  const query = { actor: null, action: null, target: null, request: null, after: null, before: null, limit: 10 };
  const { entries } = await store.page(query, SERVER_CALLER);
  expect(entries.map(({ action }) => action)).toEqual(["record.delete", "record.update", "record.insert"]);
  await engine.stop();
});

test("[AL17] a clock that is far ahead removes a day of entries with each sweep, not all of them", async () => {
  const engine = createStorageEngine({ clock: systemClock });
  const file = engine.open(join(temporaryDirectory(), "audit.db"), { migrate: layOut(auditLayout) });
  const store = createAuditStore(file);
  const { kind, text } = entryAt(NOW, "record.update");
  const rows = Array.from({ length: 10 }, (_, day) => ({
    seq: 0,
    id: String(day),
    kind,
    at: NOW + day * DAY_MS,
    entries: `[${text}]`,
  }));
  await store.insertRows(rows);
  const clock = testClock(NOW + 10_000 * DAY_MS);
  const stop = startRetention({ store: () => store, retentionMs: 10 * DAY_MS, clock, logger: silentLogger });
  const left = (): number => file.sqlite.query<{ n: number }, []>("SELECT count(*) AS n FROM batches").get()?.n ?? 0;
  const sweep = async (ms: number): Promise<void> => {
    clock.advance(ms);
    const before = left();
    for (let step = 0; step < 2_000 && left() === before; step++) await Bun.sleep(1);
    // Waits until the next sweep is planned.
    for (let step = 0; step < 2_000 && clock.waiting === 0; step++) await Bun.sleep(1);
  };
  await sweep(SWEEP_FIRST_MS);
  expect(left()).toBe(9);
  await sweep(SWEEP_INTERVAL_MS);
  expect(left()).toBe(8);
  await stop();
  await engine.stop();
});
