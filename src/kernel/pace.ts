/** How long one piece of work may go on before the event loop has its turn. */
const TURN_MS = 4;

/** One long piece of work that shares the event loop with others of its kind. */
export interface Pace {
  /** Whether it has gone on for long enough. */
  isDue(): boolean;
  /** Resolves when it may go on: of all that wait, one in a turn of the event loop. */
  next(): Promise<void>;
}

/** Called where such a piece begins. */
export type Paces = () => Pace;

/**
 * Long work that awaits answers in between, as rules give them, in pieces over several turns of the event loop: twenty of
 * them at once take no more of a turn than one.
 */
export function createPaces(now: () => number = performance.now.bind(performance)): Paces {
  const waiting: (() => void)[] = [];
  const resumeOne = (): void => {
    const resume = waiting.shift();
    if (waiting.length > 0) setImmediate(resumeOne);
    resume?.();
  };
  return () => {
    let startedAt = now();
    return {
      isDue: () => now() - startedAt >= TURN_MS,
      next: () =>
        new Promise((resolve) => {
          waiting.push(() => {
            startedAt = now();
            resolve();
          });
          if (waiting.length === 1) setImmediate(resumeOne);
        }),
    };
  };
}
