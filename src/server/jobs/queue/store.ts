import type { Millis } from "../../../kernel/clock.ts";
import { untilBytes } from "../../../kernel/time/sweeping.ts";
import type { OpenedFile, Sync, Transaction } from "../../db/index.ts";
import { CLAIM_BYTES, DATA_MAX_BYTES, FINISHED_MAX } from "../limits.ts";
import type { NameCounts } from "../types.ts";
import { BEHIND, DONE, FAILED, RUNNING, WAITING } from "../types.ts";
import { CountDeltas } from "./counts.ts";
import type { NewJob } from "./entry.ts";

/** A claimed job: one that has been marked as running. */
export interface ClaimedJob {
  seq: number;
  id: string;
  name: string;
  group: string | null;
  createdAt: Millis;
  attempt: number;
  /** Error of the latest failed try. */
  lastError: string | null;
  data: string;
  secret: Uint8Array | null;
}

/** Outcome of a try. `retry`: the job waits again. */
export type Outcome = { job: Pick<ClaimedJob, "seq" | "name" | "group"> } & (
  | { to: "done"; at: Millis }
  | { to: "failed"; at: Millis; error: string }
  | { to: "retry"; dueAt: Millis; error: string }
  // The job was claimed, and its run has not begun.
  | { to: "release" }
);

/** Called with the name of a job that a change makes due, and the time: the dispatcher looks at the name then. */
export type OnDue = (name: string, dueAt: Millis) => void;

const BY_KEY = "SELECT id FROM jobs WHERE name = ?1 AND key = ?2 AND key IS NOT NULL AND state < 3";
// Without INDEXED BY, SQLite uses the index of lists and reads every waiting job of the name.
const FIRST_OF_GROUP = `SELECT seq, state, due_at AS dueAt FROM jobs INDEXED BY jobs_by_group
  WHERE name = ?1 AND group_key = ?2 AND group_key IS NOT NULL AND state < 3 ORDER BY seq LIMIT 1`;
// `RETURNING` would cost more than both statements of an insert together.
const INSERT = `INSERT INTO jobs (id, name, state, attempt, created_at, due_at, key, group_key, secret, data)
  VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO NOTHING`;
const DUE = `SELECT seq, id, name, group_key AS "group", created_at AS createdAt, attempt + 1 AS attempt,
  error AS lastError, data, secret
  FROM jobs WHERE name = ?1 AND state = 0 AND due_at <= ?2 ORDER BY due_at, seq LIMIT ?3`;
const DUE_SIZES = `SELECT octet_length(data) AS bytes FROM jobs WHERE name = ?1 AND state = 0 AND due_at <= ?2
  ORDER BY due_at, seq LIMIT ?3`;
const NEXT_DUE = "SELECT due_at AS dueAt FROM jobs WHERE name = ?1 AND state = 0 ORDER BY due_at LIMIT 1";
const START = "UPDATE jobs SET state = 2, attempt = ?2, started_at = ?3 WHERE seq = ?1";
const FINISH = `UPDATE jobs SET state = ?2, finished_at = ?3, error = ?4, secret = CASE ?2 WHEN 3 THEN NULL ELSE secret END
  WHERE seq = ?1 AND state = 2`;
const RETRY = "UPDATE jobs SET state = 0, due_at = ?2, error = ?3 WHERE seq = ?1 AND state = 2";
const RELEASE = "UPDATE jobs SET state = 0, attempt = attempt - 1 WHERE seq = ?1 AND state = 2";
const PROMOTE = "UPDATE jobs SET state = 0 WHERE seq = ?1";
const ANSWER = "UPDATE jobs SET answer = ?2 WHERE seq = ?1";
// Includes a cancelled job whose try has not ended.
const SAVE = "UPDATE jobs SET data = ?2 WHERE seq = ?1 AND state IN (2, 4)";
const ATTEMPT = "SELECT attempt FROM jobs WHERE seq = ?1 AND state = 2";
const INTERRUPTED = `SELECT seq, id, name, group_key AS "group", created_at AS createdAt, attempt FROM jobs
  WHERE name = ?1 AND state = 2`;
