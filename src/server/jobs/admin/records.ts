import type { Clock } from "../../../kernel/clock.ts";
import { conflict, notFound } from "../../../kernel/errors.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import type { Actor, AuditedChange, Transaction } from "../../db/index.ts";
import { LIST_MAX_BYTES } from "../limits.ts";
import type { QueueCore } from "../queue/core.ts";
import type { JobStore } from "../queue/store.ts";
import { BEHIND, FAILED, type JobState, rowStates, stateName, WAITING } from "../types.ts";

export interface JobListing {
  /** Names of the jobs; null: all. */
  names: readonly string[] | null;
  state: JobState | null;
  /** Cursor: only jobs that were enqueued before the one with this number; null: from the newest. */
  before: number | null;
  limit: number;
}

/** A stored job without its data. */
export interface JobRow {
  seq: number;
  id: string;
  name: string;
  state: number;
}

interface WholeRow extends JobRow {
  attempt: number;
  data: string;
  error: string | null;
  answer: string | null;
  created_at: number;
  due_at: number;
  started_at: number | null;
  finished_at: number | null;
}

const NEWEST = "SELECT seq FROM jobs WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2";
const NEWEST_OF = "SELECT seq FROM jobs WHERE name = ?1 AND state = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4";
const WHOLE = `SELECT seq, id, name, state, attempt, error, created_at, due_at, started_at, finished_at, data, answer
  FROM jobs WHERE seq = ?1`;
const BY_ID = "SELECT seq, id, name, state FROM jobs WHERE id = ?1";
const KEPT = 'SELECT state, group_key AS "group", key FROM jobs WHERE seq = ?1';
const IS_KEY_TAKEN = "SELECT 1 FROM jobs WHERE name = ?1 AND key = ?2 AND key IS NOT NULL AND state < 3";
const IS_GROUP_BUSY = `SELECT 1 FROM jobs INDEXED BY jobs_by_group
  WHERE name = ?1 AND group_key = ?2 AND group_key IS NOT NULL AND state < 3 LIMIT 1`;
const RETRY = "UPDATE jobs SET state = ?2, attempt = 0, due_at = ?3, finished_at = NULL WHERE seq = ?1";
const CANCEL = "UPDATE jobs SET state = 4, finished_at = ?2, error = 'Cancelled' WHERE seq = ?1";
const RUN_NOW = "UPDATE jobs SET due_at = ?2 WHERE seq = ?1";

interface Kept {
  state: number;
  group: string | null;
  key: string | null;
}

/** Stored jobs, for administrators. Each change is one transaction, which checks the state again. */
export type JobRecords = ReturnType<typeof createJobRecords>;

