import { SQLiteError } from "bun:sqlite";
import { AppError, insufficientStorage, isDiskFull } from "../../kernel/errors.ts";

function codeOf(error: unknown): string {
  if (error instanceof SQLiteError) return error.code ?? "SQLITE_ERROR";
  if (typeof error === "object" && error !== null && "code" in error) return String(error.code);
  return "";
}

/**
 * Whether `error` is about the file and not about the statement: the transaction that met it is lost as a whole.
 * SQLite may have rolled it back by itself already.
 */
export function isFileError(error: unknown): boolean {
  return /^(SQLITE_(FULL|IOERR|NOMEM|CORRUPT|READONLY|NOTADB|CANTOPEN|PROTOCOL)|ENOSPC|EIO|EDQUOT|EMFILE|ENFILE|ENOMEM)/.test(
    codeOf(error),
  );
}

/** A lack of descriptors or memory, which passes: nothing about the file is in doubt. */
export function isShortage(error: unknown): boolean {
  return /^(EMFILE|ENFILE|ENOMEM|SQLITE_NOMEM|SQLITE_IOERR_NOMEM)/.test(codeOf(error));
}

/** SQLite itself has met a failed sync, as when a WAL starts over. */
export function isFailedSync(error: unknown): boolean {
  return /^SQLITE_IOERR_(DIR_)?FSYNC/.test(codeOf(error));
}

export const shortage = (cause: unknown): AppError =>
  new AppError(503, "The server is short of memory or of file descriptors; the request may be sent again", { cause });

/** What the caller of a write hears of an error about the file; every other error is its own answer. */
export function asWriteError(error: unknown): unknown {
  if (isDiskFull(error)) return insufficientStorage(error);
  if (isShortage(error)) return shortage(error);
  const code = codeOf(error);
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) {
    return new AppError(503, "The database is locked by another process", { cause: error });
  }
  if (code.startsWith("SQLITE_READONLY")) {
    return new AppError(500, "Cannot write: the database file is read-only", { cause: error });
  }
  if (isFileError(error)) return new AppError(500, "Cannot write: the database file failed", { cause: error });
  return error;
}

const OPEN_REASONS: readonly (readonly [prefix: string, reason: string])[] = [
  ["SQLITE_NOTADB", "it is not an SQLite database"],
  ["SQLITE_CORRUPT", "its content is damaged"],
  ["SQLITE_CANTOPEN", "it cannot be opened or made (a missing directory, or no right to it)"],
  ["SQLITE_READONLY", "it is read-only"],
  ["SQLITE_PERM", "there is no right to it"],
  ["SQLITE_BUSY", "another process has locked it"],
  ["EACCES", "there is no right to write it"],
  ["EROFS", "the file system is read-only"],
  ["SQLITE_FULL", "no space is left on the device"],
  ["SQLITE_IOERR_SHMSIZE", "no space is left on the device"],
  ["ENOSPC", "no space is left on the device"],
  ["EDQUOT", "no space is left on the device"],
  ["SQLITE_IOERR", "the device failed to read or write it"],
];

/** An error that names the file and what is wrong with it. */
export function openError(path: string, error: unknown): Error {
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  const reason = OPEN_REASONS.find(([prefix]) => code.startsWith(prefix))?.[1];
  return new Error(`Cannot open the database ${path}: ${reason === undefined ? message : `${reason} (${message})`}`, {
    cause: error,
  });
}