const COUNTS = `SELECT name, waiting, running, done, failed, failed_total AS failedTotal FROM job_counts ORDER BY name`;
const UNFINISHED = "SELECT waiting + running AS count FROM job_counts WHERE name = ?1";
const OUTDATED = `SELECT seq, name, octet_length(data) AS bytes FROM jobs WHERE state = ?1 AND state > 2 AND finished_at <= ?2
  ORDER BY finished_at LIMIT ?3`;
const REMOVE = "DELETE FROM jobs WHERE seq = ?1 AND state = ?2";

/** Statements on jobs.db. Methods with a transaction change it; `deltas` collects their effect on the counts. */
export class JobStore {
  readonly file: OpenedFile;

  constructor(file: OpenedFile) {
    this.file = file;
  }

  /** Runs `work` in a transaction, with the counts updated at its end. */
  write<T>(work: (tx: Transaction, deltas: CountDeltas) => Sync<T>): Promise<T> {
    return this.file.write(withCounts(work));
  }

  /**
   * Runs `work` like `write`, without waiting for the disk: for the outcomes of tries. After a power failure a job may run again.
   */
  commit<T>(work: (tx: Transaction, deltas: CountDeltas) => Sync<T>): Promise<T> {
    return this.file.commit(withCounts(work));
  }

  /** Inserts a job. Returns its id: an earlier job's if that has the same id, or the same key and is not finished. */
  insert(tx: Transaction, deltas: CountDeltas, job: NewJob, onDue: OnDue): string {
    const { id, name, key, group } = job;
    const earlier = key === null ? null : tx.query<{ id: string }>(BY_KEY).get(name, key);
    if (earlier !== null) return earlier.id;
    const state = group !== null && this.#firstOfGroup(tx, name, group) !== null ? BEHIND : WAITING;
    const values = [id, name, state, job.createdAt, job.dueAt, key, group, job.secret, job.data] as const;
    if (tx.query(INSERT).run(...values).changes === 0) return id;
    deltas.move(name, null, state);
    if (state === WAITING) onDue(name, job.dueAt);
    return id;
  }

  /** Claims due jobs of a name by marking them as running: at most `limit`, and of about CLAIM_BYTES of data. */
  claim(tx: Transaction, deltas: CountDeltas, { name, now, limit }: { name: string; now: Millis; limit: number }) {
    const mayBeTooMuch = limit * DATA_MAX_BYTES > CLAIM_BYTES;
    const sizes = mayBeTooMuch ? tx.query<{ bytes: number }>(DUE_SIZES).all(name, now, limit) : null;
    const count = sizes === null ? limit : untilBytes(sizes, CLAIM_BYTES).length;
    const jobs = tx.query<ClaimedJob>(DUE).all(name, now, count);
    for (const { seq, attempt } of jobs) {
      tx.query(START).run(seq, attempt, now);
      deltas.move(name, WAITING, RUNNING);
    }
    return jobs;
  }

  /** Returns when the earliest waiting job of a name is due; null without any. */
  nextDue(tx: Pick<Transaction, "query">, name: string): Millis | null {
    return tx.query<{ dueAt: number }>(NEXT_DUE).get(name)?.dueAt ?? null;
  }

  record(tx: Transaction, deltas: CountDeltas, outcome: Outcome, onDue: OnDue): void {
    const { seq, name, group } = outcome.job;
    if (outcome.to === "retry") {
      if (tx.query(RETRY).run(seq, outcome.dueAt, outcome.error).changes === 0) return;
      deltas.move(name, RUNNING, WAITING);
      onDue(name, outcome.dueAt);
      return;
    }
    if (outcome.to === "release") {
      if (tx.query(RELEASE).run(seq).changes > 0) deltas.move(name, RUNNING, WAITING);
      return;
    }
    const state = outcome.to === "done" ? DONE : FAILED;
    const error = outcome.to === "done" ? null : outcome.error;
    if (tx.query(FINISH).run(seq, state, outcome.at, error).changes === 0) return;
    deltas.move(name, RUNNING, state);
    this.promote(tx, name, group, onDue);
  }

