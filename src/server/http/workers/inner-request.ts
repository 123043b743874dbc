/** The header by which a worker says what the request is that it forwards. Clients of the public port may send it; it counts for nothing there. */
export const INNER_HEADER = "x-platform-worker";

/** Facts about a forwarded request that the request itself does not show. */
export interface InnerRequest {
  /** The worker's place. */
  worker: number;
  /**
   * The number of the request in its worker; 0: it is no client's. A negative one asks for the answer to that upgrade, which a WebSocket
   * does not show.
   */
  id: number;
  /** The address of the connection to the worker. */
  peer: string;
  /** Headers that the client has not sent, and that the hop may add. */
  absent: readonly string[];
  /** The declared length of a body that the hop leaves out, since it is a GET's or a HEAD's; null: there is none. */
  omitted: string | null;
  /** The number of the WebSocket that the worker holds, and asks for; null: it is none. */
  socket: number | null;
}

/** Headers that `fetch` adds where there are none. */
const ADDED = ["accept", "accept-encoding", "host", "user-agent"] as const;
/** Headers of the connection alone. */
const OF_CONNECTION = ["connection", "keep-alive", "expect", "transfer-encoding", "upgrade", INNER_HEADER] as const;

type InnerAbout = Pick<InnerRequest, "worker" | "id" | "peer"> & Partial<Pick<InnerRequest, "socket">>;

/** Returns the headers with which a request is forwarded. `secret` proves that a worker sends them. */
export function innerHeaders(
  request: Request,
  { secret, socket = null, ...about }: InnerAbout & { secret: string },
): Headers {
  const headers = new Headers(request.headers);
  const isBodiless = request.method === "GET" || request.method === "HEAD";
  const omitted = isBodiless ? declaredBody(request.headers) : null;
  const absent = ADDED.filter((name) => !headers.has(name));
  for (const name of OF_CONNECTION) headers.delete(name);
  if (isBodiless) headers.delete("content-length");
  headers.set(
    INNER_HEADER,
    `${secret} ${JSON.stringify({ ...about, absent, omitted, socket } satisfies InnerRequest)}`,
  );
  return headers;
}

function declaredBody(headers: Headers): string | null {
  const length = headers.get("content-length");
  if (length !== null && length !== "0") return length;
  return headers.has("transfer-encoding") ? "1" : null;
}

/** Reads what a worker says of a request, and gives the request the headers that its client has sent. null: no worker has sent it. */
export function readInner(request: Request, secret: string): InnerRequest | null {
  const { headers } = request;
  const text = headers.get(INNER_HEADER);
  if (text?.startsWith(`${secret} `) !== true) return null;
  // The worker, which knows the secret, has written it.
  const inner = JSON.parse(text.slice(secret.length + 1)) as InnerRequest;
  for (const name of [INNER_HEADER, ...inner.absent]) headers.delete(name);
  if (inner.omitted !== null) headers.set("content-length", inner.omitted);
  if (inner.socket !== null) headers.set("upgrade", "websocket");
  return inner;
}
