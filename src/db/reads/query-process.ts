import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { SqlValue } from "../types.ts";
import type { createHighlighter } from "./highlight.ts";
import type {
  IndexMessage,
  PageBounds,
  ProcessLimits,
  ProcessRequest,
  ProcessResponse,
  QueryMessage,
} from "./query-protocol.ts";

// The whole program of a query process. It is handed over as source text (see query-child.ts), so that the compiled
// executable needs no file for it: nothing outside of a function exists where it runs, the other functions included.

export function createReaders(sqlite: typeof import("node:sqlite"), limits: ProcessLimits) {
  const connections = new Map<string, DatabaseSync>();

  function open(path: string, extensions: readonly string[], readOnly: boolean): DatabaseSync {
    const connection = new sqlite.DatabaseSync(path, {
      readOnly,
      timeout: limits.lockTimeoutMs,
      allowExtension: extensions.length > 0,
      limits: { length: limits.valueBytesMax },
    });
    for (const extension of extensions) connection.loadExtension(extension);
    if (extensions.length > 0) connection.enableLoadExtension(false);
    return connection;
  }

  function forget(path: string): void {
    connections.get(path)?.close();
    connections.delete(path);
  }

  return {
    forget,
    /** The connection to read `path` with: kept, at most `connectionsMax` of them, those used last. */
    reader(path: string, extensions: readonly string[]): DatabaseSync {
      const connection = connections.get(path) ?? open(path, extensions, true);
      connections.delete(path);
      for (const oldest of connections.keys()) if (connections.size >= limits.connectionsMax) forget(oldest);
      connections.set(path, connection);
      return connection;
    },
    /** On a connection that is closed again: the server's own is the last one then, and removes the WAL. */
    checkpoint(path: string): void {
      const connection = open(path, [], false);
      try {
        connection.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(PASSIVE)");
      } finally {
        connection.close();
      }
    },
    /**
     * Checkpoints, then starts the WAL over by a transaction that changes nothing: syncing the new header and cutting the file
     * happen here and not in the server's next write. A no-op where a reader still needs the WAL.
     */
    restartWal(path: string, walBytesLimit: number): void {
      const connection = open(path, [], false);
      try {
        connection.exec(`PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(PASSIVE);
          PRAGMA journal_size_limit = ${walBytesLimit}; BEGIN IMMEDIATE`);
        const version = connection.prepare("PRAGMA user_version").get()?.["user_version"];
        // Writes the first page, also where the number is the same.
        connection.exec(`PRAGMA user_version = ${version}; COMMIT`);
      } finally {
        connection.close();
      }
    },
    /** One transaction; its sync is the writer's next one. The same connection would see no schema that others change. */
    indexTexts({ path, pending, sliceMs, walBytesLimit }: IndexMessage): boolean {
      const connection = open(path, [], false);
      try {
        connection.exec(`PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;
          PRAGMA journal_size_limit = ${walBytesLimit}; BEGIN IMMEDIATE`);
        const first = connection.prepare(`SELECT "table", "id" FROM "${pending}" LIMIT 1`);
        const done = connection.prepare(`DELETE FROM "${pending}" WHERE "table" = ? AND "id" = ?`);
        const startedAt = performance.now();
        let next = first.get();
        while (next !== undefined) {
          done.run(next["table"] as string, next["id"] as string);
          next = first.get();
          if (performance.now() - startedAt >= sliceMs) break;
        }
        connection.exec("COMMIT");
        return next !== undefined;
      } finally {
        connection.close();
      }
    },
  };
}

