/** What the server and a query process say to each other. */

export interface QueryMessage {
  id: number;
  op: "query";
  path: string;
  extensions: readonly string[];
  sql: string;
  params: readonly (string | number | bigint | null | Uint8Array)[];
  /** null: all rows, and an error when they are too large. */
  page: PageBounds | null;
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
  op: "checkpoint" | "forget";
  path: string;
}

export type ProcessRequest = QueryMessage | FileMessage;

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
}
