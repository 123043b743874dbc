/** How long the first `sync` may take. */
export const JOIN_TIMEOUT_MS = 15_000;

/** How long an action waits for the connection. */
export const WAIT_MS = 10_000;

/** Actions that wait for the connection. */
export const WAITING_MAX = 100;
