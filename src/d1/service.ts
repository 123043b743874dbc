import type { SqlAccessor } from "../config/app-access.ts";
import { AppError, badField, unreachable } from "../kernel/errors.ts";
import type { Logger } from "../kernel/logger.ts";
import { PARAMETERS_MAX } from "./limits.ts";
import type { ProcessPool } from "./process-pool.ts";
import { parseStatement } from "./statement.ts";
import type { Binding, QueryAnswer, QueryFailure, QueryRequest } from "./types.ts";

export interface SqlService {
  /**
   * Runs one statement; the answer is the JSON of `{ results, meta }`. A write is on disk when it resolves. Errors: 400 with
   * SQLite's message, 408 after 30 s, 413 for too many rows, 503, 507. An abort of `signal` ends a read; a write goes on.
   */
  query(sql: unknown, params: unknown, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  stop(): Promise<void>;
}

export function createSqlService(deps: {
  path: string;
  readers: ProcessPool;
  writer: ProcessPool;
  logger: Logger;
}): SqlService {
  const { path, readers, writer, logger } = deps;
  const run = (request: QueryRequest, signal: AbortSignal | undefined): Promise<QueryAnswer> => {
    switch (request.mode) {
      case "read":
        return readers.run(request, signal);
      case "write":
      case "vacuum":
        return writer.run(request);
      default:
        return unreachable(request.mode);
    }
  };
  const bodyOf = ({ isOk, body }: QueryAnswer): Uint8Array<ArrayBuffer> => {
    if (isOk) return body;
    // The query process of this very program has written it.
    const { status, message } = JSON.parse(Buffer.from(body.buffer).toString("utf8")) as QueryFailure;
    if (status !== 500) throw new AppError(status, message);
    logger.error("a d1 query failed", { path, message });
    throw new AppError(500, "Internal error");
  };

  return {
    async query(sql, params, signal) {
      return bodyOf(await run({ ...parseStatement(sql), params: parseBindings(params) }, signal));
    },
    async stop() {
      await Promise.all([readers.stop(), writer.stop()]);
    },
  };
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
      return JSON.parse(Buffer.from((await service.query(sql, params)).buffer).toString("utf8"));
    },
  };
}
