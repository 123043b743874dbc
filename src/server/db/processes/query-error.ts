import { reasonOf } from "../../../kernel/errors.ts";

/** SQLite's error for a statement that ran in another process. */
export class QueryError extends Error {
  /** SQLite's extended result code; 0 where SQLite did not see the statement. */
  readonly errorCode: number;

  constructor(message: string, errorCode: number) {
    super(message);
    this.name = "QueryError";
    this.errorCode = errorCode;
  }
}

/** Restores the error from the result of a program's `sqliteFailure`. */
export function queryError(failure: unknown): QueryError {
  const { message, errorCode } = failure as SqliteFailure; // The failure of every program that calls `sqliteFailure`.
  return new QueryError(message, errorCode);
}

/** SQLite's error: its message, and its extended result code; 0 where SQLite did not see the statement. */
export interface SqliteFailure {
  message: string;
  errorCode: number;
}

export const sqliteFailure = (cause: unknown): SqliteFailure => ({
  message: reasonOf(cause),
  errorCode: typeof cause === "object" && cause !== null && "errcode" in cause ? Number(cause.errcode) : 0,
});
