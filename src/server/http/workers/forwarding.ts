import { INNER_HEADER, innerHeaders } from "./inner-request.ts";
import { Relay } from "./relay.ts";

/** Bytes up to which a forwarded answer is sent with its length, and not in chunks. */
const WHOLE_MAX_BYTES = 1024 * 1024;
/** The path of a link at the main process. */
const LINK_PATH = "/link";
/** Headers of a WebSocket's handshake, which each hop makes itself. */
const OF_HANDSHAKE = [
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-extensions",
  "sec-websocket-protocol",
];

/** Proof that both ends of a connection are nodes of one cluster. */
export interface NodeTls {
  cert: string;
  key: string;
  ca: string;
  /** The name in the certificate of the other end. */
  serverName: string;
}

/** The main process, as a worker reaches it, or the owner, as another node does. */
export interface MainProcess {
  /** The path of its Unix socket, or the origin of its node port. */
  at: { unix: string } | { origin: string; tls: NodeTls };
  secret: string;
  /** The place of this worker, or a number that no other node has. */
  worker: number;
}

/** A WebSocket to the main process, and the headers with which the client's is to be upgraded. */
export interface Upstream {
  relay: Relay;
  headers: Headers;
}

/** A link on which this process holds WebSockets for the main process. */
export interface SocketLink {
  socket: WebSocket;
  /**
   * Asks for a WebSocket that this process holds, under a number of the link. Returns the headers with which the client's is to be
   * upgraded, or the answer where the main process has refused it. Errors: as `forward`.
   */
  ask(request: Request, peer: string, socket: number): Promise<Headers | Response>;
}

/** Passes requests on to the main process. */
export type Forwarding = ReturnType<typeof createForwarding>;

/** `ended`: aborts everything that is under way, when the other end is gone. */
export function createForwarding({ at, ...main }: MainProcess, ended?: AbortSignal) {
  let lastId = 0;
  /** Requests under way, by number. */
  const underWay = new Map<number, Request>();

  const send = (path: string, init: BunFetchRequestInit): Promise<Response> =>
    fetch(`${"unix" in at ? "http://main" : at.origin}${path}`, {
      ...init,
      ...("unix" in at ? { unix: at.unix } : { tls: at.tls }),
      redirect: "manual",
      decompress: false,
      // The main process answers whatever it takes: it has bounds of its own.
      timeout: false,
    } as BunFetchRequestInit);

  const answerOf = (id: number, request: Request, peer: string): Promise<Response> => {
    const headers = innerHeaders(request, { ...main, id, peer });
    const { method } = request;
    const signal = ended === undefined ? request.signal : AbortSignal.any([request.signal, ended]);
    return send(pathOf(request.url), { method, headers, body: request.body, signal });
  };

  const ask: SocketLink["ask"] = async (request, peer, socket) => {
    const headers = innerHeaders(request, { ...main, id: ++lastId, peer, socket });
    const signal = ended === undefined ? request.signal : AbortSignal.any([request.signal, ended]);
    const answer = await send(pathOf(request.url), { method: "GET", headers, signal });
    const answered = new Headers(answer.headers);
    if (!answered.has(INNER_HEADER)) return new Response(await answer.arrayBuffer(), answer);
    answered.delete(INNER_HEADER);
    return answered;
  };

  const addressOf = (path: string): string =>
    "unix" in at ? `ws+unix://${at.unix}:${path}` : `${at.origin.replace(/^http/, "ws")}${path}`;

  return {
    /** Sends a message of this process itself, which is no client's request. Errors: as `forward`. */
    tell(path: string, init: { method: "GET" | "POST"; body?: string } = { method: "GET" }): Promise<Response> {
      const headers = innerHeaders(new Request("http://main/", init), { ...main, id: 0, peer: "" });
      return send(path, { ...init, headers, ...(ended === undefined ? {} : { signal: ended }) });
    },
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
    /** Opens the link on which this process holds WebSockets for the main process. */
    link(): SocketLink {
      const headers = innerHeaders(new Request("http://main/"), { ...main, id: 0, peer: "" });
      const socket = new WebSocket(addressOf(LINK_PATH), {
        headers: Object.fromEntries(headers),
        ...("unix" in at ? {} : { tls: at.tls }),
      });
      const end = (): void => (socket.readyState === WebSocket.OPEN ? socket.terminate() : socket.close());
      ended?.addEventListener("abort", end, { once: true });
      socket.addEventListener("close", () => ended?.removeEventListener("abort", end), { once: true });
      return { socket, ask };
    },
    /** Opens a WebSocket for the request. Returns the answer where the main process has refused it. Errors: as `forward`. */
    async open(request: Request, peer: string): Promise<Upstream | Response> {
      const id = ++lastId;
      const headers = innerHeaders(request, { ...main, id, peer });
      const protocols = headers.get("sec-websocket-protocol");
      for (const name of OF_HANDSHAKE) headers.delete(name);
      const socket = new WebSocket(addressOf(pathOf(request.url)), {
        headers: Object.fromEntries(headers),
        ...("unix" in at ? {} : { tls: at.tls }),
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
