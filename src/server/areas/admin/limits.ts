/** A session ends this long after its sign-in, and this long after its last use. */
export const SESSION_TTL_MS = 12 * 60 * 60 * 1000;
export const SESSION_IDLE_MS = 60 * 60 * 1000;
/** Sessions of one service key at once. One more ends the one of this key that was used longest ago. */
export const SESSIONS_OF_KEY_MAX = 100;
/** Time between two writes of when a session was last used: a request costs none. */
export const USE_SAVED_EVERY_MS = 60 * 1000;
/** Bytes of a session's token. */
export const TOKEN_BYTES = 32;
/** Characters of a Cookie header that is looked at; browsers send less. */
export const COOKIES_LENGTH_MAX = 16 * 1024;
/** Wrong keys and codes of one client network. */
export const SIGN_IN_FAILURES = { requests: 5, window: 60 } as const;
/** How long a ticket for a socket counts, and how many of one service key wait to be used. One more ends the oldest. */
export const TICKET_TTL_MS = 30 * 1000;
export const TICKETS_OF_KEY_MAX = 100;
/** How long a link signs in, once. */
export const LINK_TTL_MS = 10 * 60 * 1000;
/** Links that wait to be used. One more ends the oldest. */
export const LINKS_MAX = 100;
/** Bytes of a link's code. */
export const CODE_BYTES = 24;
