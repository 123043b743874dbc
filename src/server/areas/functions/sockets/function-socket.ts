import type { Socket, SocketServer } from "../../../sockets/socket-server.ts";

type Data = string | Buffer | Uint8Array | ArrayBuffer;

/** Prefixes a topic of routes: a config may take their names from clients, who must not receive what other areas publish. */
export const topicOf = (topic: string): string => `functions/${topic}`;

/** A WebSocket as Elysia and handlers of routes see it: Bun's, with a topic namespace of its own. */
export class FunctionSocket {
  /** The data that Elysia stores for the socket. */
  readonly data: unknown;
  binaryType: string = "nodebuffer";
  readonly #socket: Socket;
  readonly #server: SocketServer;
  readonly #onPublish: () => void;

  constructor(socket: Socket, server: SocketServer, { data, onPublish }: { data: unknown; onPublish: () => void }) {
    this.#socket = socket;
    this.#server = server;
    this.#onPublish = onPublish;
    this.data = data;
  }

  get readyState(): number {
    return this.#socket.readyState;
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress;
  }

  get subscriptions(): string[] {
    return this.#socket.subscriptions.map((topic) => topic.slice(topicOf("").length));
  }

  send(data: Data, compress?: boolean): number {
    return this.#sent(this.#socket.send(data, compress));
  }

  sendText(data: string, compress?: boolean): number {
    return this.#sent(this.#socket.sendText(data, compress));
  }

  sendBinary(data: Uint8Array | ArrayBuffer, compress?: boolean): number {
    return this.#sent(this.#socket.sendBinary(data, compress));
  }

  ping(data?: Data): number {
    return this.#socket.ping(data);
  }

  pong(data?: Data): number {
    return this.#socket.pong(data);
  }

  close(code?: number, reason?: string): void {
    this.#socket.close(code, reason);
  }

  terminate(): void {
    this.#socket.terminate();
  }

  subscribe(topic: string): void {
    this.#socket.subscribe(topicOf(topic));
  }

  unsubscribe(topic: string): void {
    this.#socket.unsubscribe(topicOf(topic));
  }

  isSubscribed(topic: string): boolean {
    return this.#socket.isSubscribed(topicOf(topic));
  }

  publish(topic: string, data: Data, compress?: boolean): number {
    this.#published(topic, data);
    return this.#socket.publish(topicOf(topic), data, compress);
  }

  publishText(topic: string, data: string, compress?: boolean): number {
    this.#published(topic, data);
    return this.#socket.publishText(topicOf(topic), data, compress);
  }

  publishBinary(topic: string, data: Uint8Array | ArrayBuffer, compress?: boolean): number {
    this.#published(topic, data);
    return this.#socket.publishBinary(topicOf(topic), data, compress);
  }

  cork<Result>(work: (socket: FunctionSocket) => Result): Result {
    return this.#socket.cork(() => work(this));
  }

  #published(topic: string, data: Data): void {
    this.#onPublish();
    this.#server.publishElsewhere(this.#socket, topicOf(topic), data);
  }

  /** Reports the result of a send. The unsent bytes of all sockets together are bounded: this may close those with the most. */
  #sent(result: number): number {
    if (this.#socket.readyState === WebSocket.OPEN) this.#server.waitingBytes(this.#socket);
    return result;
  }
}
