/** Stories that are kept, and their bytes together: the newest ones. */
export const STORIES_MAX = 1_000;
export const STORIES_MAX_BYTES = 16 * 1024 * 1024;
/** Requests whose jobs are kept besides stories, and jobs of one request. */
export const ENQUEUING_MAX = 10_000;
export const ENQUEUED_MAX = 100;
/** Characters of a statement that are kept. */
export const SQL_LENGTH_MAX = 4_000;
/** Statements of one request whose plans are asked for: each takes some 50 µs. */
export const PLANS_PER_REQUEST_MAX = 20;
/** Plans that are remembered, by the text of their statement. */
export const PLANS_MAX = 500;
/** Milliseconds from which a statement counts as slow. */
export const SLOW_QUERY_MS = 10;
/** Slow statements that are kept, and requests that are named for each. */
export const SLOW_QUERIES_MAX = 200;
export const SLOW_QUERY_REQUESTS_MAX = 5;
/** Indexes that are tried for a statement. */
export const INDEX_CANDIDATES_MAX = 8;
/** Fields of an index that is proposed. */
export const INDEX_FIELDS_MAX = 3;
/** Characters of an id of a request. */
export const REQUEST_ID_LENGTH_MAX = 128;
export const LIST_LIMIT_DEFAULT = 100;
