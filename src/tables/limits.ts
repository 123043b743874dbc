/** Bytes of JSON of one record where its table says nothing else. Decisions 4 (Sizes). */
export const RECORD_BYTES_MAX = 1024 * 1024;
/**
 * What the stored records that one request changes or deletes hold together, the last of them not counted: reading and writing
 * a MiB holds the event loop for up to ten milliseconds, and a request of a few bytes can name 500 records of 1 MiB.
 */
export const STORED_BYTES_MAX = 4 * 1024 * 1024;
/** What a batch answers from which on it is sent in pieces, over several turns of the event loop. */
export const LARGE_ANSWER_BYTES = 128 * 1024;
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
