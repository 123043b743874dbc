import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import { RUNS_KEPT_MAX } from "../limits.ts";

/** A backup that is made, or verified, by this process. */
export interface Run {
  readonly id: string;
  readonly action: "create" | "verify";
  /** The backup; null: it has no name yet. */
  name: string | null;
  state: "waiting" | "running" | "done" | "failed";
  startedAt: Millis | null;
  endedAt: Millis | null;
  /** Why it has failed. */
  error: string | null;
  found: Found | null;
}

/** What a backup contains. */
export interface Found {
  fileCount: number;
  contentBytes: number;
  /** null: it was not verified. */
  databaseCount: number | null;
}

/** The newest runs, in memory. */
export class Runs {
  readonly #clock: Clock;
  readonly #runs = new Map<string, Run>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Newest first. */
  get all(): Run[] {
    return [...this.#runs.values()].reverse();
  }

  get isRunning(): boolean {
    return this.all.some(({ state }) => state === "running");
  }

  get(id: string): Run | null {
    return this.#runs.get(id) ?? null;
  }

  add(id: string, action: Run["action"], name: string | null = null): Run {
    const run: Run = { id, action, name, state: "waiting", startedAt: null, endedAt: null, error: null, found: null };
    this.#runs.set(id, run);
    // Only the newest can be unfinished, as one runs at a time.
    for (const old of [...this.#runs.keys()].slice(0, -RUNS_KEPT_MAX)) this.#runs.delete(old);
    return run;
  }

  /** Those that waited for a job which is no more. */
  endWaiting(): void {
    for (const run of this.#runs.values()) {
      if (run.state === "waiting") Object.assign(run, { state: "failed", error: "The job was cancelled" });
    }
  }

  /** Follows `work`, and gives its result. Errors: those of `work`. */
  async follow<Result extends { fileCount: number; contentBytes: number }>(
    run: Run,
    work: () => Promise<Result & { name?: string; databaseCount?: number }>,
  ): Promise<Result> {
    Object.assign(run, { state: "running", startedAt: this.#clock.now(), endedAt: null, error: null });
    try {
      const result = await work();
      const { fileCount, contentBytes, databaseCount = null, name = run.name } = result;
      Object.assign(run, { state: "done", name, found: { fileCount, contentBytes, databaseCount } });
      return result;
    } catch (cause) {
      run.state = "failed";
      run.error = reasonOf(cause);
      throw cause;
    } finally {
      run.endedAt = this.#clock.now();
    }
  }
}
