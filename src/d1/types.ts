import type { Statement } from "./statement.ts";

/** What a parameter can be; a JSON boolean is bound as 1 or 0. */
export type Binding = string | number | boolean | null;

/** What a query process is asked. */
export interface QueryRequest extends Statement {
  params: Binding[];
}

/** What it answers: `body` is the JSON of the HTTP answer, or of a failure. */
export interface QueryAnswer {
  isOk: boolean;
  body: Uint8Array<ArrayBuffer>;
}

/** A query that failed, with the HTTP status that says how. */
export interface QueryFailure {
  status: number;
  message: string;
}

export type ProcessRole = "reader" | "writer";
