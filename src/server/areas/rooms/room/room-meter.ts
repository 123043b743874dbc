import { systemClock } from "../../../../kernel/clock.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { ROOM_BURST_MS, ROOM_MS_PER_SECOND, ROOMS_TURN_MS } from "../limits.ts";

/**
 * Bounds the time of all rooms together in one turn of the event loop. Work beyond it waits for a later turn, in order of
 * arrival: many rooms delay other requests no more than one room does.
 */
export class LoopShare {
  readonly #schedule: (turn: () => void) => void;
  /** Returns the time in milliseconds with fractions, to measure durations. */
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
    // Work of earlier turns may be counted in this one, which makes it shorter, but not longer. Counting each turn by itself
    // would need a callback in each: with many short tasks that costs a tenth of their time.
    if (this.#leftMs < ROOMS_TURN_MS / 2) this.#arm();
  }

  /** Calls `resume` once, in a later turn with time left. A function that is already waiting keeps its place. */
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

/**
 * Measures the time that one room takes: handlers, deltas, saves, `sync` messages and sends. A room that takes more than
 * ROOM_MS_PER_SECOND has to wait; other rooms do not.
 */
export class RoomMeter {
  readonly #share: LoopShare;
  readonly #after: (delayMs: number, work: () => void) => void;
  #leftMs = ROOM_BURST_MS;
  #at: number;
  #isMeasuring = false;

  /** `after` waits on the clock that `share.now` measures. */
  constructor(share: LoopShare, after: (delayMs: number, work: () => void) => void = systemClock.after) {
    this.#share = share;
    this.#after = after;
    this.#at = share.now();
  }

  /** Charges the time until `work` returns. Work inside other work is charged once. */
  measure<T>(work: () => T): T {
    if (this.#isMeasuring) return work();
    this.#isMeasuring = true;
    const startedAt = this.#share.now();
    try {
      return work();
    } finally {
      this.#isMeasuring = false;
      const ms = this.#share.now() - startedAt;
      this.#leftMs -= ms;
      this.#share.charge(ms);
    }
  }

  /** Charges the room only. Sends are charged to the turn of the event loop in which they happen. */
  bill(ms: number): void {
    this.#leftMs -= ms;
  }

  /** Whether the room may run at once. */
  get isFree(): boolean {
    return this.#leftMs > 0 && this.#share.hasTime;
  }

  /** Whether the room has to wait; if so, `resume` is called when it may try again. */
  defers(resume: () => void): boolean {
    const waitMs = this.#waitMs();
    if (waitMs > 0) this.#after(waitMs, resume);
    else if (!this.#share.hasTime) this.#share.wait(resume);
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
      while (!this.#share.hasTime) await new Promise<void>((resolve) => this.#share.wait(resolve));
      const step = this.measure(() => steps.next());
      if (step.done === true) return step.value;
    }
  }

  #waitMs(): number {
    if (this.#leftMs > 0) return 0;
    const now = this.#share.now();
    this.#leftMs = Math.min(ROOM_BURST_MS, this.#leftMs + ((now - this.#at) / SECOND_MS) * ROOM_MS_PER_SECOND);
    this.#at = now;
    return this.#leftMs > 0 ? 0 : Math.ceil(((1 - this.#leftMs) / ROOM_MS_PER_SECOND) * SECOND_MS);
  }
}
