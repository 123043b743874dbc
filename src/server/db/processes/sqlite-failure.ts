import { reasonOf } from "../../../kernel/errors.ts";

/** What SQLite said: its message, and its extended result code; 0 where SQLite did not see the statement. */
export interface SqliteFailure {
  message: string;
  errorCode: number;
}

export const sqliteFailure = (cause: unknown): SqliteFailure => ({
  message: reasonOf(cause),
  errorCode: typeof cause === "object" && cause !== null && "errcode" in cause ? Number(cause.errcode) : 0,
});
