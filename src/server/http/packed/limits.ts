/** How long browsers keep files whose names have a hash. */
export const IMMUTABLE_SECONDS = 31_536_000;
