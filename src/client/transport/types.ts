import type { User } from "../auth/types.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Parameters of a query; those that are undefined or null are left out. */
export type QueryParameters = Readonly<Record<string, string | number | boolean | undefined | null>>;

export interface RequestOptions {
  query?: QueryParameters | undefined;
  /** Sent as JSON. A `Blob`, `FormData`, text or bytes go as they are. */
  body?: unknown;
  headers?: Readonly<Record<string, string>> | undefined;
  /** Ends the request, and the waits between its tries. */
  signal?: AbortSignal | undefined;
  /**
   * true, or a key: a write that carries an `Idempotency-Key` if somebody is signed in, and then is tried again like a GET. The
   * endpoint has to take the header. Default: false.
   */
  idempotent?: boolean | string | undefined;
  /** false: no access token is sent. Default: true. */
  auth?: boolean | undefined;
  /** true: the answer is the `Response`, whatever its status is below 400. Default: its JSON. */
  raw?: boolean | undefined;
  /** true: a request that is under way when the page goes away is still sent. Default: false. */
  keepalive?: boolean | undefined;
  /** Sends each try in place of `fetch`. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** One try, up to the headers of the answer and, unless `raw`, its body. 0: any time. Default: 40,000. */
  timeoutMs?: number | undefined;
}

/** What the client sends its requests with. Features use nothing else to reach the server over HTTP. */
export interface Transport {
  /**
   * Sends a request, with the access token of the user. GETs and idempotent writes are tried again up to three times after a
   * lost connection, 429, 502, 503 and 409 `idempotency_in_progress`. A 401 of an expired token is answered by one refresh.
   * Errors: `PlatformError`; the reason of `signal` when that ends it.
   */
  request<T = unknown>(method: Method, path: string, options?: RequestOptions): Promise<T>;
  /** A valid access token, refreshed if needed; null when nobody is signed in. Errors: `PlatformError` when it cannot be refreshed now. */
  token(): Promise<string | null>;
  /** The id of the signed-in user; null when nobody is. */
  userId(): string | null;
  /** Calls the listener when another user signs in, or the user signs out. The function ends that. */
  onAuth(listener: (user: User | null) => void): () => void;
  /** The absolute address of a path such as `/api/health`. */
  url(path: string, query?: QueryParameters): string;
}
