import type { Server, WebSocketHandler } from "bun";
import { type AnswerGate, silently } from "../../kernel/answer-gate.ts";
import { AppError, badRequest } from "../../kernel/errors.ts";
import { UNDER_WAY_MAX_MS } from "../../kernel/limits.ts";
import { Backlogs } from "./backlogs.ts";
import { TokenBucket } from "./clients.ts";
import {
  BACKPRESSURE_MAX_BYTES,
  CLOSE,
  FRAME_MAX_BYTES,
  IDLE_TIMEOUT_SECONDS,
  PING_FRAMES_PER_SECOND_MAX,
} from "./limits.ts";
import type { Socket, SocketEvents, SocketHandler } from "./socket.ts";
import { createHolding } from "./socket-line.ts";

export type { OwnSocket, Socket, SocketEvents, SocketHandler } from "./socket.ts";

/** The length of a report of a worker: the bytes, as 32 bits. */
export const RELAY_REPORT_LENGTH = 4;

/** The listening server as areas see it; before it listens nothing is upgraded and publishing reaches nobody. */
export interface SocketServer {
  /**
   * Upgrades a request. The endpoint's handler returns the response. Errors: 400 when the request asks for no upgrade, 503 when
   * too many sockets are open.
   */
  upgrade(request: Request, handler: SocketHandler, headers?: Readonly<Record<string, string>>): Response;
  /** Sends one message to every socket subscribed to `topic`, serialised once. */
  publish(topic: string, message: string): void;
  /** Sends a message that `sender` has published to the subscribers at other servers than the sender's, which it does not reach. */
  publishElsewhere(sender: Socket, topic: string, message: string | Uint8Array | ArrayBuffer): void;
  /** Returns the bytes that wait to be sent to this socket. May end sockets, since what waits for all together is bounded. */
  waitingBytes(socket: Socket): number;
  /** Ends a socket that does not read: with 1013 behind the waiting bytes, or at once when there is no memory for that. */
  drop(socket: Socket): void;
}

/** Response to an upgraded request. Only the request log reads it. */
const UPGRADED = silently(new Response(null, { status: 101 }));

export interface SocketServerOwner extends SocketServer {
  readonly handlers: SocketEvents &
    Omit<WebSocketHandler<SocketHandler>, keyof SocketEvents | "maxPayloadLength"> & { maxPayloadLength: number };
  /** Stops accepting, and lets open requests finish; resolves when none is left, or after UNDER_WAY_MAX_MS. */
  refuse(): Promise<void>;
  /** Resolves when everything has left that waited for the log of a cluster, or was on its way to sockets there. */
  quiet(): Promise<void>;
  /** Closes sockets with 1001 and lets answers finish; `answered` is the promise of `refuse`. */
  stop(answered: Promise<void>): Promise<void>;
}

interface SocketLimits {
  /** Sockets open at once. Default: bounded by the system only. */
  socketsMax?: number;
  messageMaxBytes?: number;
  waitingMaxBytes?: number;
  socketIdleSeconds?: number;
  /** Lets what sockets are told leave; null: it always may. */
  gate?: AnswerGate | null;
  /** Headers of the upgrade's response. */
  upgradeHeaders?: Readonly<Record<string, string>>;
}

/** The servers of the port: none before it listens, more than one after a renewal of the certificate. */
export interface ListeningServers {
  /** Returns the server that received the request. */
  of(request: Request): Receiver | null;
  /** Returns the request as that server received it. */
  originalOf(request: Request): Request;
  all(): readonly Receiver[];
  /** Accepts nothing more; resolves when everything that was begun is answered. */
  refuse(): Promise<void>;
}

/** A server that receives requests. */
export interface Receiver extends Pick<Server<SocketHandler>, "publish" | "stop"> {
  /** Whether its sockets are relayed by workers, which report in pongs what waits for their clients. */
  readonly isRelayed?: boolean;
  /** Upgrades a request; false: it asks for no upgrade. */
  upgrade(request: Request, options: { data: SocketHandler; headers: Readonly<Record<string, string>> }): boolean;
}

