import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { READ_PART_BYTES, READ_RESULT_BYTES_MAX } from "../limits.ts";
import { type JobContext, serveJobs } from "../processes/program.ts";
import { sqliteFailure } from "../processes/query-error.ts";
import { receivedValues } from "../processes/sent-values.ts";
import type { SqlValue } from "../types.ts";
import { createConnections } from "./connections.ts";
import { bytesAsJson, createMarkedRows } from "./marked-rows.ts";
import type { QueryAnswer, QueryRequest, ReadRequest, SentStatement } from "./requests.ts";

/** Starts the program of long reads: queries on read-only connections. [DB16] [DB19] [DB124] */
export function start(): void {
  const connections = createConnections();
  const markedRows = createMarkedRows();

  function* rowsOf(connection: DatabaseSync, { sql, params }: SentStatement): Iterable<unknown[]> {
    const statement = connection.prepare(sql);
    statement.setReturnArrays(true);
    // Without it, one integer beyond 2^53 would make the whole query fail.
    statement.setReadBigInts(true);
    // With setReturnArrays each row is an array, which the types of node:sqlite do not express.
    for (const row of statement.iterate(...receivedValues(params).map(bindable)) as Iterable<unknown>) {
      const values = row as unknown[];
      for (let i = 0; i < values.length; i += 1) if (typeof values[i] === "bigint") values[i] = Number(values[i]);
      yield values;
    }
  }

  function marked(request: QueryRequest): Iterable<unknown[]> {
    const connection = connections.of(request);
    return markedRows((statement) => rowsOf(connection, statement), request);
  }

  /** Returns the rows of a query. All statements that rank see one commit. */
  function* found(request: QueryRequest): Iterable<unknown[]> {
    if (request.rank === null) {
      yield* marked(request);
      return;
    }
    const connection = connections.of(request);
    connection.exec("BEGIN");
    try {
      yield* marked(request);
    } finally {
      connection.exec("ROLLBACK");
    }
  }

  function query(request: QueryRequest, context: JobContext): QueryAnswer {
    const { page } = request;
    let rows: unknown[][] = [];
    let partBytes = 0;
    let bytes = 0;
    for (const values of found(request)) {
      const size = bytesInMemory(values);
      const counted = page === null ? size : bytesAsJson(values, page);
      if (page !== null && bytes > 0 && bytes + counted > page.bytesMax) return { rows, bytes, isCut: true };
      bytes += counted;
      if (page === null && bytes > READ_RESULT_BYTES_MAX) {
        throw new Error(`the result is larger than ${READ_RESULT_BYTES_MAX} bytes`);
      }
      if (rows.length > 0 && partBytes + size > READ_PART_BYTES) {
        context.sendPart(rows);
        rows = [];
        partBytes = 0;
      }
      rows.push(values);
      partBytes += size;
    }
    return { rows, bytes, isCut: false };
  }

  serveJobs<ReadRequest>({
    run(request, context) {
      if (request.op === "query") return query(request, context);
      connections.close(request.path);
      return null;
    },
    failureOf: sqliteFailure,
  });
}

/**
 * Converts a value for node:sqlite, which binds every number as a real: whole ones become integers, as in bun:sqlite. Done in this
 * process, as a filter may bind tens of thousands.
 */
function bindable(value: SqlValue): SQLInputValue {
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number" && Number.isSafeInteger(value) && !Object.is(value, -0)) return BigInt(value);
  return value;
}

/** Estimates the memory of a row, here and in the server. */
function bytesInMemory(values: readonly unknown[]): number {
  let bytes = 64;
  for (const value of values) {
    bytes += 16 + (typeof value === "string" ? value.length : value instanceof Uint8Array ? value.byteLength : 0);
  }
  return bytes;
}
