import { systemClock } from "../clock.ts";

/** Counts answered requests. Background work leaves requests room while they keep coming. */
export class Foreground {
  #answered = 0;

  get answered(): number {
    return this.#answered;
  }

  readonly note = (): void => {
    this.#answered += 1;
  };
}

/**
 * Paces background work that runs in steps: no pause while no request comes, otherwise at least `pauseMs` between the starts of two
 * steps. Uses real time, also in tests: the pauses are for the event loop.
 */
export class Pacing {
  readonly #foreground: Foreground;
  readonly #pauseMs: number;
  #answered = 0;
  #steppedAt = Number.NEGATIVE_INFINITY;

  constructor(foreground: Foreground, pauseMs: number) {
    this.#foreground = foreground;
    this.#pauseMs = pauseMs;
  }

  /** Marks the beginning of a step. */
  step(): void {
    this.#answered = this.#foreground.answered;
    this.#steppedAt = performance.now();
  }

  /** Milliseconds until the next step may begin; 0: at once. */
  get leftMs(): number {
    if (this.#foreground.answered === this.#answered) return 0;
    return Math.max(0, this.#steppedAt + this.#pauseMs - performance.now());
  }

  /** Runs `work` when it is time for the next step. The returned function cancels it. */
  after(work: () => void): () => void {
    return systemClock.after(this.leftMs, work);
  }
}