export function createSocketServer(
  servers: ListeningServers,
  {
    socketsMax = Number.POSITIVE_INFINITY,
    messageMaxBytes = FRAME_MAX_BYTES,
    waitingMaxBytes = 0,
    socketIdleSeconds = IDLE_TIMEOUT_SECONDS,
    gate = null,
    upgradeHeaders = {},
  }: SocketLimits = {},
): SocketServerOwner {
  // Every open socket, closed when the server stops.
  const open = new Set<Socket>();
  const { shown, pass, quiet } = createHolding(gate, elapsed, () => {
    for (const socket of open) socket.close(CLOSE.goingAway, "The server cannot tell whether this is current");
  });
  /** Rates of ping frames; only sockets that have sent one have an entry. */
  const pings = new WeakMap<Socket, TokenBucket>();
  /** Servers of sockets, by what handles the socket. */
  const owners = new WeakMap<SocketHandler, Receiver>();
  /** Bytes that wait for the clients of relayed sockets, at their workers. */
  const relayed = new WeakMap<object, number>();
  const backlogs = new Backlogs(
    (delayMs, work) => setTimeout(work, delayMs).unref(),
    (socket) => relayed.get(socket.data) ?? null,
  );
  return {
    upgrade(request, handler, headers) {
      if (open.size >= socketsMax) throw new AppError(503, `Too many WebSockets are open (at most ${socketsMax})`);
      const sent = headers === undefined ? upgradeHeaders : { ...upgradeHeaders, ...headers };
      const owner = servers.of(request);
      if (owner?.upgrade(servers.originalOf(request), { data: handler, headers: sent }) !== true)
        throw badRequest("This endpoint requires a WebSocket upgrade");
      owners.set(handler, owner);
      if (owner.isRelayed === true && handler.mayBeFar !== true) relayed.set(handler, 0);
      return UPGRADED;
    },
    publish(topic, message) {
      pass(() => {
        for (const server of servers.all()) server.publish(topic, message);
      }, message.length);
    },
    publishElsewhere(sender, topic, message) {
      const own = owners.get(sender.data);
      pass(
        () => {
          for (const server of servers.all()) if (server !== own) server.publish(topic, message);
        },
        typeof message === "string" ? message.length : message.byteLength,
      );
    },
    waitingBytes: (socket) => backlogs.look(socket),
    drop: (socket) => backlogs.drop(socket),
    handlers: {
      maxPayloadLength: Math.max(FRAME_MAX_BYTES, messageMaxBytes),
      backpressureLimit: Math.max(BACKPRESSURE_MAX_BYTES, waitingMaxBytes),
      closeOnBackpressureLimit: true,
      idleTimeout: socketIdleSeconds,
      sendPings: true,
      open(socket) {
        open.add(socket);
        socket.data.open?.(shown(socket));
      },
      message: (socket, message) => socket.data.message(shown(socket), message),
      ping(socket) {
        const now = performance.now();
        let bucket = pings.get(socket);
        if (bucket === undefined) {
          bucket = TokenBucket.ofRate(PING_FRAMES_PER_SECOND_MAX, now);
          pings.set(socket, bucket);
        }
        if (!bucket.take(1, now)) socket.close(CLOSE.flood, "Far too many pings");
      },
      pong(socket, report) {
        if (socket.isFar !== true && !relayed.has(socket.data)) return;
        if (report.byteLength === RELAY_REPORT_LENGTH) relayed.set(socket.data, report.readUInt32LE());
        backlogs.look(shown(socket));
        const isRead = (relayed.get(socket.data) ?? 0) === 0 && socket.getBufferedAmount() === 0;
        if (isRead) socket.data.drain?.(shown(socket));
      },
      close(socket, code, reason) {
        open.delete(socket);
        backlogs.forget(shown(socket));
        socket.data.close?.(shown(socket), code, reason);
      },
      drain(socket) {
        backlogs.look(shown(socket));
        // The answer comes behind the worker's reports of everything that was sent before.
        if (relayed.has(socket.data)) socket.ping();
        else socket.data.drain?.(shown(socket));
      },
    },
    refuse: () => Promise.race([servers.refuse(), elapsed(UNDER_WAY_MAX_MS)]),
    quiet,
    async stop(answered) {
      for (const socket of open) socket.close(CLOSE.goingAway, "The server is stopping");
      await answered;
      await Promise.all(servers.all().map((server) => server.stop(true)));
    },
  };
}

const elapsed = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
