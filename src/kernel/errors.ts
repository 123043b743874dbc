/** The error codes that a field can carry. */
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
  // Of a whole operation in a batch: why it failed, where no field is at fault.
  | "not_found"
  | "access_denied"
  | "conflict";

export interface FieldProblem {
  code: FieldCode;
  message: string;
}

export type FieldProblems = Record<string, FieldProblem>;

/** To collect problems in. Without a prototype: what a client sends may be called `constructor` or `__proto__`. */
export const noProblems = (): FieldProblems => Object.create(null);

interface AppErrorOptions {
  data?: FieldProblems | undefined;
  headers?: Record<string, string> | undefined;
  cause?: unknown;
}

/**
 * A failure that the caller is meant to see: `status` is the HTTP status and the wire's `code`, `message` says what was
 * asked, what is wanted and what is there, `data` names the fields at fault. Everything else that is thrown is a 500.
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
  /** 400 to 499; 400 by default. */
  status?: number;
  /** The fields at fault. */
  fields?: Readonly<Record<string, { code: string; message: string }>>;
}

/**
 * What the code of a config throws to refuse what a client asked for: in hooks, and in actions of rooms and their rule. The
 * client gets this status, message and these fields; whatever else such code throws is a logged 500. Errors: `RangeError` for
 * another status.
 */
export class Refusal extends AppError {
  constructor(message: string, { status = 400, fields }: RefusalOptions = {}) {
    if (!Number.isInteger(status) || status < 400 || status > 499) {
      throw new RangeError(`the status of a Refusal is from 400 to 499, got ${status}`);
    }
    // The codes of a config are its own.
    super(status, message, { data: fields as FieldProblems | undefined });
    this.name = "Refusal";
  }
}

/** The wire's error body: `{ code, message, data? }`. */
export interface ErrorBody {
  code: number;
  message: string;
  data?: FieldProblems;
}

export const badRequest = (message: string, data?: FieldProblems): AppError => new AppError(400, message, { data });

/** One field at fault: the message serves the whole error and the field. */
export const badField = (field: string, code: FieldCode, message: string): AppError =>
  new AppError(400, message, { data: { [field]: { code, message } } });

export const unauthorized = (message = "Authentication required"): AppError => new AppError(401, message);
export const forbidden = (message = "Access denied"): AppError => new AppError(403, message);
export const notFound = (message: string): AppError => new AppError(404, message);
export const conflict = (message: string, data?: FieldProblems): AppError => new AppError(409, message, { data });
export const tooLarge = (message: string): AppError => new AppError(413, message);
/** Nobody hears it: it ends the work of a request whose connection is closed. The status is the one that nginx logs. */
export const clientGone = (): AppError => new AppError(499, "The client closed the connection");
export const unsupportedMediaType = (message: string): AppError => new AppError(415, message);

const DISK_FULL = /^(?:ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR_SHMSIZE)/;

/**
 * Whether what was thrown says, itself or through what caused it, that a disk has no room. SQLite says so in two ways:
 * SHMSIZE is the memory that a WAL needs and that lies beside it.
 */
export function isDiskFull(cause: unknown): boolean {
  if (typeof cause !== "object" || cause === null) return false;
  if ("code" in cause && DISK_FULL.test(String(cause.code))) return true;
  return "cause" in cause && cause.cause !== cause && isDiskFull(cause.cause);
}

/** Also after a part was written: whoever throws this has undone it. Writes work again once there is room. */
export const insufficientStorage = (cause?: unknown): AppError => new AppError(507, "Insufficient storage", { cause });

/** A switch over a union ends here: a new member does not compile until it has an answer. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}
