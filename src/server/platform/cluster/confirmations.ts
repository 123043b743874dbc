import type { Clock } from "../../../kernel/clock.ts";

/** The interval of looks whether all nodes have applied what took a right away, and their number: one that hangs is waited for without haste. */
const LOOK_MS = 5;
const LOOKS_MAX = 60;

export interface ConfirmationsOptions {
  clock: Pick<Clock, "after">;
  /** Asks all followers to tell PostgreSQL as soon as they show this position. */
  ask(position: number): void;
  /** Asks PostgreSQL at once what nodes have told it. */
  look(): void;
  /** Whether a revocation waits. */
  isWaiting(): boolean;
}

/** Haste where somebody waits until no node uses a right any more: nodes would tell of themselves every two seconds. [CLU47] */
export class Confirmations {
  readonly #options: ConfirmationsOptions;
  #looksLeft = 0;

  constructor(options: ConfirmationsOptions) {
    this.#options = options;
  }

  hasten(position: number): void {
    this.#options.ask(position);
    const isLooking = this.#looksLeft > 0;
    this.#looksLeft = LOOKS_MAX;
    if (!isLooking) this.#lookLater();
  }

  #lookLater(): void {
    const { clock, look, isWaiting } = this.#options;
    clock.after(LOOK_MS, () => {
      this.#looksLeft = isWaiting() ? this.#looksLeft - 1 : 0;
      if (this.#looksLeft === 0) return;
      look();
      this.#lookLater();
    });
  }
}
