import { AsyncLocalStorage } from "node:async_hooks";
import { isPromise } from "../maybe-promise.ts";
import { RequestSteps, type Said } from "./request-steps.ts";

/**
 * Phases that a request waits in. When several are active, the first in this order counts: a write that waits for a rule is
 * `rules`, and a read by a hook is `hooks`.
 */
export type Phase = "hooks" | "rules" | "database";

/** Milliseconds of each phase; `answer` is the rest. */
export interface PhaseTimes {
  rules: number;
  database: number;
  hooks: number;
  answer: number;
}

/** The client that asks, and the id of its request. */
export interface Requester {
  readonly requestId: string;
  /** The client's address. */
  readonly address: () => string;
}

/** The actor named in the audit log. */
export interface AuditActor {
  kind: "serviceKey" | "admin" | "user" | "anonymous";
  /** The name of the key, or the user's id; null for nobody. */
  name: string | null;
  /** Whom the actor acted as: a user's id, or `anonymous`. */
  as?: string;
}

/** Measurements of a request while it is handled. */
export class RequestTrace {
  readonly requester: Requester;
  /** Records that the request has read or changed. */
  rows = 0;
  /** Actor whose changes by this request are audited; null: none. */
  actor: AuditActor | null = null;
  readonly #startedAt: number;
  #steps: RequestSteps | null = null;
  /** Active work by phase; null: no phase has begun, as in most requests. */
  #active: Record<Phase, number> | null = null;
  #spent: number[] = [];
  #since = 0;

  constructor(requester: Requester, startedAt: number) {
    this.requester = requester;
    this.#startedAt = startedAt;
  }

  /** Steps of the request, for its story. */
  get steps(): RequestSteps {
    this.#steps ??= new RequestSteps(this.#startedAt);
    return this.#steps;
  }

  /** Whether a job is among the steps. */
  get hasJobs(): boolean {
    return this.#steps?.hasJobs === true;
  }

  enter(phase: Phase, at: number = performance.now()): void {
    this.#count(phase, 1, at);
  }

  leave(phase: Phase, at: number = performance.now()): void {
    this.#count(phase, -1, at);
  }

  /** Returns the time of each phase until `endedAt`, which is a time of `performance.now()`. */
  times(endedAt: number): PhaseTimes {
    const spent = [...this.#spent];
    const current = this.#current();
    if (current >= 0) spent[current] = (spent[current] ?? 0) + endedAt - this.#since;
    const [hooks = 0, rules = 0, database = 0] = spent;
    const answer = Math.max(0, endedAt - this.#startedAt - hooks - rules - database);
    return { rules: rounded(rules), database: rounded(database), hooks: rounded(hooks), answer: rounded(answer) };
  }

  #count(phase: Phase, by: 1 | -1, now: number): void {
    const current = this.#current();
    if (current >= 0) this.#spent[current] = (this.#spent[current] ?? 0) + now - this.#since;
    this.#since = now;
    this.#active ??= { hooks: 0, rules: 0, database: 0 };
    this.#active[phase] += by;
  }

  /** Returns the index of the phase that counts; -1: none. */
  #current(): number {
    if (this.#active === null) return -1;
    // Without a loop, since each rule and each write comes here.
    const { hooks, rules, database } = this.#active;
    return hooks > 0 ? 0 : rules > 0 ? 1 : database > 0 ? 2 : -1;
  }
}

const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;

/**
 * Holds the request in which code runs. It is ambient, because slow work lies far below the handler that has the request: a rule
 * evaluated by a write, a read that waits for a process.
 */
const traces = new AsyncLocalStorage<RequestTrace | undefined>();

/** Runs `work`, and everything it starts, in a request; undefined: in none. */
export const traced = <Args extends readonly unknown[], T>(
  trace: RequestTrace | undefined,
  work: (...args: Args) => T,
  ...args: Args
): T => traces.run(trace, work, ...args);

/** Returns the request in which the code runs; undefined outside of requests, as in jobs. */
export const currentTrace = (): RequestTrace | undefined => traces.getStore();

/** Counts the time of `work` in a phase until its promise settles. Returns that same promise. */
export function inPhase<T>(phase: Phase, work: () => T): T {
  const trace = traces.getStore();
  if (trace === undefined) return work();
  trace.enter(phase);
  let result: T;
  try {
    result = work();
  } catch (cause) {
    trace.leave(phase);
    throw cause;
  }
  if (isPromise(result)) leaveWith(trace, phase, result);
  else trace.leave(phase);
  return result;
}

/** Counts the time until `promise` settles, for work that is cheap while it is synchronous. */
export function awaiting<T>(phase: Phase, promise: Promise<T>): Promise<T> {
  const trace = traces.getStore();
  if (trace === undefined) return promise;
  trace.enter(phase);
  leaveWith(trace, phase, promise);
  return promise;
}

function leaveWith(trace: RequestTrace, phase: Phase, promise: PromiseLike<unknown>): void {
  const leave = (): void => trace.leave(phase);
  promise.then(leave, leave);
}

/** Counts records that the current request has read or changed. */
export function countRows(rows: number): void {
  const trace = traces.getStore();
  if (trace !== undefined) trace.rows += rows;
}

/** Returns the steps of the current request; null outside of requests, and where further ones are counted only. */
export function currentSteps(): RequestSteps | null {
  const steps = traces.getStore()?.steps;
  if (steps === undefined) return null;
  if (!steps.isFull) return steps;
  steps.further += 1;
  return null;
}

const saidBy = (answer: unknown): Said =>
  answer === true ? "allows" : typeof answer === "object" && answer !== null ? "filters" : "denies";

/** Call of a rule. `times`: the number of records. `hasAsked`: whether its answer does not count, as it has to see the record. */
interface Asking {
  times?: number;
  hasAsked?: () => boolean;
}

/** Calls a rule in its phase, and adds it to the steps of the request with what it has said. */
export const askRule = <T>(name: string, rule: () => T, { times = 1, hasAsked }: Asking = {}): T =>
  called({ kind: "rule", name, times }, rule, (answer) => (hasAsked?.() === true ? "asks" : saidBy(answer)));

/** Calls a hook in its phase, and adds it to the steps of the request. */
export const askHook = <T>(name: string, hook: () => T): T =>
  called({ kind: "hook", name, times: 1 }, hook, () => "runs");

function called<T>(
  call: { kind: "rule" | "hook"; name: string; times: number },
  work: () => T,
  saidOf: (answer: unknown) => Said,
): T {
  const trace = traces.getStore();
  if (trace === undefined) return work();
  const phase = call.kind === "rule" ? "rules" : "hooks";
  const startedAt = performance.now();
  trace.enter(phase, startedAt);
  const end = (said: Said): void => {
    const endedAt = performance.now();
    trace.leave(phase, endedAt);
    trace.steps.call({ ...call, said, startedAt, endedAt });
  };
  let answer: T;
  try {
    answer = work();
  } catch (cause) {
    end("fails");
    throw cause;
  }
  if (!isPromise(answer)) end(saidOf(answer));
  else
    answer.then(
      (settled) => end(saidOf(settled)),
      () => end("fails"),
    );
  return answer;
}