export function createValues() {
  return {
    /**
     * node:sqlite binds every number as a real; whole ones are integers to bun:sqlite, and so they are here. Done in this
     * process, as a filter may bind tens of thousands.
     */
    bound(value: SqlValue): SQLInputValue {
      if (typeof value === "boolean") return value ? 1n : 0n;
      if (typeof value === "number" && Number.isSafeInteger(value) && !Object.is(value, -0)) return BigInt(value);
      return value;
    },
    /** A rough measure: what a row takes in memory, here and in the server. */
    inMemory(values: readonly unknown[]): number {
      let bytes = 64;
      for (const value of values) {
        bytes += 16 + (typeof value === "string" ? value.length : value instanceof Uint8Array ? value.byteLength : 0);
      }
      return bytes;
    },
    /** What a row takes as JSON, in UTF-8. */
    asJson(values: readonly unknown[], page: PageBounds): number {
      let bytes = page.rowBytes;
      for (const [index, value] of values.entries()) {
        const isJson = typeof value !== "string" || page.jsonColumns.includes(index);
        bytes += Buffer.byteLength(isJson ? String(value) : JSON.stringify(value));
      }
      return bytes;
    },
  };
}

export function serveQueries(
  self: NodeJS.Process,
  limits: ProcessLimits,
  readers: ReturnType<typeof createReaders>,
  kinds: ReturnType<typeof createValues>,
  highlightRows: ReturnType<typeof createHighlighter>,
): void {
  function* found({ path, extensions, sql, params }: QueryMessage): Iterable<unknown[]> {
    const statement = readers.reader(path, extensions).prepare(sql);
    statement.setReturnArrays(true);
    // Otherwise one integer beyond 2^53 would make the whole query fail.
    statement.setReadBigInts(true);
    // With setReturnArrays each row is an array, which the types of node:sqlite do not say.
    for (const row of statement.iterate(...params.map(kinds.bound)) as Iterable<unknown>) {
      const values = row as unknown[];
      for (let i = 0; i < values.length; i += 1) if (typeof values[i] === "bigint") values[i] = Number(values[i]);
      yield values;
    }
  }

  /** Marks the rows of a page together, and no more of them than it can hold. */
  function marked(message: QueryMessage): Iterable<unknown[]> {
    const { highlight, page } = message;
    if (highlight === null) return found(message);
    const rows: unknown[][] = [];
    let bytes = 0;
    for (const values of found(message)) {
      rows.push(values);
      bytes += page === null ? 0 : kinds.asJson(values, page);
      if (page !== null && bytes > page.bytesMax) break;
    }
    const texts = highlightRows(rows, highlight);
    return rows.map((values, place) => [...values, ...(texts[place] ?? [])]);
  }

  function query(message: QueryMessage): ProcessResponse {
    const { id, page } = message;
    let rows: unknown[][] = [];
    let partBytes = 0;
    let bytes = 0;
    for (const values of marked(message)) {
      const size = kinds.inMemory(values);
      const counted = page === null ? size : kinds.asJson(values, page);
      if (page !== null && bytes > 0 && bytes + counted > page.bytesMax) {
        return { id, kind: "done", rows, bytes, isCut: true };
      }
      bytes += counted;
      if (page === null && bytes > limits.resultBytesMax) {
        throw new Error(`the result is larger than ${limits.resultBytesMax} bytes`);
      }
      if (rows.length > 0 && partBytes + size > limits.partBytes) {
        self.send?.({ id, kind: "part", rows } satisfies ProcessResponse);
        rows = [];
        partBytes = 0;
      }
      rows.push(values);
      partBytes += size;
    }
    return { id, kind: "done", rows, bytes, isCut: false };
  }

  function answer(message: ProcessRequest): ProcessResponse {
    if (message.op === "query") return query(message);
    const rows: unknown[][] = [];
    if (message.op === "checkpoint") readers.checkpoint(message.path);
    else if (message.op === "restart") readers.restartWal(message.path, message.walBytesLimit);
    else if (message.op === "forget") readers.forget(message.path);
    else if (message.op === "index") rows.push([readers.indexTexts(message)]);
    return { id: message.id, kind: "done", rows, bytes: 0, isCut: false };
  }

  self.on("message", (message: ProcessRequest) => {
    let response: ProcessResponse;
    try {
      response = answer(message);
    } catch (error) {
      response = {
        id: message.id,
        kind: "failed",
        message: error instanceof Error ? error.message : String(error),
        errorCode: typeof error === "object" && error !== null && "errcode" in error ? Number(error.errcode) : 0,
      };
    }
    self.send?.(response);
  });
  self.on("disconnect", () => self.exit(0));
}
