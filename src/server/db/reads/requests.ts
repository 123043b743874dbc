/** What `read-job.ts` is asked, and what it answers. */

import type { SentValues } from "../processes/sent-values.ts";

/** What a statement binds. */
export type SqlValue = string | number | bigint | boolean | null | Uint8Array;

/** What is to be marked in the rows of a search. */
export type HighlightRequest = {
  /** Places of the texts in a row. */
  columns: readonly number[];
  pre: string;
  post: string;
  /** The text round the marks is escaped for HTML. */
  isEscaped: boolean;
} & (
  | {
      by: "words";
      /** Of FTS5. */
      tokenize: string;
      /** Of FTS5: any of the words. */
      query: string;
    }
  | { by: "substrings"; terms: readonly string[] }
);

export interface QueryRequest {
  op: "query";
  path: string;
  extensions: readonly string[];
  sql: string;
  params: SentValues<SqlValue>;
  /** null: all rows, and an error when they are too large. */
  page: PageBounds | null;
  /** The marked texts of a page are appended to its rows. */
  highlight: HighlightRequest | null;
}

/** `name(text, unit, zone)`, in statements of the processes only: see `bucketLabel`. */
export const BUCKET_FUNCTION = "_platform_bucket";

/** Ends a result before the row that would make it too large; the first row is always in it. */
export interface PageBounds {
  /** Of the rows as JSON objects, in UTF-8. */
  bytesMax: number;
  /** Of each row beside its values: the names of its members. */
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

/** The last rows; those before came as parts. */
export interface QueryAnswer {
  rows: unknown[][];
  /** Of all rows, as JSON where there are page bounds. */
  bytes: number;
  /** The page ended before the last row. */
  isCut: boolean;
}
