import http from "node:http";
import type { Server } from "bun";
import type { AnyElysia } from "elysia";
import { createSocketServer, type SocketHandler, type SocketServer } from "../sockets/server.ts";

export const HOST_DEFAULT = "127.0.0.1";
export const PORT_DEFAULT = 8787;
/**
 * Longer than the slowest answer (a query of 30 s that waited for 30) takes to begin. Bun closes a connection on which nothing
 * moves for so long; a body slower than some 20 KiB/s counts as nothing.
 */
const IDLE_TIMEOUT_SECONDS = 120;
/**
 * Of a request's line and headers together: a filter may name 1,000 ids, and a cursor hold long texts. Bun's default is a
 * quarter of it.
 */
const HEADERS_MAX_BYTES = 64 * 1024;
const SCHEME = "http://";
/** Uploads are bounded by their bucket, JSON bodies where they are read; this bounds what neither reads. */
const REQUEST_MAX_BYTES = 1024 ** 4;

/** The network side of a platform: before it listens there are no sockets, and requests come from the process itself. */
export interface Listener {
  readonly sockets: SocketServer;
  /** The client's address. */
  addressOf(request: Request): string;
  /** While it is held, nothing but its handler ends a request's connection. */
  holdOpen(request: Request, isHeld: boolean): void;
  /** `http://HOST:PORT`; null while it does not listen. */
  origin(): string | null;
  /** Errors: it listens already or was stopped; the port cannot be had. */
  listen(
    server: AnyElysia,
    options: { host?: string | undefined; port?: number | undefined; failure(cause: unknown): Response },
  ): { url: string; port: number };
  /** Stops accepting; what is under way goes on. */
  refuse(): void;
  /** The same, closes sockets with 1001, and resolves when what was under way is answered. */
  stop(): Promise<void>;
}

/**
 * `trustProxy`: the address is what the proxy in front wrote last into `X-Forwarded-For`. `messageMaxBytes`: of a WebSocket
 * message, `waitingMaxBytes`: what may wait for a WebSocket that reads slowly; where an area needs more than the default. The
 * other two have defaults that only tests change. Decisions 2.
 */
export function createListener(options: {
  trustProxy: boolean;
  socketsMax?: number;
  messageMaxBytes?: number;
  waitingMaxBytes?: number;
  idleTimeoutSeconds?: number;
  socketIdleSeconds?: number;
  /** On the answer to an upgrade. */
  upgradeHeaders?: Readonly<Record<string, string>>;
}): Listener {
  const { idleTimeoutSeconds = IDLE_TIMEOUT_SECONDS } = options;
  let listening: Server<SocketHandler> | null = null;
  const originals = new WeakMap<Request, Request>();
  let knownOrigin: string | null = null;
  /** Without a host (HTTP/1.0), or with one that cannot be read, a request is as if it were asked of `localhost`. */
  const withHost = (request: Request): Request => {
    const { url } = request;
    if (knownOrigin !== null && url.startsWith(knownOrigin)) return request;
    const pathAt = url.startsWith("/") ? 0 : url.indexOf("/", SCHEME.length);
    if (pathAt > 0 && URL.canParse(url)) {
      knownOrigin = url.slice(0, pathAt + 1);
      return request;
    }
    const complete = new Request(`${SCHEME}localhost${url.slice(pathAt)}`, request);
    originals.set(complete, request);
    return complete;
  };
  const sockets = createSocketServer(() => listening, options);
  /** null: it still accepts, or never did. */
  let answered: Promise<void> | null = null;
  let isStopped = false;
  const refuse = (): void => {
    isStopped = true;
    if (listening !== null) answered ??= sockets.refuse(listening);
  };
  return {
    sockets,
    addressOf(request) {
      const forwarded = options.trustProxy ? request.headers.get("x-forwarded-for") : null;
      // Entries before the last are the client's own words.
      const last = forwarded?.split(",").at(-1)?.trim();
      if (last !== undefined && last !== "") return bareAddress(last);
      return bareAddress(listening?.requestIP(originals.get(request) ?? request)?.address ?? "127.0.0.1");
    },
    holdOpen(request, isHeld) {
      listening?.timeout(originals.get(request) ?? request, isHeld ? 0 : idleTimeoutSeconds);
    },
    origin: () => listening?.url.origin ?? null,
    listen(server, { host: wantedHost = HOST_DEFAULT, port = PORT_DEFAULT, failure }) {
      // A second one would be a server that no stop knows, and that its sockets hear nothing from.
      if (listening !== null) throw new Error(`It listens already, on ${listening.url.origin}`);
      if (isStopped) throw new Error("It was stopped, and cannot listen again");
      const host = wantedHost.replace(/^\[(.*)\]$/, "$1");
      const { fetch } = server;
      // A constant to the types, but a setter in Bun, and its only way: it holds for every server of the process.
      Object.assign(http, { maxHeaderSize: HEADERS_MAX_BYTES });
      try {
        listening = Bun.serve<SocketHandler>({
          hostname: host,
          port,
          idleTimeout: idleTimeoutSeconds,
          maxRequestBodySize: REQUEST_MAX_BYTES,
          fetch: (request) => fetch(withHost(request)),
          websocket: sockets.handlers,
          error: failure,
        });
      } catch (cause) {
        throw listenError(cause, host, port);
      }
      const boundPort = listening.port ?? port;
      return { url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`, port: boundPort };
    },
    refuse,
    async stop() {
      refuse();
      if (listening === null || answered === null) return;
      await sockets.stop(listening, answered);
      listening = null;
    },
  };
}

/** Without the port that some proxies add; an IPv4 address as one, also where it came in the form of an IPv6 one. */
function bareAddress(text: string): string {
  const [, address = text] = /^\[(.+)\](?::\d+)?$/.exec(text) ?? /^([\d.]+):\d+$/.exec(text) ?? [];
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

/** Bun names a port that is taken; of what the system says besides, it names no address. */
function listenError(cause: unknown, host: string, port: number): unknown {
  const code = cause instanceof Error && "code" in cause ? cause.code : null;
  if (code === "EADDRINUSE") return cause;
  const reason =
    code === "EACCES" ? "ports below 1024 take a right that this user has not" : "it is no address of this machine";
  return new Error(`cannot listen on ${host}, port ${port}: ${reason} (${String(code)})`, { cause });
}
