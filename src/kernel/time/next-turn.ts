/** Yields to the event loop in the middle of long work. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
