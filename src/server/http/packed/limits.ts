/** The time for which browsers cache files whose names contain a hash. */
export const IMMUTABLE_SECONDS = 31_536_000;
