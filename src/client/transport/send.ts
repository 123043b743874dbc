import { listen } from "../listeners.ts";
import { jittered, pause, type Runtime } from "../runtime.ts";
import { errorOf, isPassing, localError, networkError, PlatformError, statusError } from "./errors.ts";
import type { Method, QueryParameters, RequestOptions } from "./types.ts";

/**
 * Sends a request once. Gives the JSON of its answer, undefined for an empty one, or the `Response` itself if `raw`. Errors:
 * `PlatformError`; the reason of `signal` when that has ended it.
 */
async function attempt(
  url: string,
  init: RequestInit,
  { signal, timeoutMs = REQUEST_TIMEOUT_MS, raw: isRaw = false, fetch: fetchOnce }: RequestOptions,
  runtime: Runtime,
): Promise<unknown> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  // `AbortSignal.any` is younger than the browsers that the client supports.
  const stopListening = listen(signal, "abort", () => controller.abort(signal?.reason));
  let isLate = false;
  const cancel = runtime.after(timeoutMs || NEVER_MS, () => {
    isLate = true;
    controller.abort();
  });
  try {
    const given = { ...init, signal: controller.signal };
    // Looked up at each request: tests and service workers replace it.
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
    // The caller of a raw answer still reads its body, which `signal` goes on ending.
    cancel();
    if (!isRaw) stopListening();
  }
}

/** Further tries of a request that may be repeated. */
const RETRIES_MAX = 3;
/** The wait before the first further try; each next one is twice as long, less up to a half by chance. */
const RETRY_BACKOFF_MS = 300;
/** A longer `Retry-After` is not waited for: the error says it. */
const RETRY_AFTER_MAX_MS = 20_000;

/** Whether the same request may have another outcome soon. After a timeout it has not: the server was asked for long enough. */
const isRepeated = (error: PlatformError): boolean =>
  error.code !== "timeout" && error.status !== 504 && isPassing(error);

/** The wait before try `count` + 1, in milliseconds; null where it would be too long. */
function waitBefore(count: number, { retryAfter }: PlatformError, runtime: Runtime): number | null {
  const askedMs = (retryAfter ?? 0) * 1000;
  return askedMs > RETRY_AFTER_MAX_MS ? null : askedMs + jittered(runtime, RETRY_BACKOFF_MS * 2 ** count);
}

/** Runs `work` up to four times, while it fails by what passes. Errors: the last one; the signal's reason. */
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

/** 23 days: timers take no more than 24. */
const NEVER_MS = 2e9;
/** One try of a request. The server ends its own longest queries after 30 s. */
const REQUEST_TIMEOUT_MS = 40_000;

export interface ServerAddress {
  /** Without a slash at its end. */
  base: string;
  runtime: Runtime;
}

/** Sends requests without looking at who is signed in. */
export type Send = (method: Method, path: string, options: RequestOptions) => Promise<unknown>;

/**
 * Errors: `not_found` for a path with a segment that is empty, `.` or `..`: no name or key is one, and `fetch` would lead elsewhere
 * by it, such as from a file of a bucket to another endpoint.
 */
export function urlOf(base: string, path: string, query: QueryParameters = {}): string {
  if (/\/\.{0,2}(\/|$)/.test(path)) throw statusError(404, `There is nothing at ${path}`);
  const given = Object.entries(query).flatMap(([name, value]) => (value == null ? [] : [[name, String(value)]]));
  return base + path + (given.length === 0 ? "" : `?${new URLSearchParams(given)}`);
}

/** What `fetch` takes as it is. */
const isBody = (body: unknown): body is BodyInit =>
  typeof body === "string" ||
  body instanceof Blob ||
  body instanceof FormData ||
  body instanceof ArrayBuffer ||
  ArrayBuffer.isView(body);

/**
 * Errors: `invalid` for what JSON would have null for: NaN, Infinity, and undefined in a list. A condition with null finds other
 * records.
 */
export const jsonOf = (body: unknown): string =>
  JSON.stringify(body, function (this: unknown, name, value) {
    if (Array.isArray(this) && value === undefined) throw statusError(400, `${name} must not be undefined`);
    if (typeof value !== "number" || Number.isFinite(value)) return value;
    throw statusError(400, `${name} must be a finite number`);
  });

/** With a body of JSON as its text of now: what its owner changes later is not sent. Errors: as `jsonOf`. */
export function asGiven(options: RequestOptions): RequestOptions {
  const { body, headers } = options;
  if (body === undefined || isBody(body)) return options;
  return { ...options, body: jsonOf(body), headers: { "Content-Type": "application/json", ...headers } };
}

/** A body of JSON has to be text already: see `asGiven`. */
export const createSend =
  ({ base, runtime }: ServerAddress): Send =>
  (method, path, options) => {
    const { query, body, signal, idempotent, keepalive = false } = options;
    const hasKey = typeof idempotent === "string";
    const headers = { ...(hasKey && { "Idempotency-Key": idempotent }), ...options.headers };
    // `asGiven` leaves nothing else.
    const init = { method, headers, keepalive, body: (body ?? null) as BodyInit | null };
    const url = urlOf(base, path, query);
    const once = () => attempt(url, init, options, runtime);
    return method === "GET" || hasKey ? withRetries(once, runtime, signal) : once();
  };
