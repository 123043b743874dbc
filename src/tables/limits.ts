/** Bytes of JSON of one record where its table says nothing else. Decisions 4 (Sizes). */
export const RECORD_BYTES_MAX = 1024 * 1024;
/** Fields of a record that a request names: a table without a schema takes any, and each check goes through all of them. */
export const RECORD_FIELDS_MAX = 10_000;
/** Characters of a field that is indexed for full-text search and has no `max` of its own. */
export const INDEXED_TEXT_LENGTH_MAX = 100_000;
/** Characters of a search query, and words in it. Decisions 4. */
export const QUERY_LENGTH_MAX = 1_000;
export const QUERY_WORDS_MAX = 32;
/** Characters of a mark round what a search has found. */
export const MARK_LENGTH_MAX = 32;
/** Bytes of a page of search results as JSON, highlights included. */
export const SEARCH_PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** How long a search may run, and how long it may wait for its turn before that. */
export const SEARCH_TIMEOUT_MS = 10_000;
