import type { Server, ServerWebSocket, WebSocketHandler } from "bun";
import { badRequest } from "../kernel/errors.ts";
import { UNDER_WAY_MAX_MS } from "../kernel/stop.ts";

/** One WebSocket's behaviour; the socket carries it, and the server passes events to it. */
export interface SocketHandler {
  open?(socket: Socket): void;
  /** Text frames as strings, binary ones as bytes. */
  message(socket: Socket, message: string | Buffer): void;
  /** Called once, however the connection ended. 1006: without a close frame. */
  close?(socket: Socket, code: number, reason: string): void;
  /** What was waiting has been sent. */
  drain?(socket: Socket): void;
}

export type Socket = ServerWebSocket<SocketHandler>;

/** The listening server as areas see it; before it listens nothing is upgraded and publishing reaches nobody. */
export interface SocketServer {
  /** Errors: 400 when the request asks for no upgrade. The handler returns what this returns. */
  upgrade(request: Request, handler: SocketHandler): Response;
  /** One message to every socket subscribed to `topic`, serialised once. */
  publish(topic: string, message: string): void;
}

/** Larger WebSocket messages close their connection, unless an area says that it needs more. */
const MESSAGE_MAX_BYTES = 1024 * 1024;
/**
 * Bun's own bound, past which a socket is cut off without a word. Areas close a slow socket before: realtime at 1 MiB
 * waiting, and one that lets more wait says so.
 */
const BACKPRESSURE_MAX_BYTES = 16 * 1024 * 1024;
/** Bun pings a silent socket before this is over, and closes one that does not answer: its peer has vanished. */
const SOCKET_IDLE_SECONDS = 120;
const GOING_AWAY = 1001;

/** Stands for "this request has become a socket": the handlers return it, and only the request log reads it. */
const UPGRADED = new Response(null, { status: 101 });

export interface SocketServerOwner extends SocketServer {
  readonly handlers: WebSocketHandler<SocketHandler>;
  /** Stops accepting, and leaves what is there; resolves when nothing is, and after UNDER_WAY_MAX_MS. */
  refuse(server: Server<SocketHandler>): Promise<void>;
  /** Closes sockets with 1001 and lets answers finish; `answered` is what `refuse` gave. */
  stop(server: Server<SocketHandler>, answered: Promise<void>): Promise<void>;
}

interface SocketLimits {
  messageMaxBytes?: number;
  waitingMaxBytes?: number;
  socketIdleSeconds?: number;
}

export function createSocketServer(
  server: () => Server<SocketHandler> | null,
  {
    messageMaxBytes = MESSAGE_MAX_BYTES,
    waitingMaxBytes = 0,
    socketIdleSeconds = SOCKET_IDLE_SECONDS,
  }: SocketLimits = {},
): SocketServerOwner {
  // Every open socket, so that all can be told when the server goes.
  const open = new Set<Socket>();
  return {
    upgrade(request, handler) {
      if (server()?.upgrade(request, { data: handler }) !== true)
        throw badRequest("A WebSocket upgrade is wanted here");
      return UPGRADED;
    },
    publish(topic, message) {
      server()?.publish(topic, message);
    },
    handlers: {
      maxPayloadLength: Math.max(MESSAGE_MAX_BYTES, messageMaxBytes),
      backpressureLimit: Math.max(BACKPRESSURE_MAX_BYTES, waitingMaxBytes),
      closeOnBackpressureLimit: true,
      idleTimeout: socketIdleSeconds,
      open(socket) {
        open.add(socket);
        socket.data.open?.(socket);
      },
      message: (socket, message) => socket.data.message(socket, message),
      close(socket, code, reason) {
        open.delete(socket);
        socket.data.close?.(socket, code, reason);
      },
      drain: (socket) => socket.data.drain?.(socket),
    },
    async refuse(stopping) {
      const timeout = new Promise((resolve) => setTimeout(resolve, UNDER_WAY_MAX_MS).unref());
      await Promise.race([stopping.stop(false), timeout]);
    },
    async stop(stopping, answered) {
      for (const socket of open) socket.close(GOING_AWAY, "The server is stopping");
      await answered;
      await stopping.stop(true);
    },
  };
}
