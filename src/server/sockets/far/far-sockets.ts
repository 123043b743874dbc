import { CLOSE, RELAY_BUFFER_BYTES, RELAY_REPORT_BYTES } from "../limits.ts";
import type { Socket, SocketEvents, SocketHandler } from "../socket-server.ts";
import { binaryFrame, NUMBER_BYTES, readFrame, TO_FAR, TO_NEAR, textFrame, wordOf } from "./frames.ts";

/** A code that stands for a close frame without a code. */
export const NO_CODE = 1005;
const NOTHING = Buffer.alloc(0);

type FarEvents = Pick<SocketEvents, "open" | "message" | "ping" | "pong" | "close">;

/** Sends frames in order to the process that holds the sockets. */
export type SendFrame = (frame: string | Buffer) => void;

interface FarParts {
  send: SendFrame;
  events: FarEvents;
  /** Publishes to the sockets of all other links and servers. */
  publishElsewhere(topic: string, message: string): void;
}

/**
 * The WebSockets that one other process holds for this one. Everything that is done to them is one sequence of frames, so a client gets
 * the messages to it, and those to its topics, in the order in which they were sent here. A message to many is one frame.
 */
export class FarSockets {
  readonly #parts: FarParts;
  readonly #sockets = new Map<number, FarSocket>();
  /** Sockets by topic, counted. */
  readonly #topics = new Map<string, number>();
  #isEnded = false;

  /** Handlers of frames, by their kinds. */
  readonly #take: Readonly<Record<string, (socket: FarSocket, rest: string) => void>> = {
    [TO_FAR.opened]: (socket) => this.#parts.events.open(socket),
    [TO_FAR.ping]: (socket) => this.#parts.events.ping(socket),
    [TO_FAR.answered]: (socket, rest) => this.#reported(socket, Number(rest), { isAnswer: true }),
    [TO_FAR.waits]: (socket, rest) => this.#reported(socket, Number(rest), { isAnswer: false }),
    [TO_FAR.closed]: (socket, rest) => {
      const { word, more } = wordOf(rest);
      this.#closed(socket, Number(word), more);
    },
  };

  constructor(parts: FarParts) {
    this.#parts = parts;
  }

  get count(): number {
    return this.#sockets.size;
  }

  /** Takes a socket that the other process has numbered, and opens when it says so. false: the link has ended. */
  accept(id: number, data: SocketHandler): boolean {
    if (this.#isEnded) return false;
    this.#sockets.set(id, new FarSocket(id, data, this));
    return true;
  }

  /** Sends a message to the subscribers of a topic, but for the socket of the number `except`. */
  publish(topic: string, message: string, except = 0): void {
    if (this.#topics.has(topic)) this.#parts.send(textFrame(TO_NEAR.publish, except, `${topic} ${message}`));
  }

  receive(frame: string | Buffer): void {
    if (typeof frame !== "string") {
      this.#message(frame.readUInt32LE(), frame.subarray(NUMBER_BYTES));
      return;
    }
    const { kind, id, rest } = readFrame(frame);
    if (kind === TO_FAR.message) {
      this.#message(id, rest);
      return;
    }
    const socket = this.#sockets.get(id);
    if (socket !== undefined) this.#take[kind]?.(socket, rest);
  }

  /** Ends all sockets: the other process is gone. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    for (const socket of [...this.#sockets.values()]) this.#closed(socket, CLOSE.lost, "");
  }

  /** Sends a frame about a socket. */
  send(frame: string | Buffer): void {
    if (!this.#isEnded) this.#parts.send(frame);
  }

  publishFrom({ id }: FarSocket, topic: string, message: string): void {
    this.publish(topic, message, id);
    this.#parts.publishElsewhere(topic, message);
  }

  countTopic(topic: string, change: 1 | -1): void {
    const count = (this.#topics.get(topic) ?? 0) + change;
    if (count === 0) this.#topics.delete(topic);
    else this.#topics.set(topic, count);
  }

  #message(id: number, message: string | Buffer): void {
    const socket = this.#sockets.get(id);
    if (socket !== undefined) this.#parts.events.message(socket, message);
  }

  #reported(socket: FarSocket, waiting: number, about: { isAnswer: boolean }): void {
    socket.reported(waiting, about);
    this.#parts.events.pong(socket, NOTHING);
  }

  #closed(socket: FarSocket, code: number, reason: string): void {
    this.#sockets.delete(socket.id);
    socket.ended();
    this.#parts.events.close(socket, code, reason);
  }
}

