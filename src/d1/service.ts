import type { SqlAccessor } from "../config/app-access.ts";
import { AppError, badField, unreachable } from "../kernel/errors.ts";
import type { Logger } from "../kernel/logger.ts";
import { PARAMETERS_MAX } from "./limits.ts";
import type { ProcessPool } from "./process-pool.ts";
import { parseStatement } from "./statement.ts";
import type { Binding, QueryAnswer, QueryFailure } from "./types.ts";

export interface SqlService {
  /**
   * Runs one statement; the answer is the JSON of `{ results, meta }`. A write is on disk when it resolves. Errors: 400 with
   * SQLite's message, 408 after 30 s, 413 for too many rows, 503, 507.
   */
  query(sql: unknown, params: unknown): Promise<Uint8Array<ArrayBuffer>>;
  stop(): Promise<void>;
}

export function createSqlService(deps: { readers: ProcessPool; writer: ProcessPool; logger: Logger }): SqlService {
  const { readers, writer, logger } = deps;
  const poolOf = (mode: "read" | "write" | "vacuum"): ProcessPool => {
    switch (mode) {
      case "read":
        return readers;
      case "write":
      case "vacuum":
        return writer;
      default:
        return unreachable(mode);
    }
  };
  const bodyOf = ({ isOk, body }: QueryAnswer): Uint8Array<ArrayBuffer> => {
    if (isOk) return body;
    // The query process of this very program has written it.
    const { status, message } = JSON.parse(Buffer.from(body.buffer).toString("utf8")) as QueryFailure;
    if (status !== 500) throw new AppError(status, message);
    logger.error("a d1 query failed", { message });
    throw new AppError(500, "Internal error");
  };

  return {
    async query(sql, params) {
      const statement = parseStatement(sql);
      const bindings = parseBindings(params);
      return bodyOf(await poolOf(statement.mode).run({ ...statement, params: bindings }));
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
