import { insufficientStorage, reasonOf } from "../../../../kernel/errors.ts";
import type { QueryFailure } from "../types.ts";

/** A query's failure, as sent to the caller. */
export class QueryError extends Error {
  readonly failure: QueryFailure;
  constructor(failure: QueryFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** A statement has changed its connection. The connection is not used again, because other requests share it. */
export class EscapeError extends QueryError {
  constructor() {
    super({ status: 400, message: "The statement would have changed more than its database, and was refused" });
  }
}

/** SQLite's result codes: primary codes (the lowest eight bits), and some extended codes. */
const BUSY = 5;
const LOCKED = 6;
const NO_MEMORY = 7;
const FULL = 13;
const NO_ROOM_FOR_SHARED_MEMORY = 4874;
const FAILED_SYNCS = new Set([1034, 1290]);
/** INTERNAL, PERM, IOERR, CORRUPT, CANTOPEN, PROTOCOL, NOTADB: errors of the server, not of the caller. */
const OF_THE_SERVER = new Set([2, 3, 10, 11, 14, 15, 26]);

/** SQLite's message for an error of the caller. `describe` gives the message for an error of the server. */
export function failureOf(cause: unknown, describe: (cause: unknown) => string = reasonOf): QueryFailure {
  const code = typeof cause === "object" && cause !== null && "errcode" in cause ? Number(cause.errcode) : 0;
  const primary = code & 0xff;
  if (primary === FULL || code === NO_ROOM_FOR_SHARED_MEMORY) {
    return { status: 507, message: insufficientStorage().message };
  }
  if (FAILED_SYNCS.has(code)) return { status: 503, message: reasonOf(cause), isFinal: true };
  if (primary === BUSY || primary === LOCKED) return { status: 503, message: "The database is busy" };
  if (primary === NO_MEMORY) return { status: 503, message: "The query needs more memory than there is" };
  if (OF_THE_SERVER.has(primary)) return { status: 500, message: describe(cause) };
  return { status: 400, message: reasonOf(cause) };
}
