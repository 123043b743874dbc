import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { reopenJobs } from "./reopening.ts";

const LAYOUT = resolve(import.meta.dir, "../../../schema/migrations/jobs");

interface Row {
  id: string;
  name?: string;
  state: number;
  finishedAt?: number;
  group?: string;
  key?: string;
}

function copyWith(rows: readonly Row[]): Database {
  const copy = new Database(":memory:");
  copy.exec(readFileSync(join(LAYOUT, "0001_jobs.sql"), "utf8"));
  const insert =
    copy.query(`INSERT INTO jobs (id, name, state, attempt, created_at, due_at, finished_at, key, group_key, data)
    VALUES (?, ?, ?, 1, 1, 5, ?, ?, ?, '{}')`);
  for (const { id, name = "charge", state, finishedAt, group, key } of rows) {
    insert.run(id, name, state, finishedAt ?? null, key ?? null, group ?? null);
  }
  copy.exec("INSERT INTO job_counts SELECT DISTINCT name, 0, 0, 0, 0, 7 FROM jobs");
  return copy;
}

const states = (copy: Database): Record<string, number> =>
  Object.fromEntries(copy.query("SELECT id, state FROM jobs").values() as [string, number][]);

test("[BK202] jobs that were done since the backup began wait again; earlier and failed ones and mail stay", () => {
  const copy = copyWith([
    { id: "earlier", state: 3, finishedAt: 99 },
    { id: "meanwhile", state: 3, finishedAt: 100, key: "k" },
    { id: "failed", state: 4, finishedAt: 150 },
    { id: "mail", name: "platform.mail", state: 3, finishedAt: 150 },
    { id: "account", name: "platform.afterSignup", state: 3, finishedAt: 150 },
    { id: "same key", state: 0, key: "k" },
  ]);
  reopenJobs(copy, 100);
  expect(states(copy)).toEqual({ earlier: 3, meanwhile: 0, failed: 4, mail: 3, account: 0, "same key": 0 });
  expect(copy.query("SELECT key, finished_at FROM jobs WHERE id = 'meanwhile'").values()).toEqual([[null, null]]);
  const counts = copy.query("SELECT waiting, running, done, failed_total FROM job_counts WHERE name = 'charge'");
  expect(counts.values()).toEqual([[2, 0, 1, 7]]);
});

test("[BK202] the jobs of a group keep their order", () => {
  const copy = copyWith([
    { id: "first", state: 3, finishedAt: 100, group: "g" },
    { id: "second", state: 3, finishedAt: 101, group: "g" },
    { id: "running", state: 2, group: "g" },
    { id: "behind", state: 1, group: "g" },
    { id: "of another", state: 2, group: "h" },
  ]);
  reopenJobs(copy, 100);
  expect(states(copy)).toEqual({ first: 0, second: 1, running: 1, behind: 1, "of another": 2 });
});
