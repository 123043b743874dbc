/** Milliseconds since the Unix epoch. */
export type Millis = number;

/** Time is an argument: tests pass their own and run hours in milliseconds. */
export interface Clock {
  now(): Millis;
  /** Runs `work` once after `delayMs`; the function returned cancels it. */
  after(delayMs: number, work: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delayMs`. */
export const pause = (clock: Clock, delayMs: number): Promise<void> =>
  new Promise((resolve) => clock.after(delayMs, resolve));
