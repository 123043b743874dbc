import type { Database } from "bun:sqlite";

/** Steps that are kept of one request; further ones are counted. */
export const STEPS_MAX = 300;
/** Changed records that are kept of one write; further ones are counted. */
export const STEP_CHANGES_MAX = 20;

/** A statement. `file`: its connection, which tells its plan while it is open; null: somebody has written it as SQL. */
export interface QueryStep {
  kind: "query";
  /** Milliseconds from the start of the request, and those that it took, waiting included. */
  at: number;
  ms: number;
  sql: string;
  path: string;
  file: Database | null;
  /** Whether it ran in another process. */
  isElsewhere: boolean;
}

/** Answer of a rule or hook. `asks`: the rule has to see the record first. */
export type Said = "allows" | "denies" | "filters" | "asks" | "fails" | "runs";

/** A rule or a hook. `times`: how often it was called in a row; `ms` are those of all. */
interface CallStep {
  kind: "rule" | "hook";
  at: number;
  ms: number;
  name: string;
  said: Said;
  times: number;
}

/** Records that a write has changed. */
interface WriteStep {
  kind: "write";
  at: number;
  path: string;
  changes: { table: string; id: string; action: "insert" | "update" | "delete" }[];
  /** All changes, also those that `changes` leaves out. */
  count: number;
}

/** A job that was enqueued: by a trigger, a webhook, a mail or code. */
interface JobStep {
  kind: "job";
  at: number;
  name: string;
  id: string;
}

export type RequestStep = QueryStep | CallStep | WriteStep | JobStep;

/** A record that a write has changed. */
interface Changed {
  table: string;
  id: string;
  before: unknown;
  after: unknown;
}

/**
 * Collects the steps of a request, in the order of time. They have no values: statements without what is bound to them, records by their ids.
 * Bounded by STEPS_MAX.
 */
export class RequestSteps {
  readonly list: RequestStep[] = [];
  /** Steps that are not in the list. */
  further = 0;
  /** Whether a job is among the steps. */
  hasJobs = false;
  readonly #startedAt: number;

  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }

  /** Whether further steps are counted only. */
  get isFull(): boolean {
    return this.list.length >= STEPS_MAX;
  }

  /** Adds a statement that has begun at `startedAt`, a time of `performance.now()`, and ends now. */
  query(startedAt: number, { sql, path, file, isElsewhere }: Pick<QueryStep, "sql" | "path" | "file" | "isElsewhere">) {
    const ms = performance.now() - startedAt;
    this.#add({ kind: "query", at: startedAt - this.#startedAt, ms, sql, path, file, isElsewhere });
  }

  /** Adds a rule or hook, with times of `performance.now()`. Calls in a row with the same result are one step. */
  call({
    kind,
    name,
    said,
    times,
    startedAt,
    endedAt,
  }: Omit<CallStep, "at" | "ms"> & Record<"startedAt" | "endedAt", number>) {
    const ms = endedAt - startedAt;
    const last = this.list.at(-1);
    if (last?.kind === kind && last.name === name && last.said === said) {
      last.times += times;
      last.ms += ms;
    } else this.#add({ kind, at: startedAt - this.#startedAt, ms, name, said, times });
  }

  /** Adds what a write has changed. */
  write(path: string, changes: readonly Changed[]): void {
    this.#add({
      kind: "write",
      at: performance.now() - this.#startedAt,
      path,
      changes: changes.slice(0, STEP_CHANGES_MAX).map(({ table, id, before, after }) => {
        const action = before === null ? "insert" : after === null ? "delete" : "update";
        return { table, id, action };
      }),
      count: changes.length,
    });
  }

  job(name: string, id: string): void {
    this.hasJobs = true;
    this.#add({ kind: "job", at: performance.now() - this.#startedAt, name, id });
  }

  #add(step: RequestStep): void {
    if (this.isFull) this.further += 1;
    else this.list.push(step);
  }
}
