import { systemClock } from "../clock.ts";

/** How many requests have been answered. Work in the background leaves them room where they keep coming. */
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
 * The pauses of work in the background that goes in steps: none while no request comes, otherwise at least `pauseMs` from the beginning
 * of one step to that of the next. In real time, also in tests: they are for the event loop.
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

  /** Call at the beginning of a step. */
  step(): void {
    this.#answered = this.#foreground.answered;
    this.#steppedAt = performance.now();
  }

  /** Milliseconds until the next step; 0: at once. */
  get leftMs(): number {
    if (this.#foreground.answered === this.#answered) return 0;
    return Math.max(0, this.#steppedAt + this.#pauseMs - performance.now());
  }

  /** Runs `work` when it is time for the next step. The returned function cancels it. */
  after(work: () => void): () => void {
    return systemClock.after(this.leftMs, work);
  }
}
