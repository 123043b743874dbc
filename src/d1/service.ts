import type { SqlAccessor } from "../config/app-access.ts";
import { SERVER_CALLER } from "../db/index.ts";
import { AppError, unreachable } from "../kernel/errors.ts";
import { freeBytes } from "../kernel/free-bytes.ts";
import type { Logger } from "../kernel/logger.ts";
import { textOf } from "./frames.ts";
import type { ProcessPool, QueryCaller } from "./process-pool.ts";
import { parseQuery } from "./query-request.ts";
import { looksLikeWrite } from "./statement.ts";
import type { ProcessRole, QueryAnswer, QueryFailure, QueryRequest, SentQuery } from "./types.ts";

export interface SqlService {
  /**
   * Runs one statement; the answer is the JSON of `{ results, meta }`. A write is on disk when it resolves. Errors: 400 with
   * SQLite's message, 408 after 30 s, 413 for too many rows, 503, 507. An abort of the caller's signal ends a read; a write
   * goes on.
   */
  query(request: QueryRequest, caller: QueryCaller): Promise<QueryAnswer>;
  /** The same for the bytes of a request's body, which are nobody's afterwards. Errors: 400 for what no query is. */
  queryBody(chunks: readonly Uint8Array<ArrayBuffer>[], caller: QueryCaller): Promise<QueryAnswer>;
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
  const runOn = (role: ProcessRole, query: SentQuery, caller: QueryCaller): Promise<QueryAnswer> =>
    role === "reader" ? readers.run(query, caller) : writer.run(query, { ...caller, signal: undefined });
  const run = async (query: SentQuery, caller: QueryCaller): Promise<QueryAnswer> => {
    const role = likelyRole(query);
    const answer = await runOn(role, query, caller);
    if (answer.outcome !== "elsewhere") return answer;
    answer.release();
    return runOn(role === "reader" ? "writer" : "reader", query, caller);
  };
  const fail = ({ status, message, data, isFinal }: QueryFailure): AppError => {
    if (isFinal === true) {
      logger.error("a sync of a d1 database failed", { path, message });
      failure ??= new AppError(503, FAILED_MESSAGE);
      return failure;
    }
    if (status !== 500) return new AppError(status, message, { data });
    logger.error("a d1 query failed", { path, message });
    return new AppError(500, "Internal error");
  };

  const answerOf = async (query: SentQuery, caller: QueryCaller): Promise<QueryAnswer> => {
    assertUsable();
    const answer = await run(query, caller);
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
  };

  return {
    query: (request, caller) => answerOf({ kind: "parsed", request }, caller),
    async queryBody(chunks, caller) {
      try {
        return await answerOf({ kind: "body", chunks }, caller);
      } finally {
        for (const chunk of chunks) freeBytes(chunk);
      }
    },
    async stop() {
      await Promise.all([readers.stop(), writer.stop()]);
    },
  };
}

const FAILED_MESSAGE =
  "The disk failed to keep a write: this database answers nothing until the server has been restarted. Check the disk first";

/** Where a large body most likely runs. What its statement is, the process finds out: a wrong guess costs a second way. */
function likelyRole(query: SentQuery): ProcessRole {
  const sql = query.kind === "parsed" ? query.request.sql : startOfQuery(query.chunks);
  return looksLikeWrite(sql) ? "writer" : "reader";
}

function startOfQuery([first]: readonly Uint8Array[]): string {
  const text = Buffer.from(first?.subarray(0, BODY_START_BYTES) ?? []).toString("latin1");
  return /^\s*\{\s*"query"\s*:\s*"(.*)/s.exec(text)?.[1] ?? "";
}

const BODY_START_BYTES = 256;

/** `app.sql(name)`: the same service. */
export function createSqlAccessor(service: SqlService): SqlAccessor {
  return {
    async query(sql, params = []) {
      const { chunks, release } = await service.query(parseQuery(sql, params), SERVER_CALLER);
      release();
      return JSON.parse(textOf(chunks));
    },
  };
}
