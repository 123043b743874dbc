/** What went wrong, for programs. `network`: no answer came; all others are the server's, or follow from its status. */
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
  /** A write that waited offline: its answer was lost, and it is too old to be sent again. */
  | "unknown"
  | "internal";

/** A fault of one field. `code` is the server's, such as `required` or `not_unique`. */
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

/** Every failure of a request. One that the caller's own `signal` has ended rejects with the signal's reason instead. */
export class PlatformError extends Error {
  /** The HTTP status; 0 where no answer came. */
  declare readonly status: number;
  declare readonly code: ErrorCode;
  /** The fields at fault by their paths; empty where none is. */
  declare readonly fields: Readonly<Record<string, FieldProblem>>;
  /** `X-Request-Id` of the answer, by which the server's log has the cause; null without an answer. */
  declare readonly requestId: string | null;
  /** Seconds after which the server asks to be tried again; null where it does not say. */
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

/** The code of a status of 400 or more. */
export const codeOf = (status: number): ErrorCode =>
  CODES[status] ?? (status < 500 ? "invalid" : status < 502 ? "internal" : "unavailable");

/** The error that an answer of 400 or more describes. A body that is not the server's, such as a proxy's page, is left out. */
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

/** An error with the code that HTTP has for its status. */
export const statusError = (status: number, message: string): PlatformError =>
  new PlatformError({ status, code: codeOf(status), message });

/** What a message of a WebSocket denies, as HTTP would deny it to this user; null: nobody is signed in. */
export const deniedError = (userId: string | null): PlatformError =>
  userId === null ? statusError(401, "Authentication required") : statusError(403, "Access denied");

/** An error that no answer describes. */
export const localError = (code: ErrorCode, message: string, cause?: unknown): PlatformError =>
  new PlatformError({ status: 0, code, message, cause });

/** The error of a request that nothing answered. */
export const networkError = (url: string, cause: unknown): PlatformError =>
  localError("network", `Cannot reach ${url}`, cause);

/** null where the server answers with this status; 404: there is no such thing. */
export async function orNull<T>(work: Promise<T>, status = 404): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof PlatformError && error.status === status) return null;
    throw error;
  }
}

const PASSING = new Set([0, 408, 429, 502, 503, 504]);

/** Whether the same request may succeed later; 0: no answer came. So may one whose own first try is still under way. */
export const isPassing = ({ status, fields }: PlatformError): boolean =>
  PASSING.has(status) || Object.values(fields).some(({ code }) => code === "idempotency_in_progress");
