import { AppError } from "../../../../kernel/errors.ts";
import type { JobContext } from "../../../db/processes/program.ts";
import { receivedValues } from "../../../db/processes/sent-values.ts";
import { parseJsonObjectBytes } from "../../../http/bodies/json-body.ts";
import { parseQuery, QueryError, type QueryFailure, type QueryRequest, type TablesRequest } from "../query.ts";

/** Returns the query of a request; that of a body is parsed here. Errors: 400 that names each member at fault. */
export const receivedQuery = (request: TablesRequest["query"], { attached }: JobContext): QueryRequest =>
  request.kind === "body"
    ? parseQuery(parseJsonObjectBytes(attached))
    : { sql: request.sql, params: receivedValues(request.params) };

/** Returns what the server learns of an error of a query. */
export function sentFailure(cause: unknown): QueryFailure {
  if (cause instanceof QueryError) return cause.failure;
  if (cause instanceof AppError) return { status: cause.status, message: cause.message, data: cause.data };
  return { status: 500, message: cause instanceof Error ? cause.message : "" };
}
