import { systemClock } from "../../kernel/clock.ts";
import { SECOND_MS } from "../../kernel/duration.ts";
import { ROOM_BURST_MS, ROOM_MS_PER_SECOND } from "../limits.ts";
import type { LoopShare } from "./loop-share.ts";

/**
 * What one room costs: the time of its handlers, its deltas, its `sync` messages and its sends. A room that takes more
 * than ROOM_MS_PER_SECOND waits until it has earned the rest; other rooms go on.
 */
export class RoomMeter {
  readonly #share: LoopShare;
  readonly #after: (delayMs: number, work: () => void) => void;
  #leftMs = ROOM_BURST_MS;
  #at: number;
  #isMeasuring = false;

  /** `after` waits in the time that `share.now` measures. */
  constructor(share: LoopShare, after: (delayMs: number, work: () => void) => void = systemClock.after) {
    this.#share = share;
    this.#after = after;
    this.#at = share.now();
  }

  /** Charges the time that `work` takes until it returns; work inside other work is charged once. */
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

  /** Charges the room alone, for sends that are charged to their turn of the event loop when they go out. */
  bill(ms: number): void {
    this.#leftMs -= ms;
  }

  /** true: the room has to wait, and `resume` is called when it may try again. */
  defers(resume: () => void): boolean {
    const waitMs = this.#waitMs();
    if (waitMs > 0) this.#after(waitMs, resume);
    else if (!this.#share.hasTime) this.#share.wait(resume);
    else return false;
    return true;
  }

  /** Resolves when the room may go on. */
  async ready(): Promise<void> {
    for (let resume = Promise.withResolvers<void>(); this.defers(resume.resolve); resume = Promise.withResolvers()) {
      await resume.promise;
    }
  }

  /** Runs steps over several turns of the event loop, whatever the room has used up; charges their time. */
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
