/** Yields to the event loop in the middle of long work. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Gives the time of its first call in this turn of the event loop: pieces of work that ask it share the time of a turn. */
export function createTurnStart(now: () => number): () => number {
  let startedAt: number | null = null;
  return () => {
    if (startedAt === null) {
      startedAt = now();
      setImmediate(() => {
        startedAt = null;
      });
    }
    return startedAt;
  };
}
