/** Where a path leads is looked up again after this time: a link may have been set to another release. */
export const RESOLVED_MS = 1_000;
/** Paths whose place is remembered. */
export const RESOLVED_MAX = 10_000;
/** Characters of a path. */
export const PATH_LENGTH_MAX = 2_000;
