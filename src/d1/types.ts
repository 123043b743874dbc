import type { FieldProblems } from "../kernel/errors.ts";

/** What a parameter can be; a JSON boolean is bound as 1 or 0. */
export type Binding = string | number | boolean | null;

export interface QueryRequest {
  /** The whole text of the query. */
  sql: string;
  params: readonly Binding[];
}

/** What a query process is asked. `body`: a request's body as it came, which the process parses. */
export type SentQuery =
  | { kind: "parsed"; request: QueryRequest }
  | { kind: "body"; chunks: readonly Uint8Array<ArrayBuffer>[] };

/**
 * What it answers. `done`: the JSON of the HTTP answer. `failed`: a QueryFailure as JSON. `elsewhere`: nothing has run, as the
 * statement belongs to the other role.
 */
export interface QueryAnswer {
  outcome: "done" | "failed" | "elsewhere";
  chunks: readonly Uint8Array<ArrayBuffer>[];
  sizeBytes: number;
  /** Gives back the room that it takes: to be called once it has been read. */
  release(): void;
}

/** A query that failed, with the HTTP status that says how. */
export interface QueryFailure {
  status: number;
  message: string;
  /** The members of the request at fault. */
  data?: FieldProblems | undefined;
  /** A sync has failed: nothing that the file shows can be believed until the server has been restarted. */
  isFinal?: boolean;
}

export type ProcessRole = "reader" | "writer";
