import type { ServerWebSocket } from "bun";
import { CLOSE, RELAY_REPORT_BYTES } from "../../sockets/limits.ts";
import { RELAY_REPORT_LENGTH } from "../../sockets/socket-server.ts";

/** The code of a close frame without a code. */
const NO_STATUS = 1005;
/** Bytes that wait to be sent to the main process from which a client's WebSocket is closed. */
const UPSTREAM_MAX_BYTES = 16 * 1024 * 1024;

/** A client's WebSocket at a worker. */
export type RelayedClient = Pick<ServerWebSocket, "send" | "close" | "terminate" | "getBufferedAmount">;

/** Passes the messages of a WebSocket on, between a client and the main process. */
export class Relay {
  readonly #upstream: WebSocket;
  #client: RelayedClient | null = null;
  /** The bytes that wait for the client, as the main process knows them. */
  #reported = 0;
  /** Messages, and the close, that come before the client is there. */
  #waiting: ((client: RelayedClient) => void)[] = [];

  constructor(upstream: WebSocket) {
    this.#upstream = upstream;
    upstream.binaryType = "nodebuffer";
    upstream.addEventListener("message", ({ data }) =>
      this.#pass((client) => {
        client.send(data);
        this.report(client);
      }),
    );
    upstream.addEventListener("close", ({ code, reason }) =>
      this.#pass((client) => {
        if (code === CLOSE.lost) client.terminate();
        else if (code === NO_STATUS) client.close();
        else client.close(code, reason);
      }),
    );
  }

  /** Begins to pass messages to the client, which is open now. */
  attach(client: RelayedClient): void {
    this.#client = client;
    for (const pass of this.#waiting) pass(client);
    this.#waiting = [];
  }

  /** Passes a client's message on. */
  send(client: RelayedClient, message: string | Buffer): void {
    this.#upstream.send(message);
    if (this.#upstream.bufferedAmount > UPSTREAM_MAX_BYTES)
      client.close(CLOSE.tryLater, "Too much waits to be handled");
  }

  /** Reports what waits for a client that reads slowly: the main process sends less, or closes it. */
  report(client: RelayedClient): void {
    const bytes = client.getBufferedAmount();
    if (bytes === this.#reported || (bytes > 0 && Math.abs(bytes - this.#reported) < RELAY_REPORT_BYTES)) return;
    this.#reported = bytes;
    const report = Buffer.alloc(RELAY_REPORT_LENGTH);
    report.writeUInt32LE(bytes);
    this.#upstream.pong(report);
  }

  /** Passes a client's ping on: the main process limits their rate. */
  ping(data: Buffer): void {
    this.#upstream.ping(data);
  }

  /** Passes on how the client has closed. */
  close(code: number, reason: string): void {
    if (code === CLOSE.lost) this.#upstream.terminate();
    else if (code === NO_STATUS) this.#upstream.close();
    else this.#upstream.close(code, reason);
  }

  #pass(pass: (client: RelayedClient) => void): void {
    if (this.#client === null) this.#waiting.push(pass);
    else pass(this.#client);
  }
}
