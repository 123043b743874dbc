import type { Principal } from "../access/principal.ts";
import type { Release } from "../http/pending-places.ts";
import type { Socket, SocketHandler, SocketServer } from "../http/sockets.ts";
import type { TokenBucket } from "../sockets/token-bucket.ts";
import type { ServerMessage } from "./encoding.ts";
import { SENT_AT_ONCE_MIN_BYTES, WAITING_MAX_BYTES } from "./limits.ts";
import type { Tracked } from "./presence.ts";
import type { Subscription } from "./subscription.ts";
import type { Listener } from "./topic.ts";

export type SignedIn = Principal & { kind: "user" };

/** Spec: Realtime connection; decisions 10. */
export const CLOSE = { protocol: 4000, session: 4003, goingAway: 1001 } as const;

/** What the protocol does with a connection's events. */
export interface ConnectionEvents {
  opened(connection: Connection): void;
  received(connection: Connection, message: string | Buffer): void;
  /** Once. `wasClean` is false for a connection lost without a close. */
  closed(connection: Connection, wasClean: boolean): void;
  failed(connection: Connection, cause: unknown): void;
}

interface ConnectionParts {
  id: string;
  client: string;
  releasePlace: Release;
  defaultChannel: string | null;
  rate: TokenBucket;
  charRate: TokenBucket;
  sockets: Pick<SocketServer, "waitingBytes" | "drop">;
  events: ConnectionEvents;
}

/** One WebSocket. A class, since ten thousand of them share its functions. */
export class Connection implements SocketHandler, Listener {
  readonly id: string;
  /** Its address or network, by which it is counted. */
  readonly client: string;
  /** Gives its place among those that have not authenticated back. */
  readonly releasePlace: Release;
  /** The connection's own channel: what track, untrack and broadcast act on. */
  readonly defaultChannel: string | null;
  /** Messages. */
  readonly rate: TokenBucket;
  /** Characters of long messages. */
  readonly charRate: TokenBucket;
  readonly subscriptions = new Map<string, Subscription>();
  /** null: not authenticated yet. */
  principal: SignedIn | null = null;
  tracked: Tracked | null = null;
  cancelAuthTimeout: (() => void) | null = null;
  readonly #events: ConnectionEvents;
  readonly #sockets: ConnectionParts["sockets"];
  #socket: Socket | null = null;
  #isClosed = false;
  #onDrain: (() => void)[] = [];

  constructor(parts: ConnectionParts) {
    this.id = parts.id;
    this.client = parts.client;
    this.releasePlace = parts.releasePlace;
    this.defaultChannel = parts.defaultChannel;
    this.rate = parts.rate;
    this.charRate = parts.charRate;
    this.#events = parts.events;
    this.#sockets = parts.sockets;
  }

  get socket(): Socket {
    if (this.#socket === null) throw new Error("the socket is not open yet");
    return this.#socket;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get waitingBytes(): number {
    return this.#isClosed ? 0 : this.#sockets.waitingBytes(this.socket);
  }

  open(socket: Socket): void {
    this.#socket = socket;
    this.#events.opened(this);
  }

  message(_socket: Socket, message: string | Buffer): void {
    if (this.#isClosed) return;
    try {
      this.#events.received(this, message);
    } catch (cause) {
      this.#events.failed(this, cause);
    }
  }

  close(_socket: Socket, code: number): void {
    this.#ended(code !== 1006);
  }

  /** Closed by us is closed: nothing more is delivered, whenever the peer notices. */
  end(code: number, reason: string): void {
    if (this.#isClosed) return;
    this.#ended(true);
    this.#socket?.close(code, reason);
  }

  #ended(wasClean: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.cancelAuthTimeout?.();
    this.#events.closed(this, wasClean);
    this.drain();
  }

  drain(): void {
    const waiting = this.#onDrain;
    this.#onDrain = [];
    for (const go of waiting) go();
  }

  /** Resolves when what waits has been sent, or the connection has ended. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isClosed) resolve();
      else this.#onDrain.push(resolve);
    });
  }

  send(message: ServerMessage): void {
    this.sendText(JSON.stringify(message));
  }

  sendText(text: string): void {
    if (this.#isClosed || this.closeIfSlow()) return;
    this.socket.send(text);
    if (text.length >= SENT_AT_ONCE_MIN_BYTES) this.countWaiting();
  }

  closeIfSlow(): boolean {
    if (this.waitingBytes <= WAITING_MAX_BYTES) return false;
    this.closeAsSlow();
    return true;
  }

  countWaiting(): void {
    if (!this.#isClosed) this.#sockets.waitingBytes(this.socket);
  }

  closeAsSlow(): void {
    if (this.#isClosed) return;
    this.#ended(true);
    if (this.#socket !== null) this.#sockets.drop(this.#socket);
  }

  tooSlow(): void {
    this.closeAsSlow();
  }
}
