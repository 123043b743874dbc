import http from "node:http";
import type { AnyElysia } from "elysia";
import type { AnswerGate } from "../../../kernel/answer-gate.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { codeOf } from "../../../kernel/errors.ts";
import { createSocketServer, type SocketHandler } from "../../sockets/socket-server.ts";
import { HEADERS_MAX_BYTES, IDLE_TIMEOUT_SECONDS, REQUEST_MAX_BYTES } from "../limits.ts";
import type { LocalServing } from "../workers/local-server.ts";
import { Shedding } from "../workers/shedding.ts";
import { createClientAddress, type ProxyTrust } from "./client-address.ts";
import { Generations, type Retirement } from "./generations.ts";
import { leaving } from "./leaving.ts";
import { type OpenInner, Receivers } from "./receivers.ts";
import { type NativeHandler, type NativeRoutes, Requests } from "./requests.ts";
import type { Steering } from "./steering.ts";

export const HOST_DEFAULT = "127.0.0.1";
export const PORT_DEFAULT = 8787;
export const TLS_HOST_DEFAULT = "0.0.0.0";
export const TLS_PORT_DEFAULT = 443;

/** A certificate in PEM, followed by those of its issuers, and its private key. */
export interface Certificate {
  cert: string;
  key: string;
}

export interface ListenOptions {
  /** The address to listen on; 127.0.0.1 by default, with `tls` 0.0.0.0. */
  host?: string | undefined;
  /** The port; 8787 by default, with `tls` 443. */
  port?: number | undefined;
  /** The certificate; null: HTTP. `publicHost` is the host in `origin()`; null: the host of the connection. */
  tls?: (Certificate & { publicHost: string | null; steering: Steering | null }) | null;
  routes?: NativeRoutes;
  /** Whether workers may listen on the port, too. */
  isShared?: boolean;
  /** Serves on a port that this process has open; null: opens one. */
  serve?: ServeHere | null;
  failure(cause: unknown, request?: Request): Response;
}

/** Serves on an open port. Routes of Bun's own router are not used there: `fetch` answers in the same way. */
export type ServeHere = (serving: LocalServing) => Bun.Server<SocketHandler>;

/** The network side of a platform. Before it listens there are no sockets; requests then come from the process itself. */
export type Listener = ReturnType<typeof createListener>;

/**
 * Creates the listener. `proxies`: whose headers name the client's address. `messageMaxBytes`: the size of a WebSocket message;
 * `waitingMaxBytes`: unsent bytes of a WebSocket that reads slowly; for areas that need more than the default. Only tests change
 * the two idle timeouts.
 */
