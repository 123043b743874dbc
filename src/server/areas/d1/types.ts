import type { FieldProblems } from "../../../kernel/errors.ts";
import type { AnswerText } from "../../db/index.ts";
import type { SentValues } from "../../db/processes/sent-values.ts";

/** The types of a parameter. A JSON boolean is bound as 1 or 0. */
export type Binding = string | number | boolean | null;

export interface QueryRequest {
  /** The whole text of the query. */
  sql: string;
  params: readonly Binding[];
}

/** A query for a process. `body`: the body of a request, which the process parses. */
export type Query =
  | { kind: "parsed"; query: QueryRequest }
  | { kind: "body"; blocks: readonly Uint8Array<ArrayBuffer>[] };

/** The JSON of the HTTP answer; null if nothing was run because the statement needs the other role. */
export type QueryAnswer = AnswerText | null;

/** A failed query, with its HTTP status. */
export interface QueryFailure {
  status: number;
  message: string;
  /** The invalid members of the request. */
  data?: FieldProblems | undefined;
  /** A sync has failed, so the content of the file cannot be trusted until the server is restarted. */
  isFinal?: boolean;
}

export type ProcessRole = "reader" | "writer";

/** The settings and requests of query-job.ts. It answers with a text or null. */
export interface ProgramSettings {
  path: string;
  role: ProcessRole;
}

export type ProgramRequest =
  | { kind: "parsed"; sql: string; params: SentValues<Binding> }
  /** The bytes of a body were sent before this request. */
  | { kind: "body" }
  /** Nothing is to be run: opening the file cleans up. */
  | { kind: "settle" };
