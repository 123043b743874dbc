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
  | { by: "words" /** Of FTS5. */; tokenize: string /** Of FTS5: any of the words. */; query: string }
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
  params: readonly (string | number | bigint | null | Uint8Array)[];
  /** Marked texts are appended to each row. */
  highlight: HighlightRequest | null;
  /** Bytes that the values may have as JSON; null: those of the process. */
  jsonBytesMax: number | null;
}

export interface FileMessage {
  id: number;
  op: "checkpoint" | "forget";
  path: string;
}

export type ProcessRequest = QueryMessage | FileMessage;

export type ProcessResponse =
  | { id: number; ok: true; rows: unknown[][] }
  | { id: number; ok: false; message: string; errorCode: number; isTooLarge: boolean };

export interface ProcessLimits {
  connectionsMax: number;
  resultBytesMax: number;
  lockTimeoutMs: number;
  highlight: HighlightLimits;
}
