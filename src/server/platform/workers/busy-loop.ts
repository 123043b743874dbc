import { readFileSync } from "node:fs";
import type { Millis } from "../../../kernel/clock.ts";
import { BUSY_MS } from "./limits.ts";

/** Finds the share of the last BUSY_MS for which a thread has run. Times are arguments. */
export class BusyLoop {
  readonly #looks: { at: Millis; busyMs: number }[] = [];

  /** Notes the processor time of the thread until now. Returns the share; null: it has not been watched for BUSY_MS. */
  look(at: Millis, busyMs: number): number | null {
    this.#looks.push({ at, busyMs });
    // The first look that is kept is the last one that is at least BUSY_MS old.
    while (this.#looks.length > 1 && at - (this.#looks[1]?.at ?? at) >= BUSY_MS) this.#looks.shift();
    const first = this.#looks[0];
    return first === undefined || at - first.at < BUSY_MS ? null : (busyMs - first.busyMs) / (at - first.at);
  }

  /** Begins anew: what was before does not count any more. */
  restart(): void {
    this.#looks.length = 0;
  }
}

const NANOSECONDS_PER_MS = 1_000_000;
const MICROSECONDS_PER_MS = 1000;

/**
 * Returns the time for which this thread has run since its start, and has waited for a processor; of the latter no more than it has
 * run, so that a machine that is busy with something else does not make it busy.
 */
export function busyMs(): number {
  try {
    const [ran = 0, waited = 0] = readFileSync("/proc/thread-self/schedstat", "utf8").split(" ").map(Number);
    return (ran + Math.min(ran, waited)) / NANOSECONDS_PER_MS;
  } catch {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / MICROSECONDS_PER_MS;
  }
}