export function createListener(options: {
  clock: Clock;
  isTls: boolean;
  proxies: ProxyTrust;
  socketsMax?: number;
  messageMaxBytes?: number;
  waitingMaxBytes?: number;
  idleTimeoutSeconds?: number;
  socketIdleSeconds?: number;
  /** Lets answers and messages leave; null: they always may. */
  gate?: AnswerGate | null;
  /** The headers of the answer to an upgrade. */
  upgradeHeaders?: Readonly<Record<string, string>>;
}) {
  const { idleTimeoutSeconds = IDLE_TIMEOUT_SECONDS, gate = null } = options;
  let origin: string | null = null;
  let openWith: ((certificate: Certificate | null) => void) | null = null;
  const requests = new Requests(options);
  const shedding = new Shedding();
  const isLast = ({ isRetired }: Retirement): boolean => isRetired || shedding.takes();
  const clientAddress = createClientAddress(options.proxies);
  const receivers = new Receivers(requests, idleTimeoutSeconds);
  const sockets = createSocketServer(receivers, options);
  /** Resolves when all requests are answered; null: not stopping. */
  let answered: Promise<void> | null = null;
  let isStopped = false;
  /** Stops accepting connections; requests in progress continue. */
  const refuse = (): void => {
    isStopped = true;
    if (receivers.port !== null) answered ??= sockets.refuse();
  };
  return {
    sockets,
    /** Returns the client's address. */
    addressOf: (request: Request): string => clientAddress(request.headers, () => receivers.peerOf(request)),
    /** Holds a request: until it is released, only its handler ends its connection. */
    holdOpen: (request: Request, isHeld: boolean): void => receivers.hold(request, isHeld),
    /** Returns `http://HOST:PORT` or `https://HOST:PORT`; null while not listening. */
    origin: (): string | null => origin,
    /** Completes a request that does not come from the network, so that it has the form of those that do. */
    complete: (request: Request): Request => requests.withHost(request),
    /**
     * Listens on a port. `routes`: requests that Bun's own router matches bypass `server`, which must answer them in the same way.
     * Errors: already listening, already stopped, or the port is not available.
     */
    listen(server: AnyElysia, { tls = null, routes = {}, isShared = false, failure, ...asked }: ListenOptions) {
      // A second server would never be stopped, and its sockets would receive no published messages.
      if (receivers.port !== null) throw new Error(`It listens already, on ${origin}`);
      if (isStopped) throw new Error("It was stopped, and cannot listen again");
      const { host, port: askedPort } = addressFor(tls !== null, asked.host, asked.port);
      let port = askedPort;
      const serve = leaving(server.fetch, { gate, failure });
      const leave = (handle: NativeHandler): NativeHandler => leaving(handle, { gate, failure });
      // Read-only in the types, but settable in Bun, and the only way to set it. It applies to all servers of the process.
      Object.assign(http, { maxHeaderSize: HEADERS_MAX_BYTES });
      const opened = new Generations(options.clock, tls?.steering ?? null);
      const open = (certificate: Certificate | null): Bun.Server<SocketHandler> =>
        opened.open((retirement) =>
          (asked.serve ?? Bun.serve<SocketHandler>)({
            hostname: host,
            port,
            // Two servers share the port during a renewal, and workers share it.
            reusePort: (certificate !== null || isShared) && process.platform !== "win32",
            ...(certificate === null ? {} : { tls: { cert: certificate.cert, key: certificate.key } }),
            idleTimeout: idleTimeoutSeconds,
            maxRequestBodySize: REQUEST_MAX_BYTES,
            routes: requests.native(routes, { isLast: () => isLast(retirement), serve, leave }),
            fetch: (request, receiver) =>
              isLast(retirement) ? requests.answerLast(request, receiver, serve) : serve(requests.withHost(request)),
            websocket: sockets.handlers,
            error: (cause) => failure(cause),
          }),
        );
      try {
        if ((tls !== null || isShared) && port !== 0) requireFree(host, port);
        port = open(tls).port ?? port;
      } catch (cause) {
        throw listenError(cause, host, port);
      }
      receivers.port = opened;
      const forwarded = (request: Request) => serve(requests.withHost(request));
      receivers.serving = { websocket: sockets.handlers, serve: forwarded, failure };
      openWith = open;
      origin = publicOrigin(tls?.publicHost ?? null, port) ?? opened.current?.url.origin ?? null;
      return { url: urlOf(tls === null ? "http" : "https", host, port), port };
    },
    /** Ends this share of the connections with their next answers: other processes have fewer. */
    shed: (share: number): void => shedding.begin(share, receivers.port?.current?.pendingRequests ?? 0),
    /** Opens where workers forward requests to, once it listens. */
    openInner: (open: OpenInner): void => receivers.openInner(open),
    /** Replaces the certificate for new connections; open ones continue. Errors: it listens without TLS, or the certificate is invalid. */
    renew(certificate: Certificate): void {
      if (openWith === null) throw new Error("It does not listen");
      if (!isStopped) openWith(certificate);
    },
    refuse,
    /** Resolves when the requests that it had begun before `refuse` are answered, and sockets were told what came of them. */
    settled: (): Promise<void> => (answered ?? Promise.resolve()).then(sockets.quiet),
    /** Stops accepting connections, closes sockets with 1001, and resolves when requests in progress are answered. */
    async stop(): Promise<void> {
      refuse();
      if (receivers.port === null || answered === null) return;
      receivers.port.end();
      await sockets.stop(answered);
      receivers.end();
      origin = null;
    },
  };
}

/** Returns where to listen. */
const addressFor = (isTls: boolean, host: string | undefined, port: number | undefined) => ({
  host: (host ?? (isTls ? TLS_HOST_DEFAULT : HOST_DEFAULT)).replace(/^\[(.*)\]$/, "$1"),
  port: port ?? (isTls ? TLS_PORT_DEFAULT : PORT_DEFAULT),
});

const publicOrigin = (host: string | null, port: number): string | null =>
  host === null ? null : new URL(`https://${host}:${port}`).origin;

const urlOf = (scheme: string, host: string, port: number): string =>
  `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;

/**
 * Checks that the port is free: servers that share ports would otherwise share this one with any other process of the user. Errors:
 * EADDRINUSE.
 */
function requireFree(hostname: string, port: number): void {
  Bun.listen({ hostname, port, socket: { data() {} } }).stop(true);
}

/** Describes a listen error with the address and the reason, which system errors lack. */
export function listenError(cause: unknown, host: string, port: number): Error {
  const code = codeOf(cause);
  const reason = LISTEN_REASONS[code] ?? "it is not an address of this machine";
  return Object.assign(new Error(`cannot listen on ${host}, port ${port}: ${reason} (${code})`, { cause }), { code });
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process uses it; stop that one, or choose another port with --port",
  EACCES: "ports below 1024 need elevated privileges",
};
