import { TURN_MS } from "../limits.ts";

interface TurnBudgetOptions {
  /** Returns the time in milliseconds with fractions, to measure durations. Tests simulate it. */
  now?: (() => number) | undefined;
  /** Runs `work` in the next turn of the event loop. */
  nextTurn?: ((work: () => void) => void) | undefined;
}

/**
 * Bounds the time that many short pieces of work of one kind take together in one turn of the event loop. Whoever finds no time
 * waits for a later turn, in order of arrival. Unlike `Scheduler`, it counts what it is charged with, not the time that has passed.
 */
export class TurnBudget {
  readonly now: () => number;
  readonly #nextTurn: (work: () => void) => void;
  readonly #waiting = new Set<() => void>();
  #leftMs = TURN_MS;
  #isArmed = false;

  constructor({ now, nextTurn }: TurnBudgetOptions = {}) {
    this.now = now ?? (() => performance.now());
    this.#nextTurn = nextTurn ?? ((work) => void setImmediate(work));
  }

  get hasTime(): boolean {
    return this.#leftMs > 0;
  }

  charge(ms: number): void {
    this.#leftMs -= ms;
    // Work of earlier turns may be counted in this one, which makes it shorter, but not longer. Counting each turn by itself
    // would need a callback in each: with many short tasks that costs a tenth of their time.
    if (this.#leftMs <= TURN_MS / 2) this.#arm();
  }

  /** Calls `resume` once, in a later turn with time left. A function that is already waiting keeps its place. */
  wait(resume: () => void): void {
    this.#waiting.add(resume);
    this.#arm();
  }

  /** Resolves in a later turn; whoever was waiting longer may have used its time up. */
  next(): Promise<void> {
    return new Promise((resolve) => this.wait(resolve));
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    this.#nextTurn(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isArmed = false;
    this.#leftMs = TURN_MS;
    for (const resume of this.#waiting) {
      this.#waiting.delete(resume);
      resume();
      if (!this.hasTime) break;
    }
    if (this.#waiting.size > 0) this.#arm();
  };
}
