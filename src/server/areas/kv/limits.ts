/** Characters (code points) of a key; at least one. */
export const KEY_LENGTH_MAX = 512;
/** Characters of a cursor: a key of the longest kind, four bytes a character, as base64url. */
export const CURSOR_LENGTH_MAX = Math.ceil((KEY_LENGTH_MAX * 4 * 4) / 3);
/** Bytes of a value as JSON. */
export const VALUE_MAX_BYTES = 1024 * 1024;
/** A body: the largest value with its key, escapes and white space included. */
export const BODY_MAX_BYTES = 4 * 1024 * 1024;
/** Keys of a page: by default, and at most. */
export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1000;
/** A list looks past so many expired keys, not yet swept, at once; beyond, another process reads it. */
export const LISTED_PAST_EXPIRED_MAX = 1000;
/** A hundred years: a longer time to live is a mistake; timestamps have room for far more. */
export const TTL_MAX_SECONDS = 100 * 365 * 24 * 3600;
/** Time between sweeps of expired keys. An expired key is invisible at once; a sweep only frees its space. */
export const SWEEP_INTERVAL_MS = 5_000;
/** Pause between two steps of a sweep, in which requests are served. */
export const SWEEP_PAUSE_MS = 20;
/** Expired keys that one step of a sweep removes, and the bytes of their values after which it ends. */
export const SWEEP_STEP_KEYS = 500;
export const SWEEP_STEP_BYTES = 4 * 1024 * 1024;
/** Page cache of a namespace's file. */
export const CACHE_KIB = 4096;
