/** Time between the last key in a search and its request. */
export const SEARCH_DELAY_MS = 150;
