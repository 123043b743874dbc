/** The time before a path is resolved again: a link may point to another release. */
export const RESOLVED_MS = 1_000;
/** The maximum number of cached paths. */
export const RESOLVED_MAX = 10_000;
/** Characters of a path. */
export const PATH_LENGTH_MAX = 2_000;
