import type { User } from "../auth/types.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Query parameters; undefined and null are left out. */
export type QueryParameters = Readonly<Record<string, string | number | boolean | undefined | null>>;

export interface RequestOptions {
  query?: QueryParameters | undefined;
  /** Body, sent as JSON. A `Blob`, `FormData`, text or bytes are sent unchanged. */
  body?: unknown;
  headers?: Readonly<Record<string, string>> | undefined;
  /** Aborts the request, including the waits between attempts. */
  signal?: AbortSignal | undefined;
  /**
   * Whether a write is idempotent: true, or its idempotency key. If somebody is signed in, it carries an `Idempotency-Key` and is
   * retried like a GET. The endpoint must accept the header. Default: false.
   */
  idempotent?: boolean | string | undefined;
  /** Whether to send the access token. Default: true. */
  auth?: boolean | undefined;
  /** Whether to return the `Response` of any status below 400, instead of its JSON. Default: false. */
  raw?: boolean | undefined;
  /** Whether the request survives leaving the page. Default: false. */
  keepalive?: boolean | undefined;
  /** Sends each attempt in place of `fetch`. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /**
   * Timeout of one attempt in milliseconds, up to the headers of the response and, unless `raw`, its body. 0: none. Default:
   * 40,000.
   */
  timeoutMs?: number | undefined;
}

/** HTTP transport of the client. Features reach the server over HTTP only through it. */
export interface Transport {
  /**
   * Sends a request with the user's access token. GETs and idempotent writes are retried up to three times after a lost
   * connection, 429, 502, 503 and 409 `idempotency_in_progress`. A 401 for an expired token triggers one refresh. Errors:
   * `PlatformError`; the reason of `signal` when it is aborted.
   */
  request<T = unknown>(method: Method, path: string, options?: RequestOptions): Promise<T>;
  /**
   * Returns a valid access token, refreshed if needed; null when nobody is signed in. Errors: `PlatformError` if a refresh fails.
   */
  token(): Promise<string | null>;
  /** Returns the id of the signed-in user; null without one. */
  userId(): string | null;
  /** Calls the listener when another user signs in, or the user signs out. Returns a function that unsubscribes. */
  onAuth(listener: (user: User | null) => void): () => void;
  /** Returns the absolute address of a path such as `/api/health`. */
  url(path: string, query?: QueryParameters): string;
}
