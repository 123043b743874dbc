import { serveJobs } from "../../db/processes/program.ts";
import { parseJsonObjectBytes } from "../../http/json-body.ts";
import { AppError } from "../../kernel/errors.ts";
import { ANSWER_PART_BYTES, LARGE_ANSWER_BYTES } from "../limits.ts";
import { parseQuery } from "../query-request.ts";
import type { ProgramAnswer, ProgramRequest, ProgramSettings, QueryFailure, QueryRequest } from "../types.ts";
import { executeQuery, openConnection, type QueryConnection } from "./execute.ts";
import { EscapeError, QueryError } from "./query-failure.ts";

/** The program of queries: one connection to one database, for reads or for writes. */
export function start(settings: unknown): void {
  const { path, role } = settings as ProgramSettings; // What queries.ts gives.
  let connection: QueryConnection | null = null;
  const execute = (request: QueryRequest): string | null => {
    connection ??= openConnection(path, role);
    try {
      return executeQuery(connection, request);
    } catch (cause) {
      if (cause instanceof EscapeError) {
        connection.database.close();
        connection = null;
      }
      throw cause;
    }
  };
  serveJobs<ProgramRequest>({
    async run(request, { attached, room, sendPart }): Promise<ProgramAnswer> {
      const text = execute(request.kind === "body" ? parseQuery(parseJsonObjectBytes(attached)) : request.query);
      if (text === null) return { outcome: "elsewhere" };
      const bytes = new TextEncoder().encode(text);
      if (bytes.byteLength < LARGE_ANSWER_BYTES) return { outcome: "done", bytes };
      await room(bytes.byteLength);
      // Copies: a message takes the whole buffer of its bytes with it.
      for (let from = 0; from < bytes.byteLength; from += ANSWER_PART_BYTES) {
        sendPart(bytes.slice(from, from + ANSWER_PART_BYTES));
      }
      return { outcome: "done", bytes: null };
    },
    failureOf,
  });
}

function failureOf(cause: unknown): QueryFailure {
  if (cause instanceof QueryError) return cause.failure;
  if (cause instanceof AppError) return { status: cause.status, message: cause.message, data: cause.data };
  return { status: 500, message: cause instanceof Error ? cause.message : "" };
}
