/** Lifetime of a session after its sign-in, and after its last use. */
export const SESSION_TTL_MS = 12 * 60 * 60 * 1000;
export const SESSION_IDLE_MS = 60 * 60 * 1000;
/** Concurrent sessions of one service key. A further one ends the key's least recently used session. */
export const SESSIONS_OF_KEY_MAX = 100;
/** Time between two writes of a session's last use, so that not every request costs one. */
export const USE_SAVED_EVERY_MS = 60 * 1000;
/** Bytes of a session's token. */
export const TOKEN_BYTES = 32;
/** Characters of a Cookie header; longer ones are ignored. Browsers send less. */
export const COOKIES_LENGTH_MAX = 16 * 1024;
/** Rate limit of wrong keys and codes from one client network; `window` in seconds. */
export const SIGN_IN_FAILURES = { requests: 5, window: 60 } as const;
/** Lifetime of a ticket for a socket, and unused tickets of one service key. A further one invalidates the oldest. */
export const TICKET_TTL_MS = 30 * 1000;
export const TICKETS_OF_KEY_MAX = 100;
/** Lifetime of a sign-in link, which works once. */
export const LINK_TTL_MS = 10 * 60 * 1000;
/** Unused links. A further one invalidates the oldest. */
export const LINKS_MAX = 100;
/** Bytes of a link's code. */
export const CODE_BYTES = 24;
