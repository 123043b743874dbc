/** Records whose references are read with one request. */
export const EXPANDED_AT_ONCE = 100;
