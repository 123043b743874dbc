import { BoundedMap } from "../../../kernel/bounded-map.ts";
import { CAUSES_MAX, RUNS_PER_CAUSE_MAX } from "./limits.ts";

/** Thrown when a cause has triggered as many runs as it may. */
export class CauseExhausted extends Error {
  override readonly name = "CauseExhausted";
}

/**
 * Counts the runs that each cause triggers, directly or by further triggers: two writes in each run are endless long before they
 * are deep.
 */
export class Causes {
  readonly #counts = new BoundedMap<string, { runs: number }>(CAUSES_MAX);

  /** Counts further runs. Errors: CauseExhausted, and none of them is triggered. */
  count(root: string, runs: number): void {
    const counted = this.#counts.get(root) ?? { runs: 0 };
    if (counted.runs + runs > RUNS_PER_CAUSE_MAX) throw new CauseExhausted(EXHAUSTED);
    counted.runs += runs;
    this.#counts.set(root, counted);
  }
}

const EXHAUSTED = `One cause has set off ${RUNS_PER_CAUSE_MAX} runs of triggers by way of others: this looks endless. For more work, enqueue jobs`;
