/** Characters (code points) of a key; at least one. Decisions 8. */
export const KEY_LENGTH_MAX = 512;
/** Bytes of a value as JSON. Decisions 8. */
export const VALUE_MAX_BYTES = 1024 * 1024;
/** A body: the largest value with its key, escapes and white space included. */
export const BODY_MAX_BYTES = 4 * 1024 * 1024;
/** Keys of a page where the request says nothing, and at most. Decisions 8. */
export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1000;
/** A hundred years: beyond it a time to live is a slip, and far from what a timestamp can hold. */
export const TTL_MAX_SECONDS = 100 * 365 * 24 * 3600;
/** How often expired keys are looked for. They are unseen from the moment they expire; this only frees their room. */
export const SWEEP_INTERVAL_MS = 5_000;
/** The pause between two steps of one sweep, so that requests come in between. */
export const SWEEP_PAUSE_MS = 20;
/** Expired keys that one step removes. */
export const SWEEP_STEP_KEYS = 500;
/** Page cache of a namespace's file. */
export const CACHE_KIB = 4096;
