/** Characters (code points) of a key; at least one. */
export const KEY_LENGTH_MAX = 512;
/** Characters of a cursor: the longest key, at four bytes a character, as base64url. */
export const CURSOR_LENGTH_MAX = Math.ceil((KEY_LENGTH_MAX * 4 * 4) / 3);
/** Bytes of a value as JSON. */
export const VALUE_MAX_BYTES = 1024 * 1024;
/** Bytes of a request body: the largest value with its key, escapes and white space included. */
export const BODY_MAX_BYTES = 4 * 1024 * 1024;
/** Keys per page: the default and the maximum. */
export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1000;
/** Expired, unswept keys up to which the server's process reads a list itself; with more, a query process reads it. */
export const LISTED_PAST_EXPIRED_MAX = 1000;
/** Longest time to live, a hundred years: a longer one is a mistake; timestamps have room for far more. */
export const TTL_MAX_SECONDS = 100 * 365 * 24 * 3600;
/** Time between sweeps of expired keys. An expired key is invisible at once; a sweep only frees its space. */
export const SWEEP_INTERVAL_MS = 5_000;
/** Pause between two steps of a sweep, so that requests are handled in between. */
export const SWEEP_PAUSE_MS = 20;
/** Expired keys that one step of a sweep removes, and the bytes of their values after which it ends. */
export const SWEEP_STEP_KEYS = 500;
export const SWEEP_STEP_BYTES = 4 * 1024 * 1024;
/** KiB of the page cache of a namespace's file. */
export const CACHE_KIB = 4096;
