/** Machine-readable cause of an error. `network`: no response; all others are the server's, or follow from its status. */
export type ErrorCode =
  | "network"
  | "timeout"
  | "unauthenticated"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "precondition_failed"
  | "invalid"
  | "too_large"
  | "rate_limited"
  | "unavailable"
  /** A write waited offline, its response was lost, and it is too old to be retried. */
  | "unknown"
  | "internal";

/** Error of one field. `code` is the server's, such as `required` or `not_unique`. */
export interface FieldProblem {
  code: string;
  message: string;
}

export interface ErrorFacts {
  status: number;
  code: ErrorCode;
  message: string;
  fields?: Readonly<Record<string, FieldProblem>> | undefined;
  requestId?: string | null;
  retryAfter?: number | null;
  cause?: unknown;
}

/** Error of a request. Requests aborted by the caller's own `signal` reject with the signal's reason instead. */
export class PlatformError extends Error {
  /** HTTP status; 0 without a response. */
  declare readonly status: number;
  declare readonly code: ErrorCode;
  /** Invalid fields by path; empty if none. */
  declare readonly fields: Readonly<Record<string, FieldProblem>>;
  /** `X-Request-Id` of the response, which identifies the cause in the server's log; null without a response. */
  declare readonly requestId: string | null;
  /** Seconds after which the server asks for a retry; null if it does not. */
  declare readonly retryAfter: number | null;

  constructor({ status, code, message, fields = {}, requestId = null, retryAfter = null, cause }: ErrorFacts) {
    super(message, cause === undefined ? undefined : { cause });
    Object.assign(this, { name: "PlatformError", status, code, fields, requestId, retryAfter });
  }
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  401: "unauthenticated",
  403: "forbidden",
  404: "not_found",
  408: "timeout",
  409: "conflict",
  412: "precondition_failed",
  413: "too_large",
  429: "rate_limited",
};

/** Returns the code of a status of 400 or more. */
export const codeOf = (status: number): ErrorCode =>
  CODES[status] ?? (status < 500 ? "invalid" : status < 502 ? "internal" : "unavailable");

/** Returns the error of a response of 400 or more. A foreign body, such as a proxy's page, is left out. */
export async function errorOf(response: Response): Promise<PlatformError> {
  const { status, headers } = response;
  const body = (await response.json().catch(() => null)) as { message?: string; data?: Record<string, FieldProblem> };
  const seconds = Number.parseFloat(headers.get("Retry-After") ?? "");
  return new PlatformError({
    status,
    code: codeOf(status),
    message: body?.message ?? `HTTP ${status}`,
    fields: body?.data,
    requestId: headers.get("X-Request-Id"),
    retryAfter: Number.isFinite(seconds) ? seconds : null,
  });
}

/** Creates an error with the code that belongs to an HTTP status. */
export const statusError = (status: number, message: string): PlatformError =>
  new PlatformError({ status, code: codeOf(status), message });

/** Returns the error of a WebSocket denial, as HTTP would report it to this user; null: nobody is signed in. */
export const deniedError = (userId: string | null): PlatformError =>
  userId === null ? statusError(401, "Authentication required") : statusError(403, "Access denied");

/** Creates an error that did not come from the server. */
export const localError = (code: ErrorCode, message: string, cause?: unknown): PlatformError =>
  new PlatformError({ status: 0, code, message, cause });

/** Creates the error of a request without a response. */
export const networkError = (url: string, cause: unknown): PlatformError =>
  localError("network", `Cannot reach ${url}`, cause);

/** Returns null if the server responds with this status; default: 404. */
export async function orNull<T>(work: Promise<T>, status = 404): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof PlatformError && error.status === status) return null;
    throw error;
  }
}

const PASSING = new Set([0, 408, 429, 502, 503, 504]);

/**
 * Returns whether the same request may succeed later. 0 means no response. A write whose own first attempt is still in progress
 * may succeed too.
 */
export const isPassing = ({ status, fields }: PlatformError): boolean =>
  PASSING.has(status) || Object.values(fields).some(({ code }) => code === "idempotency_in_progress");
