import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { createHighlighter } from "./highlight-process.ts";
import type { ProcessLimits, ProcessRequest, ProcessResponse, QueryMessage } from "./query-protocol.ts";

/**
 * The whole program of a query process. It is handed over as source text (see query-processes.ts), so that the compiled
 * executable needs no file for it: nothing outside of this function exists where it runs.
 */
export function serveQueries(
  sqlite: typeof import("node:sqlite"),
  self: NodeJS.Process,
  limits: ProcessLimits,
  highlightRows: ReturnType<typeof createHighlighter>,
): void {
  const connections = new Map<string, DatabaseSync>();
  /** An answer that is over the bound that its asker gave. */
  class TooLarge extends Error {}

  function open(path: string, extensions: readonly string[], readOnly: boolean): DatabaseSync {
    const connection = new sqlite.DatabaseSync(path, {
      readOnly,
      timeout: limits.lockTimeoutMs,
      allowExtension: extensions.length > 0,
      limits: { length: limits.resultBytesMax },
    });
    for (const extension of extensions) connection.loadExtension(extension);
    if (extensions.length > 0) connection.enableLoadExtension(false);
    return connection;
  }

  /** The connection to read `path` with: kept, at most `connectionsMax` of them, those used last. */
  function reader(path: string, extensions: readonly string[]): DatabaseSync {
    const connection = connections.get(path) ?? open(path, extensions, true);
    connections.delete(path);
    for (const oldest of connections.keys()) if (connections.size >= limits.connectionsMax) forget(oldest);
    connections.set(path, connection);
    return connection;
  }

  function forget(path: string): void {
    connections.get(path)?.close();
    connections.delete(path);
  }

  /** On a connection that is closed again: the server's own is the last one then, and removes the WAL. */
  function checkpoint(path: string): void {
    const connection = open(path, [], false);
    try {
      connection.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(PASSIVE)");
    } finally {
      connection.close();
    }
  }

  function query(message: QueryMessage): unknown[][] {
    const statement = reader(message.path, message.extensions).prepare(message.sql);
    statement.setReturnArrays(true);
    // Otherwise one integer beyond 2^53 would make the whole query fail.
    statement.setReadBigInts(true);
    const rows: unknown[][] = [];
    const { jsonBytesMax } = message;
    let bytes = 0;
    let jsonBytes = 0;
    const countJson = (values: readonly unknown[]): void => {
      if (jsonBytesMax === null) return;
      jsonBytes += Buffer.byteLength(JSON.stringify(values));
      if (jsonBytes > jsonBytesMax) throw new TooLarge(`the result is larger than ${jsonBytesMax} bytes`);
    };
    // With setReturnArrays each row is an array, which the types of node:sqlite do not say.
    for (const row of statement.iterate(...(message.params as SQLInputValue[])) as Iterable<unknown>) {
      const values = row as unknown[];
      for (let i = 0; i < values.length; i += 1) {
        const value = values[i];
        if (typeof value === "bigint") values[i] = Number(value);
        bytes += 8 + (typeof value === "string" ? value.length : value instanceof Uint8Array ? value.byteLength : 0);
      }
      if (bytes > limits.resultBytesMax) throw new Error(`the result is larger than ${limits.resultBytesMax} bytes`);
      countJson(values);
      rows.push(values);
    }
    if (message.highlight !== null) {
      for (const [place, marked] of highlightRows(rows, message.highlight).entries()) {
        countJson(marked);
        rows[place]?.push(...marked);
      }
    }
    return rows;
  }

  function answer(message: ProcessRequest): unknown[][] {
    if (message.op === "query") return query(message);
    if (message.op === "checkpoint") checkpoint(message.path);
    else forget(message.path);
    return [];
  }

  self.on("message", (message: ProcessRequest) => {
    let response: ProcessResponse;
    try {
      response = { id: message.id, ok: true, rows: answer(message) };
    } catch (error) {
      const errorCode = typeof error === "object" && error !== null && "errcode" in error ? Number(error.errcode) : 0;
      response = {
        id: message.id,
        ok: false,
        message: error instanceof Error ? error.message : String(error),
        errorCode,
        isTooLarge: error instanceof TooLarge,
      };
    }
    self.send?.(response);
  });
  self.on("disconnect", () => self.exit(0));
}
