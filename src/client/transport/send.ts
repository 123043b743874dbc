import { REQUEST_TIMEOUT_MS } from "../limits.ts";
import type { Runtime } from "../runtime.ts";
import { attempt } from "./attempt.ts";
import { statusError } from "./errors.ts";
import { withRetries } from "./retries.ts";
import type { Method, QueryParameters, RequestOptions } from "./types.ts";

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
    const { query, body, signal, idempotent, raw: isRaw = false, timeoutMs = REQUEST_TIMEOUT_MS } = options;
    // Looked up at each request: tests and service workers replace it.
    const { fetch: fetchOnce = (address, init) => fetch(address, init) } = options;
    const headers = {
      ...(typeof idempotent === "string" ? { "Idempotency-Key": idempotent } : {}),
      ...options.headers,
    };
    // `asGiven` leaves nothing else.
    const init = { method, headers, body: (body ?? null) as BodyInit | null };
    const request = { url: urlOf(base, path, query), init, signal, timeoutMs, isRaw, fetch: fetchOnce };
    const once = () => attempt(request, runtime);
    return method === "GET" || typeof idempotent === "string" ? withRetries(once, runtime, signal) : once();
  };
