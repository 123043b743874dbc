/** Spec: States / Room connection; decisions 9. */
export const CLOSE_GOING_AWAY = 1001;
export const CLOSE_TRY_LATER = 1013;
export const CLOSE_PROTOCOL = 4000;
export const CLOSE_KICKED = 4001;
export const CLOSE_SESSION_REVOKED = 4003;

/** Closed by a client that meant it: 1000, 1001, or 1005, which stands for a close without a code. */
export const isCleanClose = (code: number): boolean => code === 1000 || code === 1001 || code === 1005;
