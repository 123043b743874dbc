/** Lets everything else that is due have its turn, in the middle of long work. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
