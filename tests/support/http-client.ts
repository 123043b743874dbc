import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { newestPositions } from "./through-follower.ts";

export interface Answer<T> {
  status: number;
  headers: Headers;
  /** JSON of the response; null without a body, `{ text }` if it is not JSON. */
  body: T;
}

export interface RequestOptions {
  headers?: Record<string, string>;
  query?: Record<string, string | number | boolean>;
}

/** Body of every error. */
export interface ErrorAnswer {
  code: number;
  message: string;
  data?: Record<string, { code: string; message: string }>;
}

/** Envelope of a list. */
export interface ListAnswer<T = JsonObject> {
  items: T[];
  total: number | null;
  page: number | null;
  perPage: number | null;
  hasMore: boolean | null;
  cursor: string | null;
}

/** Client of a platform that sends one caller's credentials. */
export interface HttpClient {
  /** Sends a request like `fetch`, with a path instead of an address. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  get<T = JsonObject>(path: string, options?: RequestOptions): Promise<Answer<T>>;
  head(path: string, options?: RequestOptions): Promise<Answer<null>>;
  post<T = JsonObject>(path: string, body?: JsonValue, options?: RequestOptions): Promise<Answer<T>>;
  put<T = JsonObject>(path: string, body?: JsonValue, options?: RequestOptions): Promise<Answer<T>>;
  patch<T = JsonObject>(path: string, body?: JsonValue, options?: RequestOptions): Promise<Answer<T>>;
  delete<T = JsonObject>(path: string, body?: JsonValue, options?: RequestOptions): Promise<Answer<T>>;
}

function withQuery(path: string, query: RequestOptions["query"]): string {
  if (query === undefined) return path;
  const pairs = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]);
  return `${path}${path.includes("?") ? "&" : "?"}${new URLSearchParams(pairs)}`;
}

async function readAnswer<T>(response: Response): Promise<Answer<T>> {
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") === true;
  const body: unknown = text === "" ? null : isJson ? JSON.parse(text) : { text };
  // The test names the expected type, and its assertions check it.
  return { status: response.status, headers: response.headers, body: body as T };
}

/**
 * Creates a client. `baseUrl` is called at each request, as a restarted platform has another port. `ca`: a certificate authority
 * to trust.
 */
export function createHttpClient(
  baseUrl: () => string,
  credentials: Record<string, string> = {},
  ca: string | null = null,
): HttpClient {
  const trust = ca === null ? {} : { tls: { ca } };
  const positions = newestPositions(baseUrl);
  const send = async (path: string, init: RequestInit = {}) => {
    const headers = new Headers(credentials);
    new Headers(init.headers).forEach((value, name) => {
      headers.set(name, value);
    });
    positions?.send(headers);
    const response = await fetch(`${baseUrl()}${path}`, { redirect: "manual", ...trust, ...init, headers });
    positions?.take(response.headers);
    return response;
  };
  const call = async <T>(method: string, path: string, body?: JsonValue, options: RequestOptions = {}) => {
    const json = body === undefined ? {} : { "content-type": "application/json" };
    const response = await send(withQuery(path, options.query), {
      method,
      headers: { ...json, ...options.headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    return readAnswer<T>(response);
  };
  return {
    fetch: send,
    get: (path, options) => call("GET", path, undefined, options),
    head: (path, options) => call("HEAD", path, undefined, options),
    post: (path, body, options) => call("POST", path, body, options),
    put: (path, body, options) => call("PUT", path, body, options),
    patch: (path, body, options) => call("PATCH", path, body, options),
    delete: (path, body, options) => call("DELETE", path, body, options),
  };
}
