import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { SAVE_RETRY_MS, TIMER_RETRY_MS } from "../limits.ts";
import type { RoomState } from "../state/room-state.ts";

/**
 * Calls `fire` for each timer of a room when it is due, once until `taken` is called for it. When `fire` returns false, it is
 * called again after TIMER_RETRY_MS.
 */
export class RoomTimers {
  readonly #clock: Clock;
  readonly #fire: (name: string, dueAt: Millis) => boolean;
  /** Fired timers whose task waits in the mailbox. */
  readonly #fired = new Map<string, Millis>();
  #cancel: (() => void) | null = null;

  constructor(clock: Clock, fire: (name: string, dueAt: Millis) => boolean) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** Schedules the next timer. Call it whenever the state's timers have changed. */
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

  /** Marks a fired timer as taken. Call it when its task has started. */
  taken(name: string, dueAt: Millis): void {
    if (this.#fired.get(name) === dueAt) this.#fired.delete(name);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#fired.clear();
  }
}

/** Saves a room one interval after its first unsaved change, and on demand. */
export class SaveSchedule {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #save: () => Promise<boolean>;
  #revision = 0;
  #savedRevision = 0;
  #running: Promise<boolean> | null = null;
  #cancel: (() => void) | null = null;

  /** `save` saves the current state and resolves to whether it succeeded. */
  constructor(options: { clock: Clock; intervalMs: number; save: () => Promise<boolean> }) {
    this.#clock = options.clock;
    this.#intervalMs = options.intervalMs;
    this.#save = options.save;
  }

  changed(): void {
    this.#revision++;
    this.#schedule(this.#intervalMs);
  }

  /** Saves all changes made so far. false: the save failed, and will be retried. */
  async flush(): Promise<boolean> {
    while (this.#running !== null) await this.#running;
    if (this.#savedRevision === this.#revision) return true;
    this.#running = this.#run();
    const isSaved = await this.#running;
    return isSaved;
  }

  /** Cancels the next scheduled save. A later change schedules another. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  async #run(): Promise<boolean> {
    this.stop();
    const revision = this.#revision;
    const isSaved = await this.#save();
    this.#running = null;
    if (isSaved) this.#savedRevision = revision;
    if (this.#savedRevision !== this.#revision) this.#schedule(isSaved ? this.#intervalMs : SAVE_RETRY_MS);
    return isSaved;
  }

  #schedule(delayMs: number): void {
    this.#cancel ??= this.#clock.after(delayMs, () => {
      this.#cancel = null;
      void this.flush();
    });
  }
}
