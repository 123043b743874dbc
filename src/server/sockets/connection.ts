import type { Millis } from "../../kernel/clock.ts";
import type { Principal } from "../access/principal.ts";
import { TokenBucket } from "./clients.ts";
import { CLOSE, DROPPED_PER_SECOND_MAX, LONG_MESSAGE_MIN_CHARS, SENT_AT_ONCE_MIN_BYTES } from "./limits.ts";
import type { Release } from "./pending-places.ts";
import type { Socket, SocketHandler, SocketServer } from "./socket-server.ts";

export type SignedIn = Extract<Principal, { kind: "user" }>;
/** The authenticated caller: a user, an anonymous visitor, or a service key by a ticket. */
export type Visiting = Exclude<Principal, { kind: "server" }>;

/** Bounds of one connection. */
export interface ConnectionLimits {
  authTimeoutMs: number;
  messagesPerSecond: number;
  messageMaxBytes: number;
  /** Rate and burst for the characters of long messages. */
  charsPerSecond: number;
  charsAtOnce: number;
  /** Bytes waiting to be sent above which the next message closes the connection. */
  backlogMaxBytes: number;
}

/** The server's handlers of a connection's events. */
export interface ConnectionEvents<State> {
  opened(connection: Connection<State>): void;
  received(connection: Connection<State>, message: string | Buffer): void;
  /** Called once, however the connection ended. Code 1006: without a close frame. */
  closed(connection: Connection<State>, code: number): void;
}

/** A connection that has not authenticated yet. */
interface Pending {
  /** Releases the connection's place among the unauthenticated ones. */
  release: Release;
  /** Cancels the timeout; null before the socket is open. */
  cancelTimeout: (() => void) | null;
}

interface ConnectionParts<State> {
  id: string;
  address: string;
  client: string;
  state: State;
  limits: ConnectionLimits;
  releasePlace: Release;
  events: ConnectionEvents<State>;
  sockets: Pick<SocketServer, "waitingBytes" | "drop">;
  now: Millis;
}

/** One WebSocket. A class, since ten thousand of them share its functions. `State` is the area's state of the connection. */
export class Connection<State> implements SocketHandler {
  readonly mayBeFar = true;
  readonly id: string;
  /** The client's address. */
  readonly address: string;
  /** The client network (`clientNetwork`) that the connection counts in. */
  readonly client: string;
  readonly state: State;
  readonly limits: ConnectionLimits;
  pending: Pending | null;
  readonly #events: ConnectionEvents<State>;
  readonly #sockets: ConnectionParts<State>["sockets"];
  readonly #messages: TokenBucket;
  readonly #chars: TokenBucket;
  /** Rate of dropped messages; created with the first one. */
  #dropped: TokenBucket | null = null;
  #principal: Visiting | null = null;
  #identity = 0;
  #socket: Socket | null = null;
  #closeCode: number | null = null;
  #onDrain: (() => void)[] = [];
  /** Whether part of the last text sent is still waiting. */
  #isBehind = false;
  #refusals: { readonly client: string } | null = null;

  constructor(parts: ConnectionParts<State>) {
    const { limits, now } = parts;
    this.id = parts.id;
    this.address = parts.address;
    this.client = parts.client;
    this.state = parts.state;
    this.limits = limits;
    this.pending = { release: parts.releasePlace, cancelTimeout: null };
    this.#events = parts.events;
    this.#sockets = parts.sockets;
    this.#messages = TokenBucket.ofRate(limits.messagesPerSecond, now);
    this.#chars = new TokenBucket({ perSecond: limits.charsPerSecond, atOnce: limits.charsAtOnce }, now);
  }

