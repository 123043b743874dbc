import type { ServerWebSocket } from "bun";

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
