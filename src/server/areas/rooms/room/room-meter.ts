import { systemClock } from "../../../../kernel/clock.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { TurnBudget } from "../../../../kernel/time/turn-budget.ts";
import { ROOM_BURST_MS, ROOM_MS_PER_SECOND } from "../limits.ts";

/**
 * Measures the time that one room takes: handlers, deltas, saves, `sync` messages and sends. A room that takes more than
 * ROOM_MS_PER_SECOND has to wait; other rooms do not.
 */
export class RoomMeter {
  readonly #turn: TurnBudget;
  readonly #after: (delayMs: number, work: () => void) => void;
  #leftMs = ROOM_BURST_MS;
  #at: number;
  #isMeasuring = false;

  /** `after` waits on the clock that `turn.now` measures. */
  constructor(turn: TurnBudget, after: (delayMs: number, work: () => void) => void = systemClock.after) {
    this.#turn = turn;
    this.#after = after;
    this.#at = turn.now();
  }

  /** Charges the time until `work` returns. Work inside other work is charged once. */
  measure<T>(work: () => T): T {
    if (this.#isMeasuring) return work();
    this.#isMeasuring = true;
    const startedAt = this.#turn.now();
    try {
      return work();
    } finally {
      this.#isMeasuring = false;
      const ms = this.#turn.now() - startedAt;
      this.#leftMs -= ms;
      this.#turn.charge(ms);
    }
  }

  /** Charges the room only. Sends are charged to the turn of the event loop in which they happen. */
  bill(ms: number): void {
    this.#leftMs -= ms;
  }

  /** Whether the room may run at once. */
  get isFree(): boolean {
    return this.#leftMs > 0 && this.#turn.hasTime;
  }

  /** Whether the room has to wait; if so, `resume` is called when it may try again. */
  defers(resume: () => void): boolean {
    const waitMs = this.#waitMs();
    if (waitMs > 0) this.#after(waitMs, resume);
    else if (!this.#turn.hasTime) this.#turn.wait(resume);
    else return false;
    return true;
  }

  /** Resolves when the room may run. */
  async ready(): Promise<void> {
    for (let resume = Promise.withResolvers<void>(); this.defers(resume.resolve); resume = Promise.withResolvers()) {
      await resume.promise;
    }
  }

  /** Runs steps over several turns of the event loop and charges their time. Does not wait for the room's own share. */
  async run<T>(steps: Generator<void, T>): Promise<T> {
    for (;;) {
      while (!this.#turn.hasTime) await this.#turn.next();
      const step = this.measure(() => steps.next());
      if (step.done === true) return step.value;
    }
  }

  #waitMs(): number {
    if (this.#leftMs > 0) return 0;
    const now = this.#turn.now();
    this.#leftMs = Math.min(ROOM_BURST_MS, this.#leftMs + ((now - this.#at) / SECOND_MS) * ROOM_MS_PER_SECOND);
    this.#at = now;
    return this.#leftMs > 0 ? 0 : Math.ceil(((1 - this.#leftMs) / ROOM_MS_PER_SECOND) * SECOND_MS);
  }
}