  get socket(): Socket {
    if (this.#socket === null) throw new Error("the socket is not open yet");
    return this.#socket;
  }

  /** The current caller; null before authentication. */
  get principal(): Visiting | null {
    return this.#principal;
  }

  set principal(principal: Visiting | null) {
    this.#principal = principal;
    this.#identity++;
  }

  /** Counts changes of `principal`. A right granted under an earlier number is void until it is evaluated again. */
  get identity(): number {
    return this.#identity;
  }

  get isClosed(): boolean {
    return this.#closeCode !== null;
  }

  /** The close code; null while the connection is open. */
  get closeCode(): number | null {
    return this.#closeCode;
  }

  // Socket events

  open(socket: Socket): void {
    this.#socket = socket;
    if (this.#closeCode === null) this.#events.opened(this);
    else socket.close(this.#closeCode);
  }

  message(_socket: Socket, message: string | Buffer): void {
    if (!this.isClosed) this.#events.received(this, message);
  }

  close(_socket: Socket, code: number): void {
    this.#ended(code);
  }

  drain(): void {
    this.#isBehind = false;
    const waiting = this.#onDrain;
    this.#onDrain = [];
    for (const go of waiting) go();
  }

  tooSlow(): void {
    this.closeAsSlow();
  }

  // Incoming messages

  /** Counts one message; false when it exceeds the rate. */
  takeMessage(now: Millis): boolean {
    return this.#messages.take(1, now);
  }

  /** Counts the characters of a long message; false when it exceeds the rate. */
  takeChars(chars: number, now: Millis): boolean {
    return chars < LONG_MESSAGE_MIN_CHARS || this.#chars.take(chars, now);
  }

  /** Counts a dropped message; false when so many were dropped that no further message is handled. */
  takeDropped(now: Millis): boolean {
    this.#dropped ??= TokenBucket.ofRate(DROPPED_PER_SECOND_MAX, now);
    return this.#dropped.take(1, now);
  }

  /** Work source for refusals, with turns of its own: refusing messages over the rate does not wait for work in progress. */
  get refusals(): { readonly client: string } {
    this.#refusals ??= { client: this.client };
    return this.#refusals;
  }

  /** Refills the message rate, so that the messages of a handshake do not count afterwards. */
  forgetMessages(): void {
    this.#messages.refill();
  }

  // Outgoing messages

  /** Bytes sent to the connection that have not left the server. */
  get waitingBytes(): number {
    return this.isClosed ? 0 : this.#sockets.waitingBytes(this.socket);
  }

  send(message: object): void {
    this.sendText(JSON.stringify(message));
  }

  sendText(text: string): void {
    if (this.isClosed || (this.#isBehind && this.closeIfSlow())) return;
    // `send` returns the bytes sent; -1 when they wait; 0 when they were dropped, after which later messages would not fit the
    // client's state.
    const sent = this.socket.send(text);
    if (sent < 0) this.#isBehind = true;
    if (sent === 0) this.closeAsSlow();
    else if (text.length >= SENT_AT_ONCE_MIN_BYTES) this.countWaiting();
  }

  /** Measures the waiting bytes, so that they count towards the bound of all sockets together. */
  countWaiting(): void {
    if (!this.isClosed) this.#sockets.waitingBytes(this.socket);
  }

  /** Closes the connection when too much waits for it; true when it did. */
  closeIfSlow(): boolean {
    if (this.waitingBytes <= this.limits.backlogMaxBytes) return false;
    this.closeAsSlow();
    return true;
  }

  closeAsSlow(): void {
    if (this.isClosed) return;
    this.#ended(CLOSE.tryLater);
    if (this.#socket !== null) this.#sockets.drop(this.#socket);
  }

  /** Resolves when the waiting bytes have been sent, or the connection has ended. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      if (this.isClosed) resolve();
      else this.#onDrain.push(resolve);
    });
  }

  /** Closes the connection. Nothing is delivered or handled from then on, whenever the peer notices. */
  end(code: number, reason: string): void {
    if (this.isClosed) return;
    this.#ended(code);
    this.#socket?.close(code, reason);
  }

  /**
   * Silences a connection that `finish` closes in a later turn: nothing is delivered or handled from then on, and its rights are
   * void. false: it has ended already.
   */
  silence(code: number): boolean {
    if (this.isClosed) return false;
    this.#closeCode = code;
    this.#identity++;
    return true;
  }

  /** Closes a silenced connection behind this text. */
  finish(text: string, reason: string): void {
    const code = this.#closeCode;
    if (code === null) throw new Error("the connection has not been silenced");
    this.#socket?.send(text);
    this.#notify(code);
    this.#socket?.close(code, reason);
  }

  #ended(code: number): void {
    if (this.isClosed) return;
    this.#closeCode = code;
    this.#notify(code);
  }

  #notify(code: number): void {
    this.#events.closed(this, code);
    this.drain();
  }
}
