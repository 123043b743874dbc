import type { Transaction } from "../../db/index.ts";
import { DONE, FAILED, RUNNING } from "../types.ts";

const ADD = `INSERT INTO job_counts (name, waiting, running, done, failed, failed_total) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
  ON CONFLICT (name) DO UPDATE SET waiting = waiting + ?2, running = running + ?3, done = done + ?4, failed = failed + ?5,
  failed_total = failed_total + ?6`;

interface Delta {
  waiting: number;
  running: number;
  done: number;
  failed: number;
  failedTotal: number;
}

/** The changes of one transaction to the counts, written once per name at its end. */
export class CountDeltas {
  readonly #byName = new Map<string, Delta>();

  /** Counts the move of a job from one state to another; null: it is new, or removed. */
  move(name: string, from: number | null, to: number | null): void {
    let delta = this.#byName.get(name);
    if (delta === undefined) {
      delta = { waiting: 0, running: 0, done: 0, failed: 0, failedTotal: 0 };
      this.#byName.set(name, delta);
    }
    if (from !== null) delta[memberOf(from)] -= 1;
    if (to !== null) delta[memberOf(to)] += 1;
    if (to === FAILED) delta.failedTotal += 1;
  }

  write(tx: Transaction): void {
    for (const [name, { waiting, running, done, failed, failedTotal }] of this.#byName) {
      tx.query(ADD).run(name, waiting, running, done, failed, failedTotal);
    }
  }
}

function memberOf(state: number): "waiting" | "running" | "done" | "failed" {
  if (state === RUNNING) return "running";
  if (state === DONE) return "done";
  return state === FAILED ? "failed" : "waiting";
}
