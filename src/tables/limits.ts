/** Characters of a search query, and words in it. Decisions 4. */
export const QUERY_LENGTH_MAX = 1_000;
export const QUERY_WORDS_MAX = 32;
/** Characters of a mark round what a search has found. */
export const MARK_LENGTH_MAX = 32;
/** Bytes of a page of search results as JSON, highlights included. */
export const SEARCH_PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** How long a search may run, and how long it may wait for its turn before that. */
export const SEARCH_TIMEOUT_MS = 10_000;
