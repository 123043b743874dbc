import { SQLiteError } from "bun:sqlite";
import { AppError, insufficientStorage, isDiskFull, reasonOf } from "../../../kernel/errors.ts";

function codeOf(error: unknown): string {
  if (error instanceof SQLiteError) return error.code ?? "SQLITE_ERROR";
  if (typeof error === "object" && error !== null && "code" in error) return String(error.code);
  return "";
}

/**
 * Reports whether `error` concerns the file and not the statement. The whole transaction is lost then; SQLite may already have
 * rolled it back.
 */
export function isFileError(error: unknown): boolean {
  return /^(SQLITE_(FULL|IOERR|NOMEM|CORRUPT|READONLY|NOTADB|CANTOPEN|PROTOCOL)|ENOSPC|EIO|EDQUOT|EMFILE|ENFILE|ENOMEM)/.test(
    codeOf(error),
  );
}

/** Reports a temporary lack of descriptors or memory, which does not affect the file itself. */
function isShortage(error: unknown): boolean {
  return /^(EMFILE|ENFILE|ENOMEM|SQLITE_NOMEM|SQLITE_IOERR_NOMEM)/.test(codeOf(error));
}

/**
 * Effect of a failed attempt to make commits durable:
 *
 * - `slow`: nothing was tried, because a resource is temporarily exhausted. The same commits are retried, and new writes are
 *   refused meanwhile.
 * - `refused`: the disk does not have them. Final.
 * - `unknown`: the disk may or may not have them. Final too, as a later success would prove nothing about them.
 */
export type DurabilityFailure = "slow" | "refused" | "unknown";

export function durabilityFailure(error: unknown): DurabilityFailure {
  if (isShortage(error)) return "slow";
  return /^(EIO|ENOSPC|EDQUOT|EROFS|SQLITE_(IOERR|FULL|READONLY))/.test(codeOf(error)) ? "refused" : "unknown";
}

/** Reports whether a sync by SQLite itself failed, for example when a WAL restarts. */
export function isFailedSync(error: unknown): boolean {
  return /^SQLITE_IOERR_(DIR_)?FSYNC/.test(codeOf(error));
}

export const shortage = (cause: unknown): AppError =>
  new AppError(503, "The server is short of memory or of file descriptors; the request may be sent again", { cause });

/** Maps an error of the file to the error for the caller of a write. Other errors are returned unchanged. */
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
  ["SQLITE_CANTOPEN", "it cannot be opened or created (missing directory or missing permission)"],
  ["ENOENT", "it cannot be opened or created (missing directory)"],
  ["SQLITE_READONLY", "it is read-only"],
  ["SQLITE_PERM", "access to it is not permitted"],
  ["SQLITE_BUSY", "another process has locked it"],
  ["EACCES", "writing to it is not permitted"],
  ["EROFS", "the file system is read-only"],
  ["SQLITE_FULL", "no space is left on the device"],
  ["SQLITE_IOERR_SHMSIZE", "no space is left on the device"],
  ["ENOSPC", "no space is left on the device"],
  ["EDQUOT", "no space is left on the device"],
  ["SQLITE_IOERR", "the device failed to read or write it"],
];

/** Returns an error that names the file and the problem. */
export function openError(path: string, error: unknown): Error {
  const code = codeOf(error);
  const message = reasonOf(error);
  const reason = OPEN_REASONS.find(([prefix]) => code.startsWith(prefix))?.[1];
  const advice = /^SQLITE_(NOTADB|CORRUPT)/.test(code) ? "; restore a backup: docs/backup.md" : "";
  const why = reason === undefined ? message : `${reason} (${message})`;
  return new Error(`Cannot open the database ${path}: ${why}${advice}`, { cause: error });
}
