import { AppError } from "../../../../kernel/errors.ts";
import { serveJobs } from "../../../db/processes/program.ts";
import { receivedValues } from "../../../db/processes/sent-values.ts";
import { sendText } from "../../../db/processes/text-answer.ts";
import { parseJsonObjectBytes } from "../../../http/bodies/json-body.ts";
import {
  EscapeError,
  type ProgramRequest,
  type ProgramSettings,
  parseQuery,
  QueryError,
  type QueryFailure,
  type QueryRequest,
} from "../query.ts";
import { executeQuery, openConnection, type QueryConnection, shrinkLog } from "./execute.ts";

/** Starts the program of a query process: one connection to one database, for reads or for writes. */
export function start(settings: unknown): void {
  const { path, role } = settings as ProgramSettings; // What service.ts passes.
  let connection: QueryConnection | null = null;
  const open = (): QueryConnection => {
    connection ??= openConnection(path, role);
    return connection;
  };
  const execute = (request: QueryRequest): string | null => {
    const opened = open();
    try {
      return executeQuery(opened, request);
    } catch (cause) {
      if (cause instanceof EscapeError) {
        opened.database.close();
        connection = null;
      }
      throw cause;
    }
  };
  serveJobs<ProgramRequest>({
    run(request, context) {
      if (request.kind === "settle") {
        shrinkLog(open().database, path);
        return null;
      }
      const isBody = request.kind === "body";
      const query = isBody
        ? parseQuery(parseJsonObjectBytes(context.attached))
        : { sql: request.sql, params: receivedValues(request.params) };
      const text = execute(query);
      // For the audit log: the server has not parsed the body.
      const note = isBody && role === "writer" ? query.sql : null;
      return text === null ? null : sendText(text, context, { note });
    },
    failureOf,
  });
}

function failureOf(cause: unknown): QueryFailure {
  if (cause instanceof QueryError) return cause.failure;
  if (cause instanceof AppError) return { status: cause.status, message: cause.message, data: cause.data };
  return { status: 500, message: cause instanceof Error ? cause.message : "" };
}
