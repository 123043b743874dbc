import http from "node:http";
import type { Server, ServerWebSocket } from "bun";
import type { Clock } from "../../../kernel/clock.ts";
import { UNDER_WAY_MAX_MS } from "../../../kernel/limits.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import { endsWithin } from "../../../kernel/time/stop.ts";
import { CLOSE, IDLE_TIMEOUT_SECONDS as SOCKET_IDLE_SECONDS } from "../../sockets/limits.ts";
import type { SocketHandler } from "../../sockets/socket-server.ts";
import { HEADERS_MAX_BYTES, IDLE_TIMEOUT_SECONDS } from "../limits.ts";
import type { Forwarding, SocketLink } from "./forwarding.ts";
import { HeldSockets } from "./held-sockets.ts";
import { LocalServer, type LocalServing } from "./local-server.ts";
import { Shedding } from "./shedding.ts";

/** The end of a client's WebSocket: it is held for the main process, or relayed to it. */
interface Passing {
  attach(client: ServerWebSocket<Passing>): void;
  send(client: ServerWebSocket<Passing>, message: string | Buffer): void;
  report(client: ServerWebSocket<Passing>): void;
  ping(data: Buffer): void;
  close(code: number, reason: string): void;
}

/** Work of the servers of a port. `isRetired`: another one has taken its place, and its connections are to end. */
interface PortOptions extends Pick<WorkerListenerOptions, "clock" | "host" | "port" | "isShared" | "tls"> {
  fetch(
    request: Request,
    server: Server<PortSocket>,
    retirement: { readonly isRetired: boolean },
  ): MaybePromise<Response>;
  websocket: Bun.WebSocketHandler<PortSocket>;
  failure(cause: unknown): Response;
}

/** A port that is open, and its servers: one for each certificate. */
interface WorkerPort {
  readonly port: number;
  readonly server: Server<PortSocket>;
  readonly servers: {
    readonly current: Server<PortSocket> | null;
    readonly servers: readonly Server<PortSocket>[];
    end(): void;
  };
  renew(certificate: { cert: string; key: string }): void;
}

export interface WorkerListenerOptions {
  clock: Clock;
  host: string;
  port: number;
  forwarding: Pick<Forwarding, "forward" | "open">;
  /** Opens the link on which this process holds WebSockets for the main process; it returns null while there is nobody to link to. */
  link: () => SocketLink | null;
  /** Answers a request; null: the main process is to. `peer` returns the address of the connection. */
  answer(request: Request, peer: () => string): MaybePromise<Response | null>;
  /** Answers when the main process does not. */
  failure(cause: unknown, request: Request): Response;
  /** The size of a WebSocket's message, and of what waits to be sent to one that reads slowly. */
  messageMaxBytes: number;
  waitingMaxBytes: number;
  /** Whether other processes listen on the port, too. */
  isShared: boolean;
  /** The certificate; null: HTTP. */
  tls: { cert: string; key: string } | null;
  /** Opens the port: see `openWorkerPort`. */
  openPort(options: PortOptions): WorkerPort;
}

/** A WebSocket of the port: passed on, or handled by this process. */
type PortSocket = Passing | SocketHandler;

/**
 * Listens on the port of the main process, beside it: the system spreads connections over both. Errors: the port is not available,
 * or the system cannot share it.
 */