  /**
   * Promotes the next job of a group, which becomes due at its time. Call when the group's waiting or running job is finished, and
   * for no other.
   */
  promote(tx: Transaction, name: string, group: string | null, onDue: OnDue): void {
    if (group === null) return;
    const next = this.#firstOfGroup(tx, name, group);
    if (next === null || next.state !== BEHIND) return;
    tx.query(PROMOTE).run(next.seq);
    onDue(name, next.dueAt);
  }

  save(tx: Transaction, seq: number, data: string): void {
    tx.query(SAVE).run(seq, data);
  }

  /** Stores the answer to the latest try, as JSON. */
  keepAnswer(tx: Transaction, seq: number, answer: string): void {
    tx.query(ANSWER).run(seq, answer);
  }

  /** Reports whether a claim has been committed. */
  isClaimed({ seq, attempt }: ClaimedJob): boolean {
    return this.file.query<{ attempt: number }>(ATTEMPT).get(seq)?.attempt === attempt;
  }

  /** Returns the jobs that were running when an earlier process ended. */
  interrupted(tx: Transaction): Omit<ClaimedJob, "data" | "secret" | "lastError">[] {
    const names = this.counts(tx).filter(({ running }) => running > 0);
    return names.flatMap(({ name }) =>
      tx.query<Omit<ClaimedJob, "data" | "secret" | "lastError">>(INTERRUPTED).all(name),
    );
  }

  counts(from: Pick<Transaction, "query"> = this.file): NameCounts[] {
    return from.query<NameCounts & Record<string, string | number>>(COUNTS).all();
  }

  /** Counts the jobs of a name that wait or run. */
  unfinished(name: string): number {
    return this.file.query<{ count: number }>(UNFINISHED).get(name)?.count ?? 0;
  }

  /**
   * Removes finished jobs of one state that ended before `until`, or are too many: at most `limit`, and of about `bytesMax` of data.
   * Resolves to whether there may be more.
   */
  async sweep(
    state: typeof DONE | typeof FAILED,
    { until, limit, bytesMax }: { until: Millis; limit: number; bytesMax: number },
  ): Promise<boolean> {
    const kept = this.counts().reduce((sum, { done, failed }) => sum + (state === DONE ? done : failed), 0);
    const surplus = Math.min(limit, kept - FINISHED_MAX);
    const found = this.file
      .query<{ seq: number; name: string; bytes: number }>(OUTDATED)
      .all(state, surplus > 0 ? Number.MAX_SAFE_INTEGER : until, surplus > 0 ? surplus : limit);
    const rows = untilBytes(found, bytesMax);
    if (rows.length === 0) return false;
    await this.write((tx, deltas) => {
      for (const { seq, name } of rows) {
        if (tx.query(REMOVE).run(seq, state).changes > 0) deltas.move(name, state, null);
      }
      return null;
    });
    // Jobs past their retention are searched for once there is no surplus.
    return surplus > 0 || found.length === limit || rows.length < found.length;
  }

  #firstOfGroup(tx: Transaction, name: string, group: string) {
    return tx.query<{ seq: number; state: number; dueAt: number }>(FIRST_OF_GROUP).get(name, group);
  }
}

/** Wraps `work` to update the counts at its end. */
const withCounts =
  <T>(work: (tx: Transaction, deltas: CountDeltas) => Sync<T>) =>
  (tx: Transaction): Sync<T> => {
    const deltas = new CountDeltas();
    const result = work(tx, deltas);
    deltas.write(tx);
    return result;
  };
