/** A handler has put the player out of the room. */
export const CLOSE_KICKED = 4001;

/** Closed by a client that meant it: 1000, 1001, or 1005, which stands for a close without a code. */
export const isCleanClose = (code: number): boolean => code === 1000 || code === 1001 || code === 1005;
