import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { TIMER_RETRY_MS } from "../limits.ts";
import type { RoomState } from "../state/room-state.ts";

/**
 * Calls `fire` for each timer of a room when it is due, once until `taken` is called for it. Where `fire` returns false, it is
 * called again later.
 */
export class RoomTimers {
  readonly #clock: Clock;
  readonly #fire: (name: string, dueAt: Millis) => boolean;
  /** Timers that were fired and whose task waits in the mailbox. */
  readonly #fired = new Map<string, Millis>();
  #cancel: (() => void) | null = null;

  constructor(clock: Clock, fire: (name: string, dueAt: Millis) => boolean) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** Call it whenever the state's timers have changed. */
  arm(state: RoomState): void {
    this.#cancel?.();
    this.#cancel = null;
    let nextAt = Number.POSITIVE_INFINITY;
    const due: [name: string, dueAt: Millis][] = [];
    for (const [name, { dueAt }] of state.timers) {
      if (this.#fired.get(name) === dueAt) continue;
      if (dueAt <= this.#clock.now()) due.push([name, dueAt]);
      else nextAt = Math.min(nextAt, dueAt);
    }
    if (nextAt < Number.POSITIVE_INFINITY) {
      this.#cancel = this.#clock.after(nextAt - this.#clock.now(), () => this.arm(state));
    }
    due.sort(([, one], [, other]) => one - other);
    for (const [name, dueAt] of due) {
      this.#fired.set(name, dueAt);
      if (this.#fire(name, dueAt)) continue;
      this.#fired.delete(name);
      this.#cancel?.();
      this.#cancel = this.#clock.after(TIMER_RETRY_MS, () => this.arm(state));
    }
  }

  /** The timer's task has started. */
  taken(name: string, dueAt: Millis): void {
    if (this.#fired.get(name) === dueAt) this.#fired.delete(name);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#fired.clear();
  }
}
