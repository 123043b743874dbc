import { AppError } from "../../../kernel/errors.ts";
import { freeBytes } from "../../../kernel/free-bytes.ts";
import { jsonCopy } from "../../../kernel/json/copy.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { SqlAccessor } from "../../config/app/index.ts";
import { type AnswerText, SERVER_CALLER } from "../../db/index.ts";
import { textOf } from "../../db/processes/text-answer.ts";
import { BODY_START_BYTES } from "./limits.ts";
import { QueryError } from "./process/query-failure.ts";
import type { Queries, QueryCaller } from "./queries.ts";
import { parseQuery } from "./query-request.ts";
import type { ProcessRole, Query, QueryAnswer, QueryFailure, QueryRequest } from "./types.ts";

/** The JSON of the answer. */
export interface SqlAnswer extends AnswerText {
  /** The statement may have changed the database. */
  isWrite: boolean;
}

export interface SqlService {
  /**
   * Runs one statement. A write is on disk when it resolves. Errors: 400 with SQLite's message, 408 after 30 s, 413 for too many
   * rows, 503, 507. The caller's signal ends a read; a write runs to its end.
   */
  query(query: QueryRequest, caller: QueryCaller): Promise<SqlAnswer>;
  /** Like `query`, for the bytes of a request's body, which are freed. Errors: also 400 for a body that is not a query. */
  queryBody(blocks: readonly Uint8Array<ArrayBuffer>[], caller: QueryCaller): Promise<SqlAnswer>;
  stop(): Promise<void>;
}

export function createSqlService(deps: {
  path: string;
  readers: Queries;
  writer: Queries;
  logger: Logger;
}): SqlService {
  const { path, readers, writer, logger } = deps;
  /** The error of all further queries, set by a failed sync. */
  let failure: AppError | null = null;
  const assertUsable = (): void => {
    if (failure !== null) throw failure;
  };
  const errorOf = ({ status, message, data, isFinal }: QueryFailure): AppError => {
    if (isFinal === true) {
      logger.error("a sync of a d1 database failed", { path, message });
      failure ??= new AppError(503, FAILED_MESSAGE);
      return failure;
    }
    if (status !== 500) return new AppError(status, message, { data });
    logger.error("a d1 query failed", { path, message });
    return new AppError(500, "Internal error");
  };
  const runOn = (role: ProcessRole, query: Query, caller: QueryCaller): Promise<QueryAnswer> =>
    role === "reader" ? readers.run(query, caller) : writer.run(query, { ...caller, signal: undefined });
  /** null: the statement needs neither role. */
  const run = async (query: Query, caller: QueryCaller): Promise<SqlAnswer | null> => {
    const likely = likelyRole(query);
    try {
      for (const role of [likely, likely === "reader" ? "writer" : "reader"] as const) {
        const answer = await runOn(role, query, caller);
        if (answer !== null) return { ...answer, isWrite: role === "writer" };
      }
      return null;
    } catch (cause) {
      writer.settle();
      throw cause instanceof QueryError ? errorOf(cause.failure) : cause;
    }
  };
  const answer = async (query: Query, caller: QueryCaller): Promise<SqlAnswer> => {
    assertUsable();
    const found = await run(query, caller);
    if (found === null) {
      throw new AppError(503, "The database's schema changed while the query was read; it may be sent again");
    }
    if (failure !== null) found.release();
    assertUsable();
    return found;
  };

  return {
    query: (query, caller) => answer({ kind: "parsed", query }, caller),
    async queryBody(blocks, caller) {
      try {
        return await answer({ kind: "body", blocks }, caller);
      } finally {
        for (const block of blocks) freeBytes(block);
      }
    },
    async stop() {
      await Promise.all([readers.stop(), writer.stop()]);
    },
  };
}

const FAILED_MESSAGE =
  "The disk failed to keep a write: this database answers nothing until the server has been restarted. Check the disk first";

/** Statements that begin with these words most likely write. */
const WRITING = /^\s*(?:insert|replace|update|delete|create|drop|alter|reindex|analyze|vacuum)\b/i;

/** The role that a query probably needs. SQLite determines it when it compiles the statement; a wrong guess costs a second try. */
function likelyRole(query: Query): ProcessRole {
  return WRITING.test(query.kind === "parsed" ? query.query.sql : startOfQuery(query.blocks)) ? "writer" : "reader";
}

/** The first characters of the statement in the bytes of a body. */
function startOfQuery(blocks: readonly Uint8Array[]): string {
  const first = blocks.find(({ byteLength }) => byteLength > 0);
  const text = Buffer.from(first?.subarray(0, BODY_START_BYTES) ?? []).toString("latin1");
  return /^\s*\{\s*"query"\s*:\s*"(.*)/s.exec(text)?.[1] ?? "";
}

/** `app.sql(name)`: the same service, its arguments checked as a request's are. */
export function createSqlAccessor(service: SqlService): SqlAccessor {
  return {
    async query(sql, params = []) {
      const answer = await service.query(parseQuery(jsonCopy({ query: sql, params })), SERVER_CALLER);
      answer.release();
      return JSON.parse(textOf(answer));
    },
  };
}
