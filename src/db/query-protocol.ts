/** What the server and a query process say to each other. */

export interface QueryMessage {
  id: number;
  op: "query";
  path: string;
  extensions: readonly string[];
  sql: string;
  params: readonly (string | number | bigint | null | Uint8Array)[];
  mode: "read" | "write";
  /** A user's own statement: one that reaches outside its file, or ends transactions, is refused. */
  isGuarded: boolean;
  bigIntegers: boolean;
}

export interface FileMessage {
  id: number;
  op: "checkpoint" | "forget";
  path: string;
}

export type ProcessRequest = QueryMessage | FileMessage;

export type ProcessResponse =
  | { id: number; ok: true; columns: string[]; rows: unknown[][]; changes: number }
  | { id: number; ok: false; message: string; errorCode: number };

export interface ProcessLimits {
  connectionsMax: number;
  resultBytesMax: number;
  heapBytesMax: number;
  lockTimeoutMs: number;
}
