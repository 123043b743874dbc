import { TURN_MS } from "../limits.ts";
import { createTurnStart } from "./next-turn.ts";

/** One piece of long work that shares the event loop with others of its kind. */
export interface Pace {
  /** Whether the time that it shares with others in this turn is used up. */
  isDue(): boolean;
  /** Resolves when it may continue: one waiting piece of work per turn of the event loop. */
  next(): Promise<void>;
}

/** Called at the beginning of a piece of work. */
export type Paces = () => Pace;

/**
 * Splits long work that awaits results in between, such as those of rules, over several turns of the event loop: twenty such
 * pieces at once take no more of a turn than one.
 */
export function createPaces(now: () => number = performance.now.bind(performance)): Paces {
  const waiting: (() => void)[] = [];
  const startOfTurn = createTurnStart(now);
  const resumeOne = (): void => {
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(resumeOne);
  };
  return () => {
    let startedAt = startOfTurn();
    return {
      isDue: () => now() - startedAt >= TURN_MS,
      next: () =>
        new Promise((resolve) => {
          waiting.push(() => {
            startedAt = startOfTurn();
            resolve();
          });
          if (waiting.length === 1) setImmediate(resumeOne);
        }),
    };
  };
}
