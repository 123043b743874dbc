import { listen } from "../listeners.ts";
import { jittered, pause, type Runtime } from "../runtime.ts";
import { errorOf, isPassing, localError, networkError, PlatformError, statusError } from "./errors.ts";
import type { Method, QueryParameters, RequestOptions } from "./types.ts";

/**
 * Sends a request once. Returns the JSON of its response, undefined for an empty one, or the `Response` itself if `raw`. Errors:
 * `PlatformError`; the reason of `signal` when it is aborted.
 */
async function attempt(
  url: string,
  init: RequestInit,
  { signal, timeoutMs = REQUEST_TIMEOUT_MS, raw: isRaw = false, fetch: fetchOnce }: RequestOptions,
  runtime: Runtime,
): Promise<unknown> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  // `AbortSignal.any` is missing in some supported browsers.
  const stopListening = listen(signal, "abort", () => controller.abort(signal?.reason));
  let isLate = false;
  const cancel = runtime.after(timeoutMs || NEVER_MS, () => {
    isLate = true;
    controller.abort();
  });
  try {
    const given = { ...init, signal: controller.signal };
    // Looked up at each request, because tests and service workers replace it.
    const response = await (fetchOnce?.(url, given) ?? fetch(url, given));
    if (response.status >= 400) throw response;
    if (isRaw) return response;
    const text = await response.text();
    return text === "" ? undefined : JSON.parse(text);
  } catch (cause) {
    if (cause instanceof Response) throw await errorOf(cause);
    if (isLate) throw localError("timeout", `${url} did not answer within ${timeoutMs} ms`);
    signal?.throwIfAborted();
    throw networkError(url, cause);
  } finally {
    // The caller still reads the body of a raw response, which `signal` can still abort.
    cancel();
    if (!isRaw) stopListening();
  }
}

/** Maximum number of retries. */
const RETRIES_MAX = 3;
/** Initial backoff of retries, with jitter; it doubles each time. */
const RETRY_BACKOFF_MS = 300;
/** Longest `Retry-After` that is waited for. The error reports longer ones. */
const RETRY_AFTER_MAX_MS = 20_000;

/** Returns whether a retry may succeed soon. After a timeout it may not: the server had enough time. */
const isRepeated = (error: PlatformError): boolean =>
  error.code !== "timeout" && error.status !== 504 && isPassing(error);

/** Returns the wait before attempt `count` + 1 in milliseconds; null if it would be too long. */
function waitBefore(count: number, { retryAfter }: PlatformError, runtime: Runtime): number | null {
  const askedMs = (retryAfter ?? 0) * 1000;
  return askedMs > RETRY_AFTER_MAX_MS ? null : askedMs + jittered(runtime, RETRY_BACKOFF_MS * 2 ** count);
}

/** Runs `work` up to four times, while it fails temporarily. Errors: the last one; the signal's reason. */
export async function withRetries<T>(work: () => Promise<T>, runtime: Runtime, signal?: AbortSignal): Promise<T> {
  for (let count = 0; ; count++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof PlatformError) || !isRepeated(error) || count === RETRIES_MAX) throw error;
      const waitMs = waitBefore(count, error, runtime);
      if (waitMs === null) throw error;
      await pause(runtime, waitMs, signal);
    }
  }
}

/** 23 days: timers take at most 24. */
const NEVER_MS = 2e9;
/** Timeout of one attempt. The server aborts its own longest queries after 30 s. */
const REQUEST_TIMEOUT_MS = 40_000;

export interface ServerAddress {
  /** Address without a trailing slash. */
  base: string;
  runtime: Runtime;
}

/** Sends requests without regard to the session. */
export type Send = (method: Method, path: string, options: RequestOptions) => Promise<unknown>;

/**
 * Returns the address of a path. Errors: `not_found` for a path with an empty segment, `.` or `..`: no name or key is one, and
 * `fetch` would resolve it to another path, such as from a file of a bucket to another endpoint.
 */
export function urlOf(base: string, path: string, query: QueryParameters = {}): string {
  if (/\/\.{0,2}(\/|$)/.test(path)) throw statusError(404, `There is nothing at ${path}`);
  const given = Object.entries(query).flatMap(([name, value]) => (value == null ? [] : [[name, String(value)]]));
  return base + path + (given.length === 0 ? "" : `?${new URLSearchParams(given)}`);
}

/** Returns whether `fetch` takes a body as it is. */
const isBody = (body: unknown): body is BodyInit =>
  typeof body === "string" ||
  body instanceof Blob ||
  body instanceof FormData ||
  body instanceof ArrayBuffer ||
  ArrayBuffer.isView(body);

/**
 * Serializes a body. Errors: `invalid` for values that JSON turns into null: NaN, Infinity, and undefined in a list. A condition
 * with null would find other records.
 */
export const jsonOf = (body: unknown): string =>
  JSON.stringify(body, function (this: unknown, name, value) {
    if (Array.isArray(this) && value === undefined) throw statusError(400, `${name} must not be undefined`);
    if (typeof value !== "number" || Number.isFinite(value)) return value;
    throw statusError(400, `${name} must be a finite number`);
  });

/** Serializes a JSON body now, so that later changes of the object are not sent. Errors: as `jsonOf`. */
export function asGiven(options: RequestOptions): RequestOptions {
  const { body, headers } = options;
  if (body === undefined || isBody(body)) return options;
  return { ...options, body: jsonOf(body), headers: { "Content-Type": "application/json", ...headers } };
}

/** Creates a sender. JSON bodies must be serialized already: see `asGiven`. */
export const createSend =
  ({ base, runtime }: ServerAddress): Send =>
  (method, path, options) => {
    const { query, body, signal, idempotent, keepalive = false } = options;
    const hasKey = typeof idempotent === "string";
    const headers = { ...(hasKey && { "Idempotency-Key": idempotent }), ...options.headers };
    // `asGiven` leaves no other types.
    const init = { method, headers, keepalive, body: (body ?? null) as BodyInit | null };
    const url = urlOf(base, path, query);
    const once = () => attempt(url, init, options, runtime);
    return method === "GET" || hasKey ? withRetries(once, runtime, signal) : once();
  };
