import type { ServerWebSocket } from "bun";

/** One WebSocket's behaviour; the socket carries it, and the server passes events to it. */
export interface SocketHandler {
  /** Whether another process may hold the socket. */
  readonly mayBeFar?: boolean;
  open?(socket: Socket): void;
  /** Handles a message: text frames as strings, binary ones as bytes. */
  message(socket: Socket, message: string | Buffer): void;
  /** Called once, however the connection ended. Code 1006: without a close frame. */
  close?(socket: Socket, code: number, reason: string): void;
  /** Called when the waiting bytes have been sent. */
  drain?(socket: Socket): void;
  /** Ends the socket through `SocketServer.drop`: too much waits for all sockets together, and most of it for this one. */
  tooSlow?(): void;
}

/** A WebSocket as areas have it: Bun's own, or one whose messages wait for the log of a cluster. */
export type Socket = Pick<
  ServerWebSocket<SocketHandler>,
  | "data"
  | "readyState"
  | "remoteAddress"
  | "subscriptions"
  | "getBufferedAmount"
  | "send"
  | "sendText"
  | "sendBinary"
  | "publish"
  | "publishText"
  | "publishBinary"
  | "subscribe"
  | "unsubscribe"
  | "isSubscribed"
  | "ping"
  | "pong"
  | "close"
  | "terminate"
> & {
  /** Whether another process holds the socket. */
  readonly isFar?: boolean;
  cork<Result>(work: (socket: Socket) => Result): Result;
};

/** A WebSocket of this process, as Bun has it. */
export type OwnSocket = ServerWebSocket<SocketHandler>;

/** Called with what happens to WebSockets. */
export interface SocketEvents {
  open(socket: Socket): void;
  message(socket: Socket, message: string | Buffer): void;
  ping(socket: Socket): void;
  /** Called with a report of the process that holds or relays the socket. */
  pong(socket: Socket, report: Buffer): void;
  drain(socket: Socket): void;
  close(socket: Socket, code: number, reason: string): void;
}
