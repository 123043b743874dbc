import type { Clock } from "../../kernel/clock.ts";
import { SAVE_RETRY_MS } from "../limits.ts";

/** When a room is saved: one interval after its first unsaved change, and whenever it is asked for. */
export class SaveSchedule {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #save: () => Promise<boolean>;
  #revision = 0;
  #savedRevision = 0;
  #running: Promise<boolean> | null = null;
  #cancel: (() => void) | null = null;

  /** `save` saves what there is at its call, and says whether it worked. */
  constructor(options: { clock: Clock; intervalMs: number; save: () => Promise<boolean> }) {
    this.#clock = options.clock;
    this.#intervalMs = options.intervalMs;
    this.#save = options.save;
  }

  changed(): void {
    this.#revision++;
    this.#schedule(this.#intervalMs);
  }

  /** Saves everything up to now; false when that failed, and it will be tried again. */
  async flush(): Promise<boolean> {
    while (this.#running !== null) await this.#running;
    if (this.#savedRevision === this.#revision) return true;
    this.#running = this.#run();
    const isSaved = await this.#running;
    return isSaved;
  }

  /** Nothing is saved by itself any more, until the next change. */
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
