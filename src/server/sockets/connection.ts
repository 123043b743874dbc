import type { Millis } from "../../kernel/clock.ts";
import type { Principal } from "../access/principal.ts";
import { TokenBucket } from "./clients.ts";
import { CLOSE, DROPPED_PER_SECOND_MAX, LONG_MESSAGE_MIN_CHARS, SENT_AT_ONCE_MIN_BYTES } from "./limits.ts";
import type { Release } from "./pending-places.ts";
import type { Socket, SocketHandler, SocketServer } from "./socket-server.ts";

export type SignedIn = Extract<Principal, { kind: "user" }>;
/** The caller who authenticated: a user, a visitor who said that there is none, or a service key by a ticket. */
export type Visiting = Exclude<Principal, { kind: "server" }>;

/** Bounds of one connection. */
export interface ConnectionLimits {
  authTimeoutMs: number;
  messagesPerSecond: number;
  messageMaxBytes: number;
  /** Characters of long messages, in a second and at once. */
  charsPerSecond: number;
  charsAtOnce: number;
  /** With more waiting to be sent, the next message closes the connection. */
  backlogMaxBytes: number;
}

/** The server's side of a connection's events. */
export interface ConnectionEvents<State> {
  opened(connection: Connection<State>): void;
  received(connection: Connection<State>, message: string | Buffer): void;
  /** Called once, however the connection ended. 1006: without a close frame. */
  closed(connection: Connection<State>, code: number): void;
}

/** A connection that has not authenticated yet. */
interface Pending {
  /** Gives its place among the unauthenticated connections back. */
  release: Release;
  /** Ends the timeout; null before the socket is open. */
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

/** One WebSocket. A class, since ten thousand of them share its functions. `State` is what the area keeps for it. */
export class Connection<State> implements SocketHandler {
  readonly id: string;
  /** The client's address. */
  readonly address: string;
  /** The client network (`clientNetwork`), by which it is counted. */
  readonly client: string;
  readonly state: State;
  readonly limits: ConnectionLimits;
  pending: Pending | null;
  readonly #events: ConnectionEvents<State>;
  readonly #sockets: ConnectionParts<State>["sockets"];
  readonly #messages: TokenBucket;
  readonly #chars: TokenBucket;
  /** Counts dropped messages; made with the first one. */
  #dropped: TokenBucket | null = null;
  #principal: Visiting | null = null;
  #identity = 0;
  #socket: Socket | null = null;
  #closeCode: number | null = null;
  #onDrain: (() => void)[] = [];
  /** The last text that was sent to it is still waiting, wholly or in part. */
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

  /** The present caller; null before authentication. */
  get principal(): Visiting | null {
    return this.#principal;
  }

  set principal(principal: Visiting | null) {
    this.#principal = principal;
    this.#identity++;
  }

  /** Counts changes of `principal`: what was allowed to an earlier one may not be allowed now. */
  get identity(): number {
    return this.#identity;
  }

  get isClosed(): boolean {
    return this.#closeCode !== null;
  }

  /** null while it is open. */
  get closeCode(): number | null {
    return this.#closeCode;
  }

  // What the socket reports

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

  // What its client may send

  /** Counts one message; false: it is over the rate. */
  takeMessage(now: Millis): boolean {
    return this.#messages.take(1, now);
  }

  /** Counts the characters of a long message; false: it is over the rate. */
  takeChars(chars: number, now: Millis): boolean {
    return chars < LONG_MESSAGE_MIN_CHARS || this.#chars.take(chars, now);
  }

  /** Counts a message that is dropped; false: so many are that nothing more is heard. */
  takeDropped(now: Millis): boolean {
    this.#dropped ??= TokenBucket.ofRate(DROPPED_PER_SECOND_MAX, now);
    return this.#dropped.take(1, now);
  }

  /** A source with turns of its own: what refuses messages over the rate does not wait for what is under way. */
  get refusals(): { readonly client: string } {
    this.#refusals ??= { client: this.client };
    return this.#refusals;
  }

  /** Refills the rate: messages of a handshake do not count afterwards. */
  forgetMessages(): void {
    this.#messages.refill();
  }

  // What it is sent

  /** Bytes that have been sent to it and not yet left the server. */
  get waitingBytes(): number {
    return this.isClosed ? 0 : this.#sockets.waitingBytes(this.socket);
  }

  send(message: object): void {
    this.sendText(JSON.stringify(message));
  }

  sendText(text: string): void {
    if (this.isClosed || (this.#isBehind && this.closeIfSlow())) return;
    // Bytes that were sent; -1: they wait; 0: they were dropped, and what follows would not fit what the client knows.
    const sent = this.socket.send(text);
    if (sent < 0) this.#isBehind = true;
    if (sent === 0) this.closeAsSlow();
    else if (text.length >= SENT_AT_ONCE_MIN_BYTES) this.countWaiting();
  }

  /** Looks at what waits, so that it counts towards what may wait for all sockets together. */
  countWaiting(): void {
    if (!this.isClosed) this.#sockets.waitingBytes(this.socket);
  }

  /** Closes it when too much waits for it already; true when it did. */
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

  /** Resolves when what waits has been sent, or the connection has ended. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      if (this.isClosed) resolve();
      else this.#onDrain.push(resolve);
    });
  }

  /** Closes the connection: from now on nothing is delivered or heard, whenever the peer notices. */
  end(code: number, reason: string): void {
    if (this.isClosed) return;
    this.#ended(code);
    this.#socket?.close(code, reason);
  }

  /**
   * Begins an end whose other part, `finish`, takes a turn of its own: from now on nothing is delivered or heard, and its rights
   * are void. false: it has ended already.
   */
  silence(code: number): boolean {
    if (this.isClosed) return false;
    this.#closeCode = code;
    this.#identity++;
    return true;
  }

  /** Ends a connection that is silenced, behind this text. */
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
