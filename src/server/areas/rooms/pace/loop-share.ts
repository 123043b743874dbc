import { ROOMS_TURN_MS } from "../limits.ts";

/**
 * The time that all rooms together take in one turn of the event loop. Work beyond it waits for a later turn, in order of
 * arrival: many rooms delay other requests no more than one room does.
 */
export class LoopShare {
  readonly #schedule: (turn: () => void) => void;
  /** Milliseconds with fractions, to measure durations. */
  readonly now: () => number;
  readonly #waiting = new Set<() => void>();
  #leftMs = ROOMS_TURN_MS;
  #isArmed = false;

  /** `schedule` runs its argument in the next turn of the event loop. */
  constructor(
    schedule: (turn: () => void) => void = setImmediate,
    now: () => number = performance.now.bind(performance),
  ) {
    this.#schedule = schedule;
    this.now = now;
  }

  get hasTime(): boolean {
    return this.#leftMs > 0;
  }

  charge(ms: number): void {
    this.#leftMs -= ms;
    // Work of earlier turns may be counted in this one, which makes it shorter, but not longer. To count each turn by
    // itself would need a callback in each: with many short tasks that costs a tenth of their time.
    if (this.#leftMs < ROOMS_TURN_MS / 2) this.#arm();
  }

  /** Calls `resume` once, in a later turn that has time. A function that is waiting already keeps its place. */
  wait(resume: () => void): void {
    this.#waiting.add(resume);
    this.#arm();
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    this.#schedule(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isArmed = false;
    this.#leftMs = ROOMS_TURN_MS;
    for (const resume of this.#waiting) {
      this.#waiting.delete(resume);
      resume();
      if (!this.hasTime) break;
    }
    if (this.#waiting.size > 0) this.#arm();
  };
}
