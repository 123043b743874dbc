import { innerHeaders } from "./inner-request.ts";
import { Relay } from "./relay.ts";

/** Bytes up to which a forwarded answer is sent with its length, and not in chunks. */
const WHOLE_MAX_BYTES = 1024 * 1024;
/** Headers of a WebSocket's handshake, which each hop makes itself. */
const OF_HANDSHAKE = [
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-extensions",
  "sec-websocket-protocol",
];

/** The main process, as a worker reaches it. */
export interface MainProcess {
  /** The path of its Unix socket. */
  path: string;
  secret: string;
  /** The place of this worker. */
  worker: number;
}

/** A WebSocket to the main process, and the headers with which the client's is to be upgraded. */
export interface Upstream {
  relay: Relay;
  headers: Headers;
}

/** Passes requests on to the main process. */
export type Forwarding = ReturnType<typeof createForwarding>;

export function createForwarding(main: MainProcess) {
  let lastId = 0;
  /** Requests under way, by number. */
  const underWay = new Map<number, Request>();

  const send = (path: string, init: BunFetchRequestInit): Promise<Response> =>
    fetch(`http://main${path}`, {
      ...init,
      unix: main.path,
      redirect: "manual",
      decompress: false,
      // The main process answers whatever it takes: it has bounds of its own.
      timeout: false,
    } as BunFetchRequestInit);

  const answerOf = (id: number, request: Request, peer: string): Promise<Response> => {
    const headers = innerHeaders(request, { ...main, id, peer });
    const { method, signal } = request;
    return send(pathOf(request.url), { method, headers, body: request.body, signal });
  };

  return {
    /** Returns a request that is under way; undefined: it has been answered. */
    underWay: (id: number): Request | undefined => underWay.get(id),
    /**
     * Forwards a request, in a stream in both directions, and ends it when its client is gone. Errors: the main process does not
     * answer.
     */
    async forward(request: Request, peer: string): Promise<Response> {
      const id = ++lastId;
      underWay.set(id, request);
      try {
        const answer = await answerOf(id, request, peer);
        const headers = new Headers(answer.headers);
        headers.delete("transfer-encoding");
        return new Response(await bodyOf(answer), { status: answer.status, headers });
      } finally {
        underWay.delete(id);
      }
    },
    /** Opens a WebSocket for the request. Returns the answer where the main process has refused it. Errors: as `forward`. */
    async open(request: Request, peer: string): Promise<Upstream | Response> {
      const id = ++lastId;
      const headers = innerHeaders(request, { ...main, id, peer });
      const protocols = headers.get("sec-websocket-protocol");
      for (const name of OF_HANDSHAKE) headers.delete(name);
      const address = `ws+unix://${main.path}:${pathOf(request.url)}`;
      const socket = new WebSocket(address, {
        headers: Object.fromEntries(headers),
        ...(protocols === null ? {} : { protocols: protocols.split(",").map((name) => name.trim()) }),
      });
      const relay = new Relay(socket);
      const isOpen = await opened(socket);
      const asking = new Request("http://main/");
      const answer = await send("/", { headers: innerHeaders(asking, { ...main, id: -id, peer }) });
      if (!isOpen) return new Response(await answer.arrayBuffer(), answer);
      return { relay, headers: answer.headers };
    },
  };
}

const opened = (socket: WebSocket): Promise<boolean> =>
  new Promise((resolve) => {
    socket.addEventListener("open", () => resolve(true), { once: true });
    socket.addEventListener("close", () => resolve(false), { once: true });
  });

/** Returns the path and query of a URL, whatever its host. */
function pathOf(url: string): string {
  const hostAt = url.indexOf("//") + 2;
  const pathAt = url.startsWith("/") ? 0 : url.indexOf("/", hostAt);
  return pathAt < 0 ? "/" : url.slice(pathAt);
}

/** Returns the body of an answer: whole where it is short, so that it has a length. */
async function bodyOf(answer: Response): Promise<ArrayBuffer | Response["body"]> {
  if (answer.body === null) return null;
  const length = answer.headers.get("content-length");
  return length !== null && Number(length) <= WHOLE_MAX_BYTES ? answer.arrayBuffer() : answer.body;
}
