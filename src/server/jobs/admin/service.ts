import { AppError, conflict, forbidden } from "../../../kernel/errors.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { decodeCursor, encodeCursor } from "../../../kernel/records/page-cursor.ts";
import type { Scheduler } from "../../../kernel/time/scheduler.ts";
import { actorOf, type Principal } from "../../access/principal.ts";
import { requireAnyServiceKey } from "../../access/service-key-right.ts";
import type { RecordChange } from "../../db/index.ts";
import type { ScheduleView } from "../cron/schedules.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from "../limits.ts";
import type { QueueCore } from "../queue/core.ts";
import { type JobState, RUNNING } from "../types.ts";
import { auditedChange, type JobRecords, type JobRow, noSuchJob, wrongState } from "./records.ts";

export interface JobQuery {
  name?: string | undefined;
  state?: JobState | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

const ANY = "*";

/** Jobs for administrators. A key whose scopes do not name a job does not learn that it exists. */
export type JobsService = ReturnType<typeof createJobsService>;

export function createJobsService(deps: {
  core: QueueCore;
  records: JobRecords;
  schedules: { view(): ScheduleView[]; runNow(name: string): Promise<string> | null };
  /** Whether the config declares jobs of this name. */
  isDeclared: (name: string) => boolean;
  /** Adds a job of the config. Errors: 400 for data that its schema refuses; those of the queue. */
  enqueue: (name: string, data: JsonValue) => Promise<string>;
  /** Turns of lists, as each of them may take some milliseconds. */
  turns: Scheduler;
  /** Records in the audit log what the current caller has done to a running job, whose end shares a transaction with others. */
  audit: RecordChange;
}) {
  const { core, records, turns } = deps;

  const { may, readable, findWritable, writable } = jobRights(core, records);
  return {
    /** Lists jobs. Returns the page as JSON. Errors: 401, 403, 400 for a cursor that no page returned. */
    list(principal: Principal, query: () => JobQuery): MaybePromise<string> {
      const names = readable(principal);
      const { name, state = null, limit = LIST_LIMIT_DEFAULT, cursor } = query();
      if (name !== undefined && !may(principal, name, "read")) throw forbidden();
      const listing = {
        names: name === undefined ? names : [name],
        state,
        before: cursor === undefined ? null : decodeCursor(cursor, 1)[0],
        limit: Math.min(limit, LIST_LIMIT_MAX),
      };
      return turns.soon(() => {
        const { jobs, next } = records.list(listing);
        return `{"jobs":[${jobs.join(",")}],"cursor":${next === null ? "null" : JSON.stringify(encodeCursor(next))}}`;
      });
    },
    /** Returns the schedules whose jobs the key may read. Errors: 401, 403. */
    schedules(principal: Principal): ScheduleView[] {
      const names = readable(principal);
      return deps.schedules.view().filter(({ name }) => names === null || names.includes(name));
    },
    /** Runs a schedule at once. Returns the id of its job, or of the one that waits or runs. Errors: 401, 403, 404. */
    async runSchedule(principal: Principal, name: string, form: () => unknown): Promise<string> {
      requireAnyServiceKey(principal);
      if (!may(principal, name, "write")) throw forbidden();
      form();
      const id = await deps.schedules.runNow(name);
      if (id === null) throw new AppError(404, `There is no schedule ${name}`);
      await deps.audit(auditedChange("run-now", { name, id }));
      return id;
    },
    /**
     * Adds a job like this one with other data, and returns its id. `body` is called once the rights are known. Errors: 401, 403, 400
     * for data that the job's schema refuses, 404, 409 for a job that the config does not declare.
     */
    async runAgain(
      principal: Principal,
      id: string,
      body: () => MaybePromise<{ data?: JsonValue | undefined }>,
    ): Promise<string> {
      const row = findWritable(principal, id);
      const { data = null } = await body();
      if (row === null) throw noSuchJob(id);
      const { name } = row;
      if (!deps.isDeclared(name)) {
        throw conflict(
          `Only jobs that the config declares can be run with other data, and ${JSON.stringify(name)} is none`,
        );
      }
      const added = await deps.enqueue(name, data);
      await deps.audit({ ...auditedChange("run-again", { name, id: added }), after: { data, from: id } });
      return added;
    },
    /** Changes a job. `form` is called once the rights are known. Errors: 401, 403, 404, 409. */
    async change(
      principal: Principal,
      id: string,
      action: "retry" | "cancel" | "run-now",
      form: () => unknown,
    ): Promise<void> {
      const row = writable(principal, id, form);
      const by = actorOf(principal);
      if (action === "retry" && core.dispatcher.isUnderWay(row.seq)) throw stillRuns(id);
      if (action === "retry") return records.retry(row, by);
      if (action === "run-now") return records.runNow(row, by);
      if (row.state !== RUNNING) return records.cancelWaiting(row, by);
      // The job may have ended meanwhile, without having been recorded.
      if (!(await core.dispatcher.cancel(row.seq))) throw wrongState("cancelled", "waiting or running", row.state);
      await deps.audit(auditedChange(action, row));
    },
  };
}

/** Rights of keys to jobs, by their names. */
function jobRights(core: QueueCore, records: JobRecords) {
  const may = (principal: Principal, name: string, action: "read" | "write"): boolean =>
    principal.kind === "server" ||
    (principal.kind === "serviceKey" && principal.scopes.allows("jobs", ANY, name, action));
  const knownNames = (): string[] => {
    const stored =
      core
        .existing()
        ?.counts()
        .map(({ name }) => name) ?? [];
    return [...new Set([...stored, ...core.dispatcher.names])];
  };

  /** Returns the names that the key may read; null: all. Errors: 401; 403 if there are none. */
  const readable = (principal: Principal): string[] | null => {
    requireAnyServiceKey(principal);
    if (may(principal, ANY, "read")) return null;
    const names = knownNames().filter((name) => may(principal, name, "read"));
    if (names.length === 0) throw forbidden();
    return names;
  };
  /** Finds a job that the key may write; null: there is none. Errors: 401; 403 for a key that may write no job. */
  const findWritable = (principal: Principal, id: string): JobRow | null => {
    requireAnyServiceKey(principal);
    const row = records.find(id);
    const isAllowed = row !== null && may(principal, row.name, "write");
    const mayAny = isAllowed || may(principal, ANY, "write");
    if (!mayAny && !knownNames().some((name) => may(principal, name, "write"))) throw forbidden();
    return isAllowed ? row : null;
  };
  /** Finds a job that the key may write. Errors: those of `findWritable`; those of `form`; 404. */
  const writable = (principal: Principal, id: string, form: () => unknown): JobRow => {
    const row = findWritable(principal, id);
    form();
    if (row === null) throw noSuchJob(id);
    return row;
  };
  return { may, readable, findWritable, writable };
}

/** Returns the error for a job whose signal was aborted, but whose code still runs. */
const stillRuns = (id: string): AppError =>
  conflict(
    `The job ${JSON.stringify(id)} cannot be retried yet: its earlier run has not ended, although its signal was aborted`,
  );