export function listenAsWorker(options: WorkerListenerOptions) {
  const { forwarding, answer, failure } = options;
  Object.assign(http, { maxHeaderSize: HEADERS_MAX_BYTES });
  let forwarded = 0;
  const shedding = new Shedding();
  /** Ends the connection of an answer, where another process is to get it. */
  const passing = (response: Response, { isRetired }: { readonly isRetired: boolean }): Response => {
    if (isRetired || shedding.takes()) response.headers.set("connection", "close");
    return response;
  };

  /** Answers here while it is there, in place of everything else. */
  let local: LocalServer | null = null;
  /** Requests that are forwarded now. */
  let underWay = 0;

  const passOn = (request: Request, server: Server<PortSocket>): Promise<Response> => {
    const peer = addressOf(server, request);
    if (!isUpgrade(request)) return forwarding.forward(request, peer);
    return OF_ROUTES.test(request.url)
      ? relay(forwarding, { request, server, peer })
      : hold(held, { request, server, peer });
  };

  const forward = (request: Request, server: Server<PortSocket>): Promise<Response> => {
    forwarded += 1;
    underWay += 1;
    return passOn(request, server)
      .catch((cause: unknown) => failure(cause, request))
      .finally(() => {
        underWay -= 1;
      });
  };

  let localHandlers: Bun.WebSocketHandler<SocketHandler> = { message() {} };

  const handlers = portHandlers(passingHandlers(options), () => localHandlers);
  const { server, servers, port, renew } = options.openPort({
    ...options,
    websocket: handlers,
    fetch: (request, receiver, retirement) => {
      if (local !== null) return local.answer(request);
      const here = answer(request, () => addressOf(receiver, request));
      if (here === null) return forward(request, receiver);
      if (here instanceof Response) return passing(here, retirement);
      return here.then((response) => (response === null ? forward(request, receiver) : passing(response, retirement)));
    },
    failure: (cause) => failure(cause, new Request("http://localhost/")),
  });

  const publish = (topic: string, message: string): void => {
    for (const each of servers.servers) each.publish(topic, message);
  };
  const { link, clock } = options;
  const held = new HeldSockets({ link, clock, publish });

  return {
    /** Ends this share of the connections with their next answers by this process: others have fewer. */
    shed: (share: number): void => shedding.begin(share, servers.current?.pendingRequests ?? 0),
    port,
    renew,
    /** Requests that were passed on since the start. */
    get forwarded(): number {
      return forwarded;
    },
    /** Lets a server of this process answer on the port from now on, until that is stopped. */
    serve(serving: LocalServing): LocalServer {
      localHandlers = serving.websocket;
      const end = (): void => {
        if (local === served) local = null;
      };
      const served: LocalServer = new LocalServer(serving, { server, others: () => underWay, end }, clock);
      local = served;
      return served;
    },
    /** Notes that the other end leaves: WebSockets that are held then get 1001. */
    leave: (): void => held.leave(),
    /** Holds the connection of a request that is under way, or no longer. */
    hold: (request: Request, isHeld: boolean): void =>
      servers.current?.timeout(request, isHeld ? 0 : IDLE_TIMEOUT_SECONDS),
    /** Accepts nothing more, and resolves when everything that was begun is answered; after UNDER_WAY_MAX_MS at the latest. */
    async stop(): Promise<void> {
      servers.end();
      const open = servers.servers;
      const answered = Promise.all(open.map((each) => each.stop(false)));
      await endsWithin(answered, UNDER_WAY_MAX_MS, options.clock);
      held.stop();
      await Promise.all(open.map((each) => each.stop(true)));
    },
  };
}

interface Upgrading {
  request: Request;
  server: Server<PortSocket>;
  peer: string;
}

async function hold(held: HeldSockets, { request, server, peer }: Upgrading): Promise<Response> {
  const { socket, ask } = await held.begin();
  const headers = await ask(request, peer, socket.id).catch((cause: unknown) => {
    socket.close(CLOSE.lost, "");
    throw cause;
  });
  if (headers instanceof Response) {
    socket.close(CLOSE.lost, "");
    return headers;
  }
  // The client has left, or the link has ended.
  if (!socket.isLive || !server.upgrade(request, { data: socket, headers })) socket.close(CLOSE.lost, "");
  return UPGRADED;
}

async function relay(forwarding: Pick<Forwarding, "open">, { request, server, peer }: Upgrading): Promise<Response> {
  const upstream = await forwarding.open(request, peer);
  if (upstream instanceof Response) return upstream;
  const { relay: data, headers } = upstream;
  // The client has left.
  if (!server.upgrade(request, { data, headers })) data.close(CLOSE.lost, "");
  return UPGRADED;
}

/** Handles WebSockets that are passed on, and those of a server of this process. */
function portHandlers(
  passed: Bun.WebSocketHandler<Passing>,
  local: () => Bun.WebSocketHandler<SocketHandler>,
): Bun.WebSocketHandler<PortSocket> {
  const of = ({ data }: ServerWebSocket<PortSocket>): Bun.WebSocketHandler<PortSocket> =>
    // Whoever has upgraded it has given it data of its own.
    ("attach" in data ? passed : local()) as Bun.WebSocketHandler<PortSocket>;
  return {
    ...(passed as Bun.WebSocketHandler<PortSocket>),
    open: (client) => of(client).open?.(client),
    message: (client, message) => of(client).message?.(client, message),
    drain: (client) => of(client).drain?.(client),
    ping: (client, data) => of(client).ping?.(client, data),
    pong: (client, data) => of(client).pong?.(client, data),
    close: (client, code, reason) => of(client).close?.(client, code, reason),
  };
}

const passingHandlers = (options: WorkerListenerOptions): Bun.WebSocketHandler<Passing> => ({
  maxPayloadLength: options.messageMaxBytes,
  backpressureLimit: options.waitingMaxBytes,
  closeOnBackpressureLimit: true,
  idleTimeout: SOCKET_IDLE_SECONDS,
  sendPings: true,
  open: (client) => client.data.attach(client),
  message: (client, message) => client.data.send(client, message),
  drain: (client) => client.data.report(client),
  ping: (client, data) => client.data.ping(data),
  close: (client, code, reason) => client.data.close(code, reason),
});

const addressOf = (server: Server<PortSocket>, request: Request): string =>
  server.requestIP(request)?.address ?? "127.0.0.1";

const isUpgrade = ({ method, headers }: Request): boolean =>
  method === "GET" && headers.get("upgrade")?.toLowerCase() === "websocket";

/** WebSockets of routes have all that Bun's have, so the main process has them itself. */
const OF_ROUTES = /^[^/]*\/\/[^/]*\/api\/functions\//;

/** The answer to a request that was upgraded. */
const UPGRADED = new Response(null, { status: 101 });
