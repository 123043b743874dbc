/** The codes of fields in the `data` of an error. */
export type FieldCode =
  | "required"
  | "invalid_type"
  | "invalid_value"
  | "too_short"
  | "too_long"
  | "too_small"
  | "too_large"
  | "pattern_mismatch"
  | "unknown_field"
  | "not_unique"
  | "unknown_reference"
  | "check_failed"
  // Refers to a whole operation of a batch, where no single field is at fault.
  | "not_found"
  | "condition_failed"
  | "idempotency_in_progress"
  | "access_denied"
  | "conflict"
  // Refers to the total that may be stored, under the name `quota`.
  | "quota_exceeded"
  // Refer to the cluster, under the name `cluster`.
  | ClusterRefusal;

/**
 * Reason for which a node of a cluster does not answer:
 *
 * - `no_owner`: nobody can take a write now. It has not happened.
 * - `unknown_outcome`: the write may have happened, or may still happen.
 * - `stale`: this node does not know whether what it has is current.
 */
export type ClusterRefusal = "no_owner" | "unknown_outcome" | "stale";

export interface FieldProblem {
  code: FieldCode;
  message: string;
}

export type FieldProblems = Record<string, FieldProblem>;

/** Returns an empty collection without a prototype, because clients may name fields `constructor` or `__proto__`. */
export const noProblems = (): FieldProblems => Object.create(null);

interface AppErrorOptions {
  data?: FieldProblems | undefined;
  headers?: Record<string, string> | undefined;
  cause?: unknown;
}

/**
 * A failure that the client sees: `status` is the HTTP status and the `code` of the body, `message` says what was requested, what
 * is expected and what was found, `data` names the fields at fault. Any other thrown value is a 500. [HT1] [HT4]
 */
export class AppError extends Error {
  readonly status: number;
  readonly data: FieldProblems | undefined;
  readonly headers: Record<string, string> | undefined;

  constructor(status: number, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AppError";
    this.status = status;
    this.data = options.data;
    this.headers = options.headers;
  }
}

interface RefusalOptions {
  /** HTTP status from 400 to 499; 400 by default. */
  status?: number;
  /** The fields at fault. */
  fields?: Readonly<Record<string, { code: string; message: string }>>;
}

/**
 * Thrown by the code of a config, in hooks and in actions of rooms and their rule, to refuse a client's request. The client gets
 * this status, message and fields; any other error thrown by such code is logged and answered 500. Errors: `RangeError` for a
 * status outside 400 to 499.
 */
export class Refusal extends AppError {
  constructor(message: string, { status = 400, fields }: RefusalOptions = {}) {
    if (!Number.isInteger(status) || status < 400 || status > 499) {
      throw new RangeError(`the status of a Refusal is from 400 to 499, got ${status}`);
    }
    // A config may use codes of its own.
    super(status, message, { data: fields as FieldProblems | undefined });
    this.name = "Refusal";
  }
}

/** The body of an error answer: `{ code, message, data? }`. [HT1] */
export interface ErrorBody {
  code: number;
  message: string;
  data?: FieldProblems;
}

export const badRequest = (message: string, data?: FieldProblems): AppError => new AppError(400, message, { data });

/** Returns a 400 error about one field; `message` stands for both the error and the field. */
export const badField = (field: string, code: FieldCode, message: string): AppError =>
  new AppError(400, message, { data: { [field]: { code, message } } });

export const unauthorized = (message = "Authentication required"): AppError => new AppError(401, message);
export const forbidden = (message = "Access denied"): AppError => new AppError(403, message);
export const notFound = (message: string): AppError => new AppError(404, message);
export const conflict = (message: string, data?: FieldProblems): AppError => new AppError(409, message, { data });
export const tooLarge = (message: string): AppError => new AppError(413, message);
/** Returns a 413 error for an exceeded storage quota. The message says how much is used and allowed. */
export const quotaExceeded = (message: string): AppError =>
  new AppError(413, message, { data: { quota: { code: "quota_exceeded", message } } });
/**
 * Returns the error that ends the work of a request whose connection is closed. Nobody receives it; 499 is the status that nginx
 * logs.
 */
export const clientGone = (): AppError => new AppError(499, "The client closed the connection");
/** Returns the 503 error for requests that arrive during a stop; most of their clients are gone. */
export const serverStopping = (): AppError => new AppError(503, "The server is stopping");

const CLUSTER_REFUSALS: Readonly<Record<ClusterRefusal, string>> = {
  no_owner: "No node of the cluster can take this now: it has not been done, and may be sent again",
  unknown_outcome:
    "It is not known whether this was done: the log of the cluster has not confirmed it. With an idempotency key it may be sent again",
  stale: "This node does not know whether what it has is current: ask again, or another node",
};

/** The error of `clusterRefusal`, which says nothing of what is stored. */
export class ClusterRefused extends AppError {}

/** Returns the 503 error of a node of a cluster: see `ClusterRefusal`. [CLU40] */
export const clusterRefusal = (code: ClusterRefusal, cause?: unknown): AppError =>
  new ClusterRefused(503, CLUSTER_REFUSALS[code], {
    data: { cluster: { code, message: CLUSTER_REFUSALS[code] } },
    headers: { "retry-after": "1" },
    cause,
  });

export const unsupportedMediaType = (message: string): AppError => new AppError(415, message);

const DISK_FULL = /^(?:ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR_SHMSIZE)/;

/**
 * Reports whether an error, or one of its causes, means that the disk is full. SQLite has two codes for it; SHMSIZE is about the
 * shared memory file beside a WAL.
 */
export function isDiskFull(cause: unknown): boolean {
  if (typeof cause !== "object" || cause === null) return false;
  if ("code" in cause && DISK_FULL.test(String(cause.code))) return true;
  return "cause" in cause && cause.cause !== cause && isDiskFull(cause.cause);
}

/**
 * Returns the 507 error for a full disk. Everything written before it is thrown has been undone; writes work again once there is
 * space. [HT14]
 */
export const insufficientStorage = (cause?: unknown): AppError => new AppError(507, "Insufficient storage", { cause });

/** Returns the message of an error, or whatever else a config's code has thrown as text. Never throws. */
export function reasonOf(cause: unknown): string {
  try {
    if (!(cause instanceof Error)) return String(cause);
    // A config's code may have given the error a message of any type, or one that throws.
    return String(cause.message === "" ? cause.name : cause.message);
  } catch {
    return "what was thrown has no text";
  }
}

/** Returns the code of an error of the system or of SQLite, such as ENOENT; empty: it has none. */
export const codeOf = (cause: unknown): string => (cause instanceof Error && "code" in cause ? String(cause.code) : "");

/** Whether an error says that there is no such file. */
export const isMissing = (cause: unknown): boolean => codeOf(cause) === "ENOENT";

/**
 * Explains why a `fetch` got no response. Bun's message about a refused connection asks the reader a question, so it is replaced.
 */
export function whyUnanswered(cause: unknown): string {
  return codeOf(cause) === "ECONNREFUSED" ? "nothing listens there (ECONNREFUSED)" : reasonOf(cause);
}

/** The default of an exhaustive switch: a new member of the union does not compile until it has a case. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}
