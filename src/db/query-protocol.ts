/** What the server and a query process say to each other. */

export interface QueryMessage {
  id: number;
  op: "query";
  path: string;
  extensions: readonly string[];
  sql: string;
  params: readonly (string | number | bigint | null | Uint8Array)[];
}

export interface FileMessage {
  id: number;
  op: "checkpoint" | "forget";
  path: string;
}

export type ProcessRequest = QueryMessage | FileMessage;

export type ProcessResponse =
  | { id: number; ok: true; rows: unknown[][] }
  | { id: number; ok: false; message: string; errorCode: number };

export interface ProcessLimits {
  connectionsMax: number;
  resultBytesMax: number;
  lockTimeoutMs: number;
}
