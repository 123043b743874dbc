import type { SqlAccessor } from "../config/app-access.ts";
import { SERVER_CALLER } from "../db/index.ts";
import { AppError, badField, unreachable } from "../kernel/errors.ts";
import type { Logger } from "../kernel/logger.ts";
import { textOf } from "./frames.ts";
import { PARAMETERS_MAX, SQL_MAX_CHARACTERS } from "./limits.ts";
import type { ProcessPool, QueryCaller } from "./process-pool.ts";
import { looksLikeWrite } from "./statement.ts";
import type { Binding, ProcessRole, QueryAnswer, QueryFailure, QueryRequest } from "./types.ts";

export interface SqlService {
  /**
   * Runs one statement; the answer is the JSON of `{ results, meta }`. A write is on disk when it resolves. Errors: 400 with
   * SQLite's message, 408 after 30 s, 413 for too many rows, 503, 507. An abort of the caller's signal ends a read; a write
   * goes on.
   */
  query(sql: unknown, params: unknown, caller: QueryCaller): Promise<QueryAnswer>;
  stop(): Promise<void>;
}

export function createSqlService(deps: {
  path: string;
  readers: ProcessPool;
  writer: ProcessPool;
  logger: Logger;
}): SqlService {
  const { path, readers, writer, logger } = deps;
  /** Why nothing is answered any more; null: all is well. */
  let failure: AppError | null = null;
  const assertUsable = (): void => {
    if (failure !== null) throw failure;
  };
  const runOn = (role: ProcessRole, request: QueryRequest, caller: QueryCaller): Promise<QueryAnswer> =>
    role === "reader" ? readers.run(request, caller) : writer.run(request, { ...caller, signal: undefined });
  const run = async (request: QueryRequest, caller: QueryCaller): Promise<QueryAnswer> => {
    const role = looksLikeWrite(request.sql) ? "writer" : "reader";
    const answer = await runOn(role, request, caller);
    if (answer.outcome !== "elsewhere") return answer;
    answer.release();
    return runOn(role === "reader" ? "writer" : "reader", request, caller);
  };
  const fail = ({ status, message, isOfQuery, isFinal }: QueryFailure): AppError => {
    if (isFinal === true) {
      logger.error("a sync of a d1 database failed", { path, message });
      failure ??= new AppError(503, FAILED_MESSAGE);
      return failure;
    }
    if (isOfQuery === true) return badField("query", "invalid_value", message);
    if (status !== 500) return new AppError(status, message);
    logger.error("a d1 query failed", { path, message });
    return new AppError(500, "Internal error");
  };

  return {
    async query(sql, params, caller) {
      const request = { sql: parseText(sql), params: parseBindings(params) };
      assertUsable();
      const answer = await run(request, caller);
      if (answer.outcome !== "done" || failure !== null) answer.release();
      assertUsable();
      switch (answer.outcome) {
        case "done":
          return answer;
        case "failed":
          // The query process of this very program has written it.
          throw fail(JSON.parse(textOf(answer.chunks)) as QueryFailure);
        case "elsewhere":
          throw new AppError(503, "The database's schema changed while the query was read; it may be sent again");
        default:
          return unreachable(answer.outcome);
      }
    },
    async stop() {
      await Promise.all([readers.stop(), writer.stop()]);
    },
  };
}

const FAILED_MESSAGE =
  "The disk failed to keep a write: this database answers nothing until the server has been restarted. Check the disk first";

function parseText(query: unknown): string {
  if (query === undefined || query === null) throw badField("query", "required", '"query" is required');
  if (typeof query !== "string") throw badField("query", "invalid_type", '"query" must be a string');
  if (query.length > SQL_MAX_CHARACTERS) {
    throw badField("query", "too_long", `"query" must be at most ${SQL_MAX_CHARACTERS} characters`);
  }
  if (query.includes("\0")) throw badField("query", "invalid_value", '"query" must not have a NUL character');
  return query;
}

/** Errors: 400 for what is no array, too long, or holds anything but text, numbers, booleans and null. */
function parseBindings(params: unknown): Binding[] {
  if (params === undefined || params === null) return [];
  if (!Array.isArray(params)) throw badField("params", "invalid_type", '"params" must be an array');
  if (params.length > PARAMETERS_MAX) {
    throw badField("params", "too_long", `"params" must have at most ${PARAMETERS_MAX} members, got ${params.length}`);
  }
  return params.map((value: unknown, index) => {
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw badField(`params.${index}`, "invalid_value", `"params.${index}" is ${value}`);
    }
    if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
      return value;
    }
    throw badField(`params.${index}`, "invalid_type", `"params.${index}" must be a string, number, boolean or null`);
  });
}

/** `app.sql(name)`: the same service. */
export function createSqlAccessor(service: SqlService): SqlAccessor {
  return {
    async query(sql, params = []) {
      const { chunks, release } = await service.query(sql, params, SERVER_CALLER);
      release();
      return JSON.parse(textOf(chunks));
    },
  };
}
