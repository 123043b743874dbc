// biome-ignore lint/correctness/noUnresolvedImports: a module of the runtime that biome does not know yet
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { FileMessage, ProcessLimits, ProcessRequest, ProcessResponse, QueryMessage } from "./query-protocol.ts";

/**
 * The whole program of a query process. It is handed over as source text (see query-processes.ts), so that the compiled
 * executable needs no file for it: nothing outside of this function exists where it runs.
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: it has to stand alone; the functions in it are short
export function serveQueries(sqlite: typeof import("node:sqlite"), self: NodeJS.Process, limits: ProcessLimits): void {
  const connections = new Map<string, DatabaseSync>();
  const { constants } = sqlite;

  function connect(path: string, mode: "read" | "write", extensions: readonly string[]): DatabaseSync {
    const key = `${mode} ${path}`;
    const known = connections.get(key);
    if (known !== undefined) {
      connections.delete(key);
      connections.set(key, known);
      return known;
    }
    for (const [oldest, connection] of connections) {
      if (connections.size < limits.connectionsMax) break;
      connection.close();
      connections.delete(oldest);
    }
    const connection = new sqlite.DatabaseSync(path, {
      readOnly: mode === "read",
      timeout: limits.lockTimeoutMs,
      allowExtension: extensions.length > 0,
    });
    for (const extension of extensions) connection.loadExtension(extension);
    if (extensions.length > 0) connection.enableLoadExtension(false);
    connection.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL");
    connection.exec(`PRAGMA hard_heap_limit = ${limits.heapBytesMax}`);
    connections.set(key, connection);
    return connection;
  }

  // Pragmas that tell something about their argument; with any other, an argument is a change of settings.
  const readingPragmas =
    /^(table_info|table_xinfo|table_list|index_list|index_info|index_xinfo|foreign_key_list|foreign_key_check|integrity_check|quick_check)$/i;
  const workingPragmas = /^(wal_checkpoint|incremental_vacuum|optimize|shrink_memory)$/i;

  function refusal(action: number, first: string | null, second: string | null): string | null {
    switch (action) {
      case constants.SQLITE_ATTACH:
        return "ATTACH and VACUUM are not allowed";
      case constants.SQLITE_DETACH:
        return "DETACH is not allowed";
      case constants.SQLITE_TRANSACTION:
      case constants.SQLITE_SAVEPOINT:
        return "transaction statements are not allowed: each statement is a transaction of its own";
      case constants.SQLITE_CREATE_TEMP_INDEX:
      case constants.SQLITE_CREATE_TEMP_TABLE:
      case constants.SQLITE_CREATE_TEMP_TRIGGER:
      case constants.SQLITE_CREATE_TEMP_VIEW:
        return "temporary tables are not allowed: connections are shared";
      case constants.SQLITE_FUNCTION:
        return second?.toLowerCase() === "load_extension" ? "load_extension is not allowed" : null;
      case constants.SQLITE_PRAGMA: {
        const isReading = second === null ? !workingPragmas.test(first ?? "") : readingPragmas.test(first ?? "");
        return isReading ? null : `PRAGMA ${first} is not allowed to change anything`;
      }
      default:
        return null;
    }
  }

  function plain(value: unknown, bigIntegers: boolean): unknown {
    if (typeof value !== "bigint") return value;
    const number = Number(value);
    return Number.isSafeInteger(number) || !bigIntegers ? number : value;
  }

  function collect(connection: DatabaseSync, message: QueryMessage): { columns: string[]; rows: unknown[][] } {
    const statement = connection.prepare(message.sql);
    statement.setReturnArrays(true);
    statement.setReadBigInts(true);
    const rows: unknown[][] = [];
    let bytes = 0;
    // With setReturnArrays each row is an array, which the types of node:sqlite do not say.
    for (const row of statement.iterate(...(message.params as SQLInputValue[])) as Iterable<unknown>) {
      const values = row as unknown[];
      for (let i = 0; i < values.length; i += 1) {
        const value = values[i];
        values[i] = plain(value, message.bigIntegers);
        bytes += 8 + (typeof value === "string" ? value.length : value instanceof Uint8Array ? value.byteLength : 0);
      }
      if (bytes > limits.resultBytesMax) throw new Error(`the result is larger than ${limits.resultBytesMax} bytes`);
      rows.push(values);
    }
    return { columns: statement.columns().map((column) => column.name), rows };
  }

  function counter(connection: DatabaseSync, name: "changes" | "total_changes"): number {
    return Number(connection.prepare(`SELECT ${name}() AS n`).get()?.["n"] ?? 0);
  }

  function query(message: QueryMessage): Omit<ProcessResponse & { ok: true }, "id"> {
    const connection = connect(message.path, message.mode, message.extensions);
    const isWriting = message.mode === "write";
    let denied: string | null = null;
    const changesBefore = isWriting ? counter(connection, "total_changes") : 0;
    if (isWriting) connection.exec("BEGIN IMMEDIATE");
    try {
      if (message.isGuarded) {
        connection.setAuthorizer((action, first, second) => {
          const reason = refusal(action, first, second);
          denied ??= reason;
          return reason === null ? constants.SQLITE_OK : constants.SQLITE_DENY;
        });
      }
      const result = collect(connection, message);
      connection.setAuthorizer(null);
      const hasChanged = isWriting && counter(connection, "total_changes") !== changesBefore;
      const changes = hasChanged ? counter(connection, "changes") : 0;
      if (isWriting) connection.exec("COMMIT");
      return { ok: true, ...result, changes };
    } catch (error) {
      connection.setAuthorizer(null);
      if (connection.isTransaction) connection.exec("ROLLBACK");
      throw denied === null ? error : new Error(denied);
    }
  }

  function forget(path: string): void {
    for (const mode of ["read", "write"]) {
      connections.get(`${mode} ${path}`)?.close();
      connections.delete(`${mode} ${path}`);
    }
  }

  function handleFile(message: FileMessage): void {
    // Closed again after a checkpoint, so that the server's own connection is the last one and removes the WAL.
    if (message.op === "checkpoint") connect(message.path, "write", []).exec("PRAGMA wal_checkpoint(PASSIVE)");
    forget(message.path);
  }

  self.on("message", (message: ProcessRequest) => {
    let response: ProcessResponse;
    try {
      if (message.op === "query") response = { id: message.id, ...query(message) };
      else {
        handleFile(message);
        response = { id: message.id, ok: true, columns: [], rows: [], changes: 0 };
      }
    } catch (error) {
      const errorCode = typeof error === "object" && error !== null && "errcode" in error ? Number(error.errcode) : 0;
      response = {
        id: message.id,
        ok: false,
        message: error instanceof Error ? error.message : String(error),
        errorCode,
      };
    }
    self.send?.(response);
  });
  self.on("disconnect", () => self.exit(0));
}