export function createJobRecords({ core, clock, isDrill }: { core: QueueCore; clock: Clock; isDrill: boolean }) {
  const { onDue } = core.dispatcher;
  return {
    /** Lists jobs, newest first, as JSON texts. `next` is the cursor of the next page; null: the list has ended. */
    list(listing: JobListing): { jobs: string[]; next: number | null } {
      const store = core.existing();
      if (store === null) return { jobs: [], next: null };
      // One more than requested shows whether there is a next page.
      const seqs = sequence(store, { ...listing, limit: listing.limit + 1 });
      const jobs: string[] = [];
      let bytes = 0;
      let last: number | null = null;
      for (const seq of seqs.slice(0, listing.limit)) {
        if (bytes > LIST_MAX_BYTES) break;
        const row = store.file.query<WholeRow>(WHOLE).get(seq);
        last = seq;
        if (row === null) continue;
        const text = jobText(row, isDrill);
        bytes += text.length;
        jobs.push(text);
      }
      return { jobs, next: last !== null && last !== seqs.at(-1) ? last : null };
    },
    /** Finds a job by id; null: there is none. */
    find: (id: string): JobRow | null => core.existing()?.file.query<JobRow>(BY_ID).get(id) ?? null,
    /** Retries a job. Errors: 404 if it is gone; 409 unless it has failed, and if another job has its key. */
    async retry({ seq, name, id }: JobRow, by: Actor): Promise<void> {
      await core.open().write((tx, deltas) => {
        const { state, group, key } = keptOf(tx.query<Kept>(KEPT).get(seq), id);
        if (state !== FAILED) throw wrongState("retried", "failed", state);
        if (key !== null && tx.query(IS_KEY_TAKEN).get(name, key) !== null) {
          throw conflict(`Another job "${name}" with the key "${key}" waits or runs`);
        }
        const isBehind = group !== null && tx.query(IS_GROUP_BUSY).get(name, group) !== null;
        const now = clock.now();
        audit(tx, by, auditedChange("retry", { name, id }));
        tx.query(RETRY).run(seq, isBehind ? BEHIND : WAITING, now);
        deltas.move(name, FAILED, WAITING);
        if (!isBehind) onDue(name, now);
        return null;
      });
    },
    /** Cancels a waiting job. Errors: 404 if it is gone; 409 unless it waits. */
    async cancelWaiting({ seq, name, id }: JobRow, by: Actor): Promise<void> {
      await core.open().write((tx, deltas) => {
        const { state, group } = keptOf(tx.query<Kept>(KEPT).get(seq), id);
        if (state !== WAITING && state !== BEHIND) throw wrongState("cancelled", "waiting or running", state);
        audit(tx, by, auditedChange("cancel", { name, id }));
        tx.query(CANCEL).run(seq, clock.now());
        deltas.move(name, WAITING, FAILED);
        // A job behind another one of its group promotes nothing: the job before it may be running.
        if (state === WAITING) core.open().promote(tx, name, group, onDue);
        return null;
      });
    },
    /** Makes a waiting job due at once. Errors: 404 if it is gone; 409 unless it waits. */
    async runNow({ seq, name, id }: JobRow, by: Actor): Promise<void> {
      await core.open().write((tx) => {
        const { state } = keptOf(tx.query<Kept>(KEPT).get(seq), id);
        if (state !== WAITING && state !== BEHIND) throw wrongState("run now", "waiting", state);
        const now = clock.now();
        audit(tx, by, auditedChange("run-now", { name, id }));
        tx.query(RUN_NOW).run(seq, now);
        if (state === WAITING) onDue(name, now);
        return null;
      });
    },
  };
}

/** Returns the audit entry of a change by an administrator. */
export const auditedChange = (action: string, { name, id }: Pick<JobRow, "name" | "id">): AuditedChange => ({
  action: `job.${action}`,
  target: `jobs/${name}/${id}`,
});

function audit(tx: Transaction, by: Actor, change: AuditedChange): void {
  tx.causedBy(by);
  tx.audit(() => change);
}

function sequence(store: JobStore, { names, state, before, limit }: JobListing): number[] {
  const from = before ?? Number.MAX_SAFE_INTEGER;
  if (names === null && state === null) {
    return store.file
      .query<{ seq: number }>(NEWEST)
      .all(from, limit)
      .map(({ seq }) => seq);
  }
  const ofNames = names ?? store.counts().map(({ name }) => name);
  const found = ofNames.flatMap((name) =>
    rowStates(state).flatMap((one) => store.file.query<{ seq: number }>(NEWEST_OF).all(name, one, from, limit)),
  );
  return found
    .map(({ seq }) => seq)
    .sort((one, other) => other - one)
    .slice(0, limit);
}

/** Formats a job as JSON. Its data and answer are JSON already. */
function jobText(row: WholeRow, isDrill: boolean): string {
  const { id, name, attempt, data, error, answer } = row;
  const state = stateName(row.state);
  const waitingFor = isDrill && state === "waiting" ? "drill" : null;
  const head = JSON.stringify({ id, name, state, waitingFor, attempt });
  const tail = JSON.stringify({
    error,
    createdAt: isoTime(row.created_at),
    dueAt: isoTime(row.due_at),
    startedAt: row.started_at === null ? null : isoTime(row.started_at),
    finishedAt: row.finished_at === null ? null : isoTime(row.finished_at),
  });
  return `${head.slice(0, -1)},"data":${data},"answer":${answer},${tail.slice(1)}`;
}

/** Returns the row, unless the sweep has removed it. Errors: 404. */
function keptOf(row: Kept | null, id: string): Kept {
  if (row === null) throw noSuchJob(id);
  return row;
}

export const noSuchJob = (id: string) => notFound(`There is no job "${id}"`);

export const wrongState = (done: string, wanted: string, state: number) =>
  conflict(`Only a ${wanted} job can be ${done}; this one is ${stateName(state)}`);
