import type { Millis } from "../../../kernel/clock.ts";

/** A wait until the log has everything up to a position. */
export interface Wait {
  readonly position: number;
  /** Time of the monotonic clock at which it began. */
  readonly sinceMs: Millis;
  /** Called once. null: it is over. */
  ended(error: unknown): void;
  /** Called once, when it has waited for too long. Returns whether it goes on waiting. */
  late(): boolean;
}

/** Waits in the order in which they began, and so in that of their positions. */
export class Waits {
  #waits: Wait[] = [];
  /** Number of the first ones that have been told that they are late. */
  #lateCount = 0;

  get isEmpty(): boolean {
    return this.#waits.length === 0;
  }

  /** Whether something has waited for too long. */
  get isLate(): boolean {
    return this.#lateCount > 0;
  }

  add(wait: Wait): void {
    this.#waits.push(wait);
  }

  /** Ends those whose position has been reached. */
  settle(isReached: (position: number, sinceMs: Millis) => boolean): void {
    let count = 0;
    for (const { position, sinceMs } of this.#waits) {
      if (!isReached(position, sinceMs)) break;
      count += 1;
    }
    if (count === 0) return;
    this.#lateCount = Math.max(0, this.#lateCount - count);
    for (const { ended } of this.#waits.splice(0, count)) ended(null);
  }

  /** Tells those that began before this time that they are late. */
  remind(beforeMs: Millis): void {
    const first = this.#waits[this.#lateCount];
    if (first === undefined || first.sinceMs >= beforeMs) return;
    const late = this.#waits.slice(this.#lateCount).filter(({ sinceMs }) => sinceMs < beforeMs);
    const over = new Set(late.filter((wait) => !wait.late()));
    this.#waits = this.#waits.filter((wait) => !over.has(wait));
    this.#lateCount += late.length - over.size;
  }

  /** Ends all of them with an error. */
  fail(error: unknown): void {
    this.#lateCount = 0;
    for (const { ended } of this.#waits.splice(0)) ended(error);
  }
}
