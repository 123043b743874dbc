/** Milliseconds since the Unix epoch. */
export type Millis = number;

/** Time is an argument: tests pass their own and run hours in milliseconds. */
export interface Clock {
  now(): Millis;
  /** Runs `work` once after `delayMs`, however long that is; the function returned cancels it. */
  after(delayMs: number, work: () => void): () => void;
}

/** What a timer of the runtime holds, 24.8 days: one that is to wait longer fires at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** `timerMaxMs` is for tests: longer delays are waited for in steps. */
export function createSystemClock(timerMaxMs: number = TIMER_MAX_MS): Clock {
  return {
    now: () => Date.now(),
    after(delayMs, work) {
      let leftMs = delayMs;
      const wait = (): ReturnType<typeof setTimeout> => {
        if (leftMs <= timerMaxMs) return setTimeout(work, leftMs);
        leftMs -= timerMaxMs;
        return setTimeout(() => {
          timer = wait();
        }, timerMaxMs);
      };
      let timer = wait();
      return () => clearTimeout(timer);
    },
  };
}

export const systemClock: Clock = createSystemClock();

/** Resolves after `delayMs`. */
export const pause = (clock: Clock, delayMs: number): Promise<void> =>
  new Promise((resolve) => clock.after(delayMs, resolve));
