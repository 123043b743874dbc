/** Tests of what is kept of stories, and of the indexes that are proposed. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { STEPS_MAX } from "../../../../kernel/observing/request-steps.ts";
import { RequestTrace } from "../../../../kernel/observing/request-trace.ts";
import { nextTurn } from "../../../../kernel/time/scheduler.ts";
import { ANONYMOUS } from "../../../access/principal.ts";
import type { Answered } from "../../../http/exchange/request-context.ts";
import { describing } from "../slow-requests.ts";
import { STORIES_MAX } from "./limits.ts";
import { Plans } from "./plans.ts";
import { Stories } from "./stories.ts";

const clock = { now: () => 1_700_000_000_000, after: () => () => {} };

function films(): Database {
  const sqlite = new Database(":memory:");
  sqlite.run(
    'CREATE TABLE "films" ("id" TEXT PRIMARY KEY NOT NULL, "title" TEXT, "year" INTEGER, "rating" REAL) STRICT',
  );
  sqlite.run('CREATE INDEX "ix:films:title" ON "films" ("title")');
  return sqlite;
}

const stories = (isAll = false) =>
  new Stories({ isAll, fromMs: 500, dataDirectory: "/data", describe: describing(() => null, clock) });

/** Notes an answered request that has done `work`. */
async function noted(kept: Stories, requestId: string, work: (trace: RequestTrace) => void, durationMs = 600) {
  const trace = new RequestTrace({ requestId, address: () => "" }, performance.now());
  work(trace);
  const answered: Answered = {
    request: new Request("http://localhost/api/db/shared/tables/films"),
    requestId,
    route: "/api/db/:namespace/tables/:table",
    params: {},
    status: 200,
    durationMs,
    principal: ANONYMOUS,
    trace,
  };
  kept.note(answered);
  await nextTurn();
}

const FROM = 'SELECT "id" FROM "films" WHERE';

test("[AN125] an index is proposed where SQLite has a better plan with it, and none where it has not", () => {
  const sqlite = films();
  const plans = new Plans();
  const proposed = (sql: string): string[] | undefined => plans.of(sqlite, "shared", sql, true).index?.fields;
  expect(proposed(`${FROM} "year" = ?`)).toEqual(["year"]);
  expect(proposed(`${FROM} "year" > ? AND "year" < ?`)).toEqual(["year"]);
  expect(proposed('SELECT "id" FROM "films" ORDER BY "rating" DESC, "id" DESC LIMIT 10')).toEqual(["rating"]);
  expect(proposed(`${FROM} "year" = ? ORDER BY "rating" DESC, "id" DESC LIMIT 10`)).toEqual(["year", "rating"]);
  // The title has an index already; a function of a field has none that would help.
  expect(proposed(`${FROM} "title" = ?`)).toBeUndefined();
  expect(proposed(`${FROM} lower("rating") = ?`)).toBeUndefined();
  expect(proposed("SELECT 1")).toBeUndefined();
  expect(plans.of(sqlite, "shared", `${FROM} "year" = ?`, false).index).toBeNull();
  expect(plans.of(sqlite, "shared", "no statement", true)).toEqual({ plan: null, index: null });
});

test("[AN125] slow statements of stories are counted, with the requests that had them", async () => {
  const sqlite = films();
  const kept = stories();
  const sql = `${FROM} "year" = ?`;
  const query = { sql, path: "/data/databases/shared.db", file: sqlite, isElsewhere: true };
  for (const id of ["a", "b"]) await noted(kept, id, ({ steps }) => steps.query(performance.now() - 100, query));
  await noted(kept, "c", ({ steps }) => steps.query(performance.now(), query));
  const [slow, ...others] = kept.slowQueries();
  expect(others).toEqual([]);
  expect(slow).toMatchObject({ place: "db/shared", sql, times: 2, requests: ["b", "a"] });
  expect(slow?.index).toEqual({ namespace: "shared", table: "films", fields: ["year"] });
  expect(slow?.ms).toBeGreaterThanOrEqual(200);
  const [step] = kept.story("a")?.steps ?? [];
  expect(step).toMatchObject({ kind: "query", place: "db/shared", sql, isElsewhere: true });
});

test("[AN122] texts in a statement are not shown, but paths into JSON are", async () => {
  const sqlite = films();
  const kept = stories();
  const sql = `SELECT 'it''s $2b$10$secret', "title" ->> '$.a[0]', '$' FROM "films" WHERE "title" = 'x'`;
  const query = { sql, path: "/data/databases/shared.db", file: sqlite, isElsewhere: false };
  await noted(kept, "a", ({ steps }) => steps.query(performance.now(), query));
  const [step] = kept.story("a")?.steps ?? [];
  expect(step).toMatchObject({ sql: `SELECT '…', "title" ->> '$.a[0]', '$' FROM "films" WHERE "title" = '…'` });
});

test("[AN122] an apostrophe in a comment or a name, a blob or a text that is cut shows no text", async () => {
  const shown = async (sql: string, file: Database | null): Promise<unknown> => {
    const kept = stories();
    const query = { sql, path: "/data/databases/shared.db", file, isElsewhere: file === null };
    await noted(kept, "a", ({ steps }) => steps.query(performance.now(), query));
    const [step] = kept.story("a")?.steps ?? [];
    return step?.kind === "query" ? step.sql : null;
  };
  const update = "UPDATE users SET token = '…' WHERE id = '…'";
  expect(await shown("-- don't log this\nUPDATE users\n  SET token = 'hunter2' WHERE id = 1", null)).toBe(update);
  expect(await shown("/* don't */ UPDATE users SET token = x'68756e74' WHERE id = 0x1F", null)).toBe(update);
  // SQLite takes a name in double quotes for a text where there is no such column.
  expect(await shown(`SELECT "it's", [it's] FROM a WHERE b = "hunter2"`, null)).toBe(
    `SELECT "…", [it's] FROM a WHERE b = "…"`,
  );
  expect(await shown(`SELECT "it's" FROM "a" WHERE "b" = 'hunter2' LIMIT 1`, films())).toBe(
    `SELECT "it's" FROM "a" WHERE "b" = '…' LIMIT 1`,
  );
  const cut = await shown(`SELECT ${"a, ".repeat(1330)}'hunter2'`, films());
  expect(cut).toEndWith("a, '…'…");
  expect(await shown("SELECT 'it's hunter2'", null)).toBe("'…'");
});

test("[AN121] the newest stories are kept, each with a bounded number of steps", async () => {
  const kept = stories();
  const calls = ({ steps }: RequestTrace): void => {
    for (let n = 0; n < STEPS_MAX + 5; n++) steps.job(`job ${n}`, String(n));
  };
  await noted(kept, "first", calls);
  expect(kept.story("first")?.steps).toHaveLength(STEPS_MAX);
  expect(kept.story("first")?.further).toBe(5);
  for (let n = 0; n < STORIES_MAX; n++) await noted(kept, `r${n}`, () => {});
  expect(kept.story("first")).toBeNull();
  expect(kept.story("r0")).not.toBeNull();
  expect(kept.list({ from: null, to: null, limit: 2 }).map(({ requestId }) => requestId)).toEqual(["r999", "r998"]);
  // Stories of many steps end earlier: the bytes are bounded.
  const large = "x".repeat(50_000);
  for (let n = 0; n < 300; n++) await noted(kept, `l${n}`, ({ steps }) => steps.job(large, large));
  expect(kept.list({ from: null, to: null, limit: 1000 }).length).toBeLessThan(100);
  await noted(kept, "quick", () => {}, 1);
  expect(kept.story("quick")).toBeNull();
});
