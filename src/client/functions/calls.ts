import type { ClientContext } from "../context.ts";
import { PlatformError } from "../transport/errors.ts";
import type { Method } from "../transport/types.ts";

/** Parses numbers, booleans, objects and lists. Other texts stay unchanged, including date-like ones. */
function readText(text: string): unknown {
  if (!/^\s*[[{\d.tf-]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Reads the content of a response by its type. A stream becomes an async generator of events, or of chunks as they arrive. */
async function contentOf(response: Response): Promise<unknown> {
  const { headers } = response;
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  if (type === "text/event-stream") return eventsOf(response);
  if (type === "application/octet-stream") return response.arrayBuffer();
  // Of several parts with the same name the last one wins.
  if (type === "multipart/form-data") return Object.fromEntries(await response.formData());
  const isStream = headers.get("transfer-encoding") === "chunked" && !headers.has("content-length");
  if (isStream && type.startsWith("text/")) return valuesOf(response);
  const text = await response.text();
  if (type !== "application/json") return readText(text);
  return text === "" ? null : JSON.parse(text);
}

async function* piecesOf({ body }: Response): AsyncGenerator<string> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    // An abandoned iteration cancels the stream.
    void reader.cancel().catch(() => {});
  }
}

async function* valuesOf(response: Response): AsyncGenerator<unknown> {
  for await (const piece of piecesOf(response)) yield readText(piece);
}

/** Parses server-sent events into objects with their fields. */
async function* eventsOf(response: Response): AsyncGenerator<unknown> {
  let waiting = "";
  for await (const piece of piecesOf(response)) {
    const blocks = (waiting + piece).split("\n\n");
    waiting = blocks.pop() ?? "";
    yield* blocks.flatMap(eventOf);
  }
  yield* eventOf(waiting);
}

/** Parses one event; empty for a block of comments. */
function eventOf(block: string): Record<string, unknown>[] {
  const fields = block.split("\n").flatMap((line) => {
    const at = line.indexOf(":");
    return at < 1 ? [] : [[line.slice(0, at).trim(), readText(line.slice(at + 1).replace(/^ /, ""))]];
  });
  return fields.length === 0 ? [] : [Object.fromEntries(fields)];
}

/** Options of a call besides its body. */
interface CallOptions {
  query?: Readonly<Record<string, unknown>>;
  headers?: HeadersInit;
  fetch?: RequestInit;
  throwHttpError?: boolean | ((error: RouteError) => boolean);
}

interface Outcome {
  data: unknown;
  error: RouteError | null;
  response: Response | undefined;
  status: number;
  headers: Headers | undefined;
}

/** Error of a response outside 2xx, with its content; or of a request without a response, with the `PlatformError`. */
class RouteError extends Error {
  readonly status: number;
  readonly value: unknown;

  constructor(status: number, value: unknown) {
    super(String(value));
    this.status = status;
    this.value = value;
  }
}

/** Calls a route as Eden Treaty does, whose types it has. `path` ends with the method. */
export async function call(
  context: ClientContext,
  path: readonly string[],
  given: readonly unknown[],
): Promise<Outcome> {
  const method = path.at(-1) ?? "";
  const hasBody = method !== "get" && method !== "head";
  // Eden's types check the arguments.
  const [body, options = {}] = (hasBody ? given : [undefined, given[0]]) as [unknown, CallOptions?];
  const outcome = await send(context, path, body, options).then(
    async (response) => {
      const { status, headers, ok } = response;
      const content = await contentOf(response);
      return {
        data: ok ? content : null,
        error: ok ? null : new RouteError(status, content),
        response,
        status,
        headers,
      };
    },
    (cause) => ({
      data: null,
      error: new RouteError(503, cause),
      response: undefined,
      status: 503,
      headers: undefined,
    }),
  );
  const { throwHttpError: isThrown } = options;
  const { error } = outcome;
  if (error !== null && (typeof isThrown === "function" ? isThrown(error) : isThrown === true)) throw error;
  return outcome;
}

/** Returns the response, whatever its status. Errors: `PlatformError` without a response. */
async function send(
  { transport }: ClientContext,
  path: readonly string[],
  given: unknown,
  { query = {}, headers, fetch: init }: CallOptions,
): Promise<Response> {
  let refusal: Response | null = null;
  const body = bodyOf(given);
  const type = typeof given === "object" ? "application/json" : "text/plain";
  const declared = given === undefined || body instanceof FormData ? {} : { "content-type": type };
  try {
    return await transport.request<Response>(
      // The last path segment is the HTTP method in lower case.
      (path.at(-1) ?? "").toUpperCase() as Method,
      `${["/api/functions", ...path.slice(0, -1)].join("/")}${queryText(query)}`,
      {
        body,
        headers: { ...declared, ...Object.fromEntries(new Headers(headers)) },
        signal: init?.signal ?? undefined,
        raw: true,
        // Streaming responses have no time limit.
        timeoutMs: 0,
        async fetch(address, sent) {
          const response = await fetch(address, { ...init, ...sent });
          refusal = response.status < 400 ? null : response.clone();
          return response;
        },
      },
    );
  } catch (error) {
    // A refusal is the outcome only of the last attempt: one that was followed by a lost connection does not count.
    if (error instanceof PlatformError && error.status !== 0 && refusal !== null) return refusal;
    throw error;
  }
}

/** Builds a query string. Lists repeat their name; null and undefined are left out. */
function queryText(query: Readonly<Record<string, unknown>>): string {
  const parameters = new URLSearchParams();
  for (const [name, given] of Object.entries(query)) {
    for (const value of Array.isArray(given) ? given : [given]) {
      if (value != null) parameters.append(name, textOf(value instanceof Date ? value.toISOString() : value));
    }
  }
  const text = String(parameters);
  return text === "" ? "" : `?${text}`;
}

const textOf = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

const isList = (value: unknown): value is Iterable<unknown> =>
  Array.isArray(value) || (typeof FileList !== "undefined" && value instanceof FileList);
const isFile = (value: unknown): value is Blob => value instanceof Blob;

/** Encodes a body: an object with files as a form, any other as JSON. */
function bodyOf(given: unknown): string | FormData | undefined {
  if (given === undefined || given instanceof FormData) return given;
  const members = Object.entries(typeof given === "object" ? (given ?? {}) : {});
  if (!members.some(([, value]) => isFile(value) || (isList(value) && [...value].some(isFile)))) return textOf(given);
  const form = new FormData();
  const add = (name: string, value: unknown) => form.append(name, isFile(value) ? value : textOf(value));
  for (const [name, value] of members) {
    // A list of objects is one JSON field.
    const isSplit = isList(value) && ![...value].some((one) => typeof one === "object" && one !== null && !isFile(one));
    for (const one of isSplit ? value : [value]) add(name, one);
  }
  return form;
}

type Listener = (event: Event & { data?: unknown }) => void;

const parsed = (data: unknown): unknown => {
  if (data === "null") return null;
  return typeof data === "string" ? readText(data) : data;
};

/** Adds the parsed content to a message event. */
const heard = (event: Parameters<Listener>[0]) =>
  event.type === "message"
    ? ({ ...event, type: "message", data: parsed(event.data), rawData: event.data } as never)
    : event;

/** WebSocket of a route, with the members of Eden's. */
class RouteSocket {
  readonly url: string;
  readonly ws: WebSocket;
  readonly on = this.addEventListener;
  readonly off = this.removeEventListener;
  readonly #heard = new WeakMap<Listener, Listener>();

  constructor(ws: WebSocket) {
    this.ws = ws;
    this.url = ws.url;
  }

  /** Sends data once the socket is open. */
  send(data: unknown): this {
    for (const one of Array.isArray(data) ? data : [data]) {
      const text = typeof one === "object" ? JSON.stringify(one) : String(one);
      if (this.ws.readyState === 0) this.ws.addEventListener("open", () => this.ws.send(text), { once: true });
      else this.ws.send(text);
    }
    return this;
  }

  subscribe(listener: Listener, options?: AddEventListenerOptions): this {
    return this.addEventListener("message", listener, options);
  }

  addEventListener(type: string, listener: Listener, options?: AddEventListenerOptions): this {
    // One wrapper serves all event types, as the socket itself distinguishes them.
    const own: Listener = this.#heard.get(listener) ?? ((event) => listener(heard(event)));
    this.#heard.set(listener, own);
    this.ws.addEventListener(type, own as EventListener, options);
    return this;
  }

  removeEventListener(type: string, listener: Listener): this {
    this.ws.removeEventListener(type, (this.#heard.get(listener) ?? listener) as EventListener);
    return this;
  }

  close(): this {
    this.ws.close();
    return this;
  }
}

/** Opens the WebSocket of a route. Pages cannot send headers with a WebSocket, so the token is sent as its subprotocol. */
export async function openRouteSocket(
  { transport, options }: ClientContext,
  path: readonly string[],
  given: unknown,
): Promise<RouteSocket> {
  // Without its token the server refuses the connection, which the socket reports like any other refusal.
  const token = await transport.token().catch(() => "none");
  const { query = {} } = (given ?? {}) as { query?: Record<string, string> };
  const url = transport.url(`/api/functions/${path.join("/")}`, query).replace(/^http/, "ws");
  const { webSocket: WebSocketClass = globalThis.WebSocket } = options;
  return new RouteSocket(token === null ? new WebSocketClass(url) : new WebSocketClass(url, ["bearer", token]));
}

// This stays in one file: a page that opens a socket also calls routes.
