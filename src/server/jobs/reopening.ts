import type { Database } from "bun:sqlite";
import type { Millis } from "../../kernel/clock.ts";

/** Condition of the jobs to reopen: without those whose effects are outside of the data directory and therefore remain. */
const REOPENED = `state = 3 AND finished_at >= ?1 AND name NOT IN ('platform.mail', 'platform.push', 'platform.backup')`;

const STATEMENTS = [
  `CREATE TEMP TABLE reopened_groups AS
    SELECT DISTINCT name, group_key FROM jobs WHERE group_key IS NOT NULL AND ${REOPENED}`,
  // Another job may have taken the key since.
  `UPDATE jobs SET state = 0, key = NULL, finished_at = NULL, due_at = MIN(due_at, ?1) WHERE ${REOPENED}`,
  // One job of a group waits or runs, the first; the others wait behind it.
  `UPDATE jobs SET state = CASE WHEN seq = (
      SELECT MIN(seq) FROM jobs AS other
      WHERE other.name = jobs.name AND other.group_key = jobs.group_key AND other.state < 3
    ) THEN 0 ELSE 1 END
    WHERE state < 3 AND (name, group_key) IN (SELECT name, group_key FROM reopened_groups) AND ?1 IS NOT NULL`,
  `UPDATE job_counts SET
    waiting = (SELECT count(*) FROM jobs WHERE jobs.name = job_counts.name AND state IN (0, 1)),
    running = (SELECT count(*) FROM jobs WHERE jobs.name = job_counts.name AND state = 2),
    done = (SELECT count(*) FROM jobs WHERE jobs.name = job_counts.name AND state = 3)
    WHERE ?1 IS NOT NULL`,
];

/**
 * Makes jobs that were done at `since` or later wait again, in a copy of jobs.db. Other databases of the same backup were copied
 * before it, and may lack what those jobs have written.
 */
export function reopenJobs(copy: Database, since: Millis): void {
  copy.transaction(() => {
    for (const sql of STATEMENTS) copy.query(sql).run(since);
  })();
}
