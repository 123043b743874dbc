import { ROOMS_TURN_MS } from "../limits.ts";

/**
 * The part of one turn of the event loop that all rooms together take. Work that finds it used up waits for a later turn,
 * in order of arrival, so that many rooms hold up other requests no longer than one.
 */
export class LoopShare {
  readonly #schedule: (turn: () => void) => void;
  /** A clock that only measures. */
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
    this.#arm();
  }

  /** Calls `resume` once, in a later turn that has time. A function that waits already keeps its place. */
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
