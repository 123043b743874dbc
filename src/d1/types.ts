import type { AnswerText } from "../db/index.ts";
import type { FieldProblems } from "../kernel/errors.ts";

/** What a parameter can be; a JSON boolean is bound as 1 or 0. */
export type Binding = string | number | boolean | null;

export interface QueryRequest {
  /** The whole text of the query. */
  sql: string;
  params: readonly Binding[];
}

/** A query on its way to a process. `body`: the body of a request, which the process parses. */
export type Query =
  | { kind: "parsed"; query: QueryRequest }
  | { kind: "body"; blocks: readonly Uint8Array<ArrayBuffer>[] };

/** The JSON of the HTTP answer; null where nothing has run, as the statement belongs to the other role. */
export type QueryAnswer = AnswerText | null;

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

/** What query-job.ts is started with, and what it is asked. It answers with a text, or null. */
export interface ProgramSettings {
  path: string;
  role: ProcessRole;
}

export type ProgramRequest =
  | { kind: "parsed"; query: QueryRequest }
  /** The bytes of a body came before it. */
  | { kind: "body" };
