import http from "node:http";
import type { Server } from "bun";
import type { AnyElysia } from "elysia";
import { createSocketServer, type SocketHandler, type SocketServer } from "../sockets/server/socket-server.ts";
import { HEADERS_MAX_BYTES, IDLE_TIMEOUT_SECONDS, REQUEST_MAX_BYTES } from "./limits.ts";

export const HOST_DEFAULT = "127.0.0.1";
export const PORT_DEFAULT = 8787;
const SCHEME = "http://";

/** The network side of a platform. Before it listens there are no sockets; requests come from the process itself. */
export interface Listener {
  readonly sockets: SocketServer;
  /** The client's address. */
  addressOf(request: Request): string;
  /** While a request is held, only its handler ends its connection. */
  holdOpen(request: Request, isHeld: boolean): void;
  /** `http://HOST:PORT`; null while not listening. */
  origin(): string | null;
  /** Errors: already listening, already stopped, or the port is not available. */
  listen(
    server: AnyElysia,
    options: { host?: string | undefined; port?: number | undefined; failure(cause: unknown): Response },
  ): { url: string; port: number };
  /** Stops accepting connections; requests in progress continue. */
  refuse(): void;
  /** The same; then closes sockets with 1001, and resolves when requests in progress are answered. */
  stop(): Promise<void>;
}

/**
 * `trustProxy`: the client's address is the last entry of `X-Forwarded-For`, which the proxy wrote. `messageMaxBytes`: size of a
 * WebSocket message; `waitingMaxBytes`: unsent bytes of a WebSocket that reads slowly; for areas that need more than the
 * default. Tests alone change the other two.
 */
export function createListener(options: {
  trustProxy: boolean;
  socketsMax?: number;
  messageMaxBytes?: number;
  waitingMaxBytes?: number;
  idleTimeoutSeconds?: number;
  socketIdleSeconds?: number;
  /** Headers of the answer to an upgrade. */
  upgradeHeaders?: Readonly<Record<string, string>>;
}): Listener {
  const { idleTimeoutSeconds = IDLE_TIMEOUT_SECONDS } = options;
  let listening: Server<SocketHandler> | null = null;
  const originals = new WeakMap<Request, Request>();
  let knownOrigin: string | null = null;
  /** A request without a readable `Host` (HTTP/1.0) is treated as one to `localhost`. */
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
  /** null: not stopping. */
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
      // Entries before the last one come from the client and prove nothing.
      const last = forwarded?.split(",").at(-1)?.trim();
      if (last !== undefined && last !== "") return bareAddress(last);
      return bareAddress(listening?.requestIP(originals.get(request) ?? request)?.address ?? "127.0.0.1");
    },
    holdOpen(request, isHeld) {
      listening?.timeout(originals.get(request) ?? request, isHeld ? 0 : idleTimeoutSeconds);
    },
    origin: () => listening?.url.origin ?? null,
    listen(server, { host: wantedHost = HOST_DEFAULT, port = PORT_DEFAULT, failure }) {
      // A second server would not be stopped, and its sockets would receive nothing that is published.
      if (listening !== null) throw new Error(`It listens already, on ${listening.url.origin}`);
      if (isStopped) throw new Error("It was stopped, and cannot listen again");
      const host = wantedHost.replace(/^\[(.*)\]$/, "$1");
      const { fetch } = server;
      // Read-only in the types, but settable in Bun, and the only way. It applies to all servers of the process.
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

/** The address without the port that some proxies add. An IPv4 address in IPv6 form becomes an IPv4 address. */
function bareAddress(text: string): string {
  const [, address = text] = /^\[(.+)\](?::\d+)?$/.exec(text) ?? /^([\d.]+):\d+$/.exec(text) ?? [];
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

/** Bun's message names a port in use; other system errors lack the address, so this adds it. */
function listenError(cause: unknown, host: string, port: number): unknown {
  const code = cause instanceof Error && "code" in cause ? cause.code : null;
  if (code === "EADDRINUSE") return cause;
  const reason =
    code === "EACCES" ? "ports below 1024 need elevated privileges" : "it is not an address of this machine";
  return new Error(`cannot listen on ${host}, port ${port}: ${reason} (${String(code)})`, { cause });
}
