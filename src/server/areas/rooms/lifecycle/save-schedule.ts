import type { Clock } from "../../../../kernel/clock.ts";
import { SAVE_RETRY_MS } from "../limits.ts";

/** Saves a room one interval after its first unsaved change, and on demand. */
export class SaveSchedule {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #save: () => Promise<boolean>;
  #revision = 0;
  #savedRevision = 0;
  #running: Promise<boolean> | null = null;
  #cancel: (() => void) | null = null;

  /** `save` saves the state as it is at the call, and resolves to whether it succeeded. */
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
