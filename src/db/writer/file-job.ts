import { DatabaseSync } from "node:sqlite";
import { unreachable } from "../../kernel/errors.ts";
import { INDEX_SLICE_MS, QUERY_LOCK_TIMEOUT_MS, RESTART_WAIT_MS } from "../limits.ts";
import { serveJobs } from "../processes/program.ts";
import { sqliteFailure } from "../processes/sqlite-failure.ts";
import type { FileRequest } from "./file-work.ts";
import { PENDING_TEXTS } from "./pending-texts.ts";

/** The program of what is done to a database file beside the server's writer. [DB13] [DB148] */
export function start(): void {
  serveJobs<FileRequest>({ run: perform, failureOf: sqliteFailure });
}

/** The answer tells whether more texts wait for their index; false for every other request. */
function perform(request: FileRequest): boolean {
  switch (request.op) {
    case "ready":
      return false;
    case "checkpoint":
      return withFile(request.path, checkpoint);
    case "restart":
      return withFile(request.path, (connection) => restartWal(connection, request.walBytesLimit));
    case "index":
      return withFile(request.path, (connection) => indexTexts(connection, request.walBytesLimit));
    default:
      return unreachable(request);
  }
}

/** A connection that is closed again: the server's own is the last one then and removes the WAL, and each sees the newest schema. */
function withFile(path: string, work: (connection: DatabaseSync) => boolean): boolean {
  const connection = new DatabaseSync(path, { timeout: QUERY_LOCK_TIMEOUT_MS });
  try {
    connection.exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0");
    return work(connection);
  } finally {
    connection.close();
  }
}

function checkpoint(connection: DatabaseSync): boolean {
  connection.exec("PRAGMA wal_checkpoint(PASSIVE)");
  return false;
}

/**
 * Checkpoints, then starts the WAL over by a transaction that changes nothing: syncing the new header and cutting the file happen
 * here and not in the server's next write. RESTART waits for the readers of the WAL; quick reads end with their turn of the
 * event loop. Where a reader needs the WAL longer, it stays.
 */
function restartWal(connection: DatabaseSync, walBytesLimit: number): boolean {
  connection.exec(`PRAGMA busy_timeout = ${RESTART_WAIT_MS}; PRAGMA wal_checkpoint(RESTART);
    PRAGMA journal_size_limit = ${walBytesLimit}; BEGIN IMMEDIATE`);
  const version = connection.prepare("PRAGMA user_version").get()?.["user_version"];
  // Writes the first page, also where the number is the same.
  connection.exec(`PRAGMA user_version = ${version}; COMMIT`);
  return false;
}

/** One transaction; the writer's next sync covers it. */
function indexTexts(connection: DatabaseSync, walBytesLimit: number): boolean {
  connection.exec(`PRAGMA journal_size_limit = ${walBytesLimit}; BEGIN IMMEDIATE`);
  const first = connection.prepare(`SELECT "table", "id" FROM "${PENDING_TEXTS}" LIMIT 1`);
  const done = connection.prepare(`DELETE FROM "${PENDING_TEXTS}" WHERE "table" = ? AND "id" = ?`);
  const startedAt = performance.now();
  let next = first.get();
  while (next !== undefined) {
    // Both columns are texts.
    done.run(next["table"] as string, next["id"] as string);
    next = first.get();
    if (performance.now() - startedAt >= INDEX_SLICE_MS) break;
  }
  connection.exec("COMMIT");
  return next !== undefined;
}
