/** Records whose references are read with one request. */
export const EXPANDED_AT_ONCE = 100;
/** Records of which it is known what they refer to: beyond it, those that have left the query are forgotten. */
export const KNOWN_MAX = 2_000;
