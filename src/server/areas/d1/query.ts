import { type Static, Type } from "typebox";
import { type FieldProblems, insufficientStorage, reasonOf } from "../../../kernel/errors.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import { optional, refine } from "../../../kernel/schema/types.ts";
import type { AnswerText } from "../../db/index.ts";
import type { SentValues } from "../../db/processes/sent-values.ts";
import { PARAMETERS_MAX, SQL_MAX_CHARACTERS } from "./limits.ts";

/** Value of a parameter. A JSON boolean is bound as 1 or 0. */
export type Binding = string | number | boolean | null;

export interface QueryRequest {
  /** Whole text of the query. */
  sql: string;
  params: readonly Binding[];
}

/** Query for a process. `body`: the body of a request, which the process parses. */
export type Query =
  | { kind: "parsed"; query: QueryRequest }
  | { kind: "body"; blocks: readonly Uint8Array<ArrayBuffer>[] };

/** JSON of the HTTP answer; null if nothing was run because the statement needs the other role. */
export type QueryAnswer = AnswerText | null;

/** Failure of a query, with its HTTP status. */
export interface QueryFailure {
  status: number;
  message: string;
  /** Invalid members of the request. */
  data?: FieldProblems | undefined;
  /** Whether a sync has failed: the content of the file cannot be trusted until the server is restarted. */
  isFinal?: boolean;
}

export type ProcessRole = "reader" | "writer";

/** Settings of query-job.ts, which answers requests with a text or null. */
export interface ProgramSettings {
  path: string;
  role: ProcessRole;
}

export type ProgramRequest =
  | { kind: "parsed"; sql: string; params: SentValues<Binding> }
  /** Runs the query in the body whose bytes were sent before this request. */
  | { kind: "body" }
  /** Runs nothing: moves the write-ahead log into the database. */
  | { kind: "settle" };

/** A query for tables-job.ts, which opens the file for it alone, and answers with a text. */
export interface TablesRequest {
  path: string;
  /** The tables that may be read. */
  tables: readonly string[];
  query: Exclude<ProgramRequest, { kind: "settle" }>;
}

const Sql = refine(
  Type.String({ maxLength: SQL_MAX_CHARACTERS, description: "One statement" }),
  (sql) => !sql.includes("\0"),
  (name) => ({ code: "invalid_value", message: `${name} must not have a NUL character` }),
);
const Parameter = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);

export const QueryBody = Type.Object({
  query: Sql,
  params: optional(
    Type.Array(Parameter, { maxItems: PARAMETERS_MAX, description: "Bound to the statement's `?` in order" }),
  ),
});

const parser = createParser(QueryBody);

export const queryOf = ({ query, params }: Static<typeof QueryBody>): QueryRequest => ({
  sql: query,
  params: params ?? [],
});

/** Parses the body of a query. Errors: 400 that names each member at fault. */
export const parseQuery = (body: JsonValue): QueryRequest => queryOf(parser.parse(body));

/** Error of a query, as sent to the caller. */
export class QueryError extends Error {
  readonly failure: QueryFailure;
  constructor(failure: QueryFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** Error of a statement that changed its connection. The connection is closed, because other requests share it. */
export class EscapeError extends QueryError {
  constructor() {
    super({ status: 400, message: "The statement would have changed more than its database, and was refused" });
  }
}

/** SQLite's result codes: primary codes (the lowest eight bits), and some extended codes. */
const BUSY = 5;
const LOCKED = 6;
const NO_MEMORY = 7;
const FULL = 13;
const NO_ROOM_FOR_SHARED_MEMORY = 4874;
const FAILED_SYNCS = new Set([1034, 1290]);
/** Codes of errors of the server, not of the caller: INTERNAL, PERM, IOERR, CORRUPT, CANTOPEN, PROTOCOL, NOTADB. */
const OF_THE_SERVER = new Set([2, 3, 10, 11, 14, 15, 26]);

/** Converts an error: for one of the caller, to SQLite's message; for one of the server, to the message that `describe` returns. */
export function failureOf(cause: unknown, describe: (cause: unknown) => string = reasonOf): QueryFailure {
  const code = typeof cause === "object" && cause !== null && "errcode" in cause ? Number(cause.errcode) : 0;
  const primary = code & 0xff;
  if (primary === FULL || code === NO_ROOM_FOR_SHARED_MEMORY) {
    return { status: 507, message: insufficientStorage().message };
  }
  if (FAILED_SYNCS.has(code)) return { status: 503, message: reasonOf(cause), isFinal: true };
  if (primary === BUSY || primary === LOCKED) return { status: 503, message: "The database is busy" };
  if (primary === NO_MEMORY) return { status: 503, message: "The query needs more memory than there is" };
  if (OF_THE_SERVER.has(primary)) return { status: 500, message: describe(cause) };
  return { status: 400, message: reasonOf(cause) };
}
