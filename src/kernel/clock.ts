import { TIMER_MAX_MS } from "./limits.ts";
/** Milliseconds since the Unix epoch. */
export type Millis = number;

/** Source of time. It is an argument, so that tests can simulate hours in milliseconds. */
export interface Clock {
  now(): Millis;
  /** Runs `work` once after `delayMs`, which may be any length. The returned function cancels it. */
  after(delayMs: number, work: () => void): () => void;
}

/** Returns the clock of the system. Delays longer than `timerMaxMs` run as several timers; tests pass a small one. */
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
