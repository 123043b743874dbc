/** Requests to `read-job.ts`, and its answers. */

import type { SentValues } from "../processes/sent-values.ts";

/** A value that a statement binds. */
export type SqlValue = string | number | bigint | boolean | null | Uint8Array;

/** Marks to make in the rows of a search. */
export type HighlightRequest = {
  /** Indexes of the texts in a row. */
  columns: readonly number[];
  pre: string;
  post: string;
  /** Whether the text round the marks is escaped for HTML. */
  isEscaped: boolean;
} & (
  | {
      by: "words";
      /** FTS5's name of the tokenizer, with its arguments. */
      tokenize: string;
      /** FTS5 query that matches any of the words. */
      query: string;
    }
  | { by: "substrings"; terms: readonly string[] }
);

export interface QueryRequest {
  op: "query";
  path: string;
  /** Path of the library whose functions the statement needs; null: none. */
  library: string | null;
  sql: string;
  params: SentValues<SqlValue>;
  /** Bounds of a page; null: all rows, or an error when they are too large. */
  page: PageBounds | null;
  /** Marks appended to the rows of a page; null: none. */
  highlight: HighlightRequest | null;
  /** Order by relevance; null: that of the statement. */
  rank: RankRequest | null;
}

/** A statement with its values. */
export interface SentStatement {
  sql: string;
  params: SentValues<SqlValue>;
}

/**
 * Order of a page by relevance, which is computed from what these statements find, and from nothing else. The statement of the query
 * finds the ranked records of the page, in the order of their rowids in a JSON array: it binds the number of all matches, which is
 * its first column, and that array.
 */
export interface RankRequest {
  /** Finds the number of all matches, the rowid and the texts of each record to rank, in the order of equal scores. */
  candidates: SentStatement;
  /** Each finds the places of words, and how many records have these: `recordsMax` at most. None of a single word. */
  counts: readonly SentStatement[];
  words: RankedWords;
  /** Maximum number of candidates. */
  recordsMax: number;
  offset: number;
  limit: number;
  /** Finds the rows of the page that follow the ranked ones; null: none. */
  others: SentStatement | null;
}

/** Words of a search, as FTS5 queries or as substrings. */
export type RankedWords =
  | { by: "words"; tokenize: string; queries: readonly string[] }
  | { by: "substrings"; terms: readonly string[] };

/** Name of the SQL function `name(text, unit, zone)`, which exists in the processes only: see `bucketLabel`. */
export const BUCKET_FUNCTION = "_platform_bucket";

/** Bounds of a result, which ends before the row that would exceed them; the first row is always in it. */
export interface PageBounds {
  /** Size of the rows as JSON objects, in UTF-8. */
  bytesMax: number;
  /** Size of each row beside its values: the names of its members. */
  rowBytes: number;
  /** Columns whose text is JSON itself; all others are values. */
  jsonColumns: readonly number[];
}

/** Closes the connection to a file. */
export interface ForgetRequest {
  op: "forget";
  path: string;
}

export type ReadRequest = QueryRequest | ForgetRequest;

/** The answer to a query: the last rows; those before came as parts. */
export interface QueryAnswer {
  rows: unknown[][];
  /** Size of all rows, as JSON where there are page bounds. */
  bytes: number;
  /** Whether the page ended before the last row. */
  isCut: boolean;
}
