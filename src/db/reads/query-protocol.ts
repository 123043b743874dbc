import type { SqlValue } from "../types.ts";

/** What the server and a query process say to each other. */

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

export interface HighlightLimits {
  /** Marks in one text. */
  hitsMax: number;
  /** Bytes at the beginning of a text in which marks are made. */
  bytesMax: number;
  /** Characters that are marked at a time. */
  pieceLength: number;
  /** Characters behind a piece into which a phrase that begins in it may reach. */
  phraseLength: number;
}

export interface QueryMessage {
  id: number;
  op: "query";
  path: string;
  extensions: readonly string[];
  sql: string;
  params: readonly SqlValue[];
  /** null: all rows, and an error when they are too large. */
  page: PageBounds | null;
  /** The marked texts of a page are appended to its rows. */
  highlight: HighlightRequest | null;
}

/** Ends a result before the row that would make it too large; the first row is always in it. */
export interface PageBounds {
  /** Of the rows as JSON objects, in UTF-8. */
  bytesMax: number;
  /** Of each row beside its values: the names of its members. */
  rowBytes: number;
  /** Columns whose text is JSON itself; all others are values. */
  jsonColumns: readonly number[];
}

export interface FileMessage {
  id: number;
  op: "checkpoint" | "forget" | "ready";
  path: string;
}

/** Moves the whole WAL and starts it over; nobody else may write to the file meanwhile. */
export interface RestartMessage {
  id: number;
  op: "restart";
  path: string;
  /** What a longer WAL is cut back to. */
  walBytesLimit: number;
}

/** Has some texts indexed that wait for it; answers one row with one value, whether more wait. */
export interface IndexMessage {
  id: number;
  op: "index";
  path: string;
  /** The table of what waits: deleting a row of it has SQLite index the record. */
  pending: string;
  sliceMs: number;
  walBytesLimit: number;
}

export type ProcessRequest = QueryMessage | IndexMessage | RestartMessage | FileMessage;

export type ProcessResponse =
  /** Some of the rows; more follow. */
  | { id: number; kind: "part"; rows: unknown[][] }
  /** The last rows. `bytes`: of all rows, as JSON where there are page bounds. `isCut`: the page ended early. */
  | { id: number; kind: "done"; rows: unknown[][]; bytes: number; isCut: boolean }
  | { id: number; kind: "failed"; message: string; errorCode: number };

export interface ProcessLimits {
  connectionsMax: number;
  resultBytesMax: number;
  /** Of one text or blob, also inside SQLite. */
  valueBytesMax: number;
  /** Rows are sent in parts of about this size: the server takes in one at a time, and goes on between them. */
  partBytes: number;
  lockTimeoutMs: number;
  highlight: HighlightLimits;
}