/** A WebSocket that another process holds. */
export class FarSocket implements Socket {
  readonly id: number;
  readonly data: SocketHandler;
  readonly isFar = true;
  /** The address of the holder, not of the client, which a request tells. */
  readonly remoteAddress = "";
  readyState: Socket["readyState"] = WebSocket.OPEN;
  readonly #link: FarSockets;
  readonly #topics = new Set<string>();
  /** Bytes sent since the last question of what waits, and before each question that has no answer yet. */
  #sent = 0;
  #asked: number[] = [];
  #askedBytes = 0;
  /** Bytes that wait for the client at the other process, as it has last said. */
  #waiting = 0;

  constructor(id: number, data: SocketHandler, link: FarSockets) {
    this.id = id;
    this.data = data;
    this.#link = link;
  }

  send(message: string | NodeJS.TypedArray | ArrayBuffer): number {
    return typeof message === "string" ? this.sendText(message) : this.sendBinary(message);
  }

  sendText(message: string): number {
    return this.#send(message.length, textFrame(TO_NEAR.send, this.id, message));
  }

  sendBinary(message: NodeJS.TypedArray | ArrayBuffer): number {
    return this.#send(message.byteLength, binaryFrame(this.id, bytesOf(message)));
  }

  #send(bytes: number, frame: string | Buffer): number {
    if (this.readyState !== WebSocket.OPEN) return 0;
    this.#link.send(frame);
    this.#sent += bytes;
    if (this.#sent >= RELAY_REPORT_BYTES) {
      this.#link.send(textFrame(TO_NEAR.ask, this.id));
      this.#asked.push(this.#sent);
      this.#askedBytes += this.#sent;
      this.#sent = 0;
    }
    return this.getBufferedAmount() > 0 ? -1 : bytes;
  }

  /** Returns the bytes that wait for the client, and those on the way to it beyond what any connection buffers. */
  getBufferedAmount(): number {
    return this.#waiting + Math.max(0, this.#askedBytes - RELAY_BUFFER_BYTES);
  }

  close(code: number = NO_CODE, reason = ""): void {
    if (this.readyState !== WebSocket.OPEN) return;
    this.readyState = WebSocket.CLOSING;
    this.#link.send(textFrame(TO_NEAR.close, this.id, `${code} ${reason}`));
  }

  terminate(): void {
    if (this.readyState === WebSocket.CLOSED) return;
    this.readyState = WebSocket.CLOSING;
    this.#link.send(textFrame(TO_NEAR.terminate, this.id));
  }

  ping(): number {
    this.#link.send(textFrame(TO_NEAR.ping, this.id));
    return 1;
  }

  /** Does nothing: the process that holds the socket answers pings. */
  pong(): number {
    return 0;
  }

  cork<Result>(work: (socket: Socket) => Result): Result {
    return work(this);
  }

  get subscriptions(): string[] {
    return [...this.#topics];
  }

  isSubscribed(topic: string): boolean {
    return this.#topics.has(topic);
  }

  subscribe(topic: string): boolean {
    if (this.readyState !== WebSocket.OPEN) return false;
    if (this.#topics.has(topic)) return true;
    this.#topics.add(topic);
    this.#link.countTopic(topic, 1);
    this.#link.send(textFrame(TO_NEAR.subscribe, this.id, topic));
    return true;
  }

  unsubscribe(topic: string): boolean {
    if (!this.#topics.delete(topic)) return false;
    this.#link.countTopic(topic, -1);
    this.#link.send(textFrame(TO_NEAR.unsubscribe, this.id, topic));
    return true;
  }

  publish(topic: string, message: string | NodeJS.TypedArray | ArrayBuffer): number {
    return typeof message === "string" ? this.publishText(topic, message) : this.publishBinary();
  }

  publishText(topic: string, message: string): number {
    this.#link.publishFrom(this, topic, message);
    return message.length;
  }

  /** Never called: what realtime and rooms publish is text. */
  publishBinary(): never {
    throw new Error("a link has no frame for binary messages to a topic");
  }

  /** Notes what the other process says of the bytes that wait for the client. */
  reported(waiting: number, { isAnswer }: { isAnswer: boolean }): void {
    this.#waiting = waiting;
    if (isAnswer) this.#askedBytes -= this.#asked.shift() ?? 0;
  }

  /** Forgets the topics: the socket has closed. */
  ended(): void {
    this.readyState = WebSocket.CLOSED;
    for (const topic of this.#topics) this.#link.countTopic(topic, -1);
    this.#topics.clear();
  }
}

const bytesOf = (data: NodeJS.TypedArray | ArrayBuffer): Uint8Array =>
  data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
