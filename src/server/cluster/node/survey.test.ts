/** Looks of an owner at a real PostgreSQL. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestPostgres } from "../../../../tests/support/cluster/postgres.ts";
import { until } from "../../../../tests/support/until.ts";
import { type Clock, systemClock } from "../../../kernel/clock.ts";
import { systemIds } from "../../../kernel/ids.ts";
import type { StoredRow } from "../objects/stored-row.ts";
import { PARTITION_POSITIONS } from "./limits.ts";
import { prepare } from "./preparation.ts";
import { Survey } from "./survey.ts";

const SECRETS = { jwtSecret: "a secret of thirty-two characters", serviceKey: "key-of-the-cluster-0123456789" };
/** The next look comes at once. */
const hasty: Clock = { ...systemClock, after: (delayMs, work) => systemClock.after(delayMs / 100, work) };

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await TestPostgres.start();
}, 60_000);
afterAll(() => postgres.stop());

/** Returns the partitions of the log, oldest first; of those that are being detached with a mark. */
async function partitions(): Promise<string[]> {
  const rows = await postgres.sql(`SELECT c.relname || CASE WHEN i.inhdetachpending THEN ' pending' ELSE '' END
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'platform.log'::regclass
    ORDER BY length(c.relname), c.relname`);
  return rows.map(([name]) => name ?? "");
}

/** Moves the log's end on, with one row there. */
async function append(position: number): Promise<void> {
  await postgres.sql("INSERT INTO platform.log VALUES ('core', $1::bigint, 'file', 1, 1, $2, '', '')", [
    position,
    `n${position}`,
  ]);
  await postgres.sql("UPDATE platform.groups SET position = $1::bigint, nonce = $2, incarnation = 'a1'", [
    position,
    `n${position}`,
  ]);
}

test("[CLU102] while a transaction that has read the log is open, the survey makes room and goes on; then the log is cut", async () => {
  const facts = { node: "http://a", version: "1", config: "c" };
  const shared = { postgres: postgres.url, durability: "single", ids: systemIds } as const;
  await prepare({ ...shared, secrets: SECRETS, facts, clock: systemClock, onWait() {} });
  const end = PARTITION_POSITIONS + 10;
  await append(PARTITION_POSITIONS - 1);
  await append(end);
  const reader = await postgres.connect("reader");
  await reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await reader.run("SELECT count(*) FROM platform.log");

  const place = { history: 0, position: end, nonce: `n${end}`, epoch: 1 };
  const state: StoredRow = { ok: true, message: null, place, lastCopyAt: null };
  const survey = new Survey({
    ...shared,
    clock: hasty,
    isOwner: () => true,
    trimmed: () => ({ incarnation: "a1", upTo: end }),
    stored: async () => state,
    onChange() {},
  });
  survey.start();
  try {
    await until("it has looked", () => survey.last.facts.has("http://a"));
    await until("a detachment waits", async () => (await partitions()).includes("log_0 pending"));
    expect(await partitions()).toContain(`log_${3 * PARTITION_POSITIONS}`);
    await append(2 * PARTITION_POSITIONS + 10);
    await until("a later look makes room", async () => (await partitions()).includes(`log_${4 * PARTITION_POSITIONS}`));
    expect(await partitions()).toContain("log_0 pending");
    expect(await reader.run("COMMIT")).toBeDefined();
    await until("the partition is gone", async () => {
      const [[table = null] = []] = await postgres.sql("SELECT to_regclass('platform.log_0')::text");
      return table === null;
    });
    expect((await partitions())[0]).toBe(`log_${PARTITION_POSITIONS}`);
    expect(await postgres.sql("SELECT base::text FROM platform.groups")).toEqual([[String(PARTITION_POSITIONS - 1)]]);
  } finally {
    survey.stop();
    reader.close();
  }
}, 60_000);
