import { CLOSE, RELAY_REPORT_BYTES } from "../limits.ts";
import { NO_CODE, type SendFrame } from "./far-sockets.ts";
import { binaryFrame, NUMBER_BYTES, readFrame, TO_FAR, TO_NEAR, textFrame, wordOf } from "./frames.ts";

/** The reason with which sockets are closed when their link ends. */
export const UNREACHABLE = "The server cannot be reached";

/** A client's WebSocket at this process: Bun's, or one that a model has. */
export interface HeldSocket {
  send(message: string | Uint8Array): unknown;
  ping(): unknown;
  subscribe(topic: string): unknown;
  unsubscribe(topic: string): unknown;
  publish(topic: string, message: string): unknown;
  getBufferedAmount(): number;
  close(code?: number, reason?: string): void;
  terminate(): void;
}

interface Topic {
  readonly members: Set<NearSocket>;
  /** Bytes published since it was last looked what waits for the members. */
  bytes: number;
}

/** The WebSockets that this process holds for another one, which decides about them: it passes on whatever happens, in order. */
export class NearSockets {
  readonly #sockets = new Map<number, NearSocket>();
  readonly #topics = new Map<string, Topic>();
  readonly #publish: (topic: string, message: string) => void;
  #send: SendFrame | null = null;
  #lastId = 0;
  #links = 0;

  /** Handlers of frames about one socket, by their kinds. */
  readonly #take: Readonly<Record<string, (frame: { socket: NearSocket; held: HeldSocket; rest: string }) => void>> = {
    [TO_NEAR.send]: ({ held, rest }) => void held.send(rest),
    [TO_NEAR.subscribe]: ({ socket, held, rest }) => this.#subscribe(socket, held, rest),
    [TO_NEAR.unsubscribe]: ({ socket, held, rest }) => {
      held.unsubscribe(this.#topicOf(rest));
      this.#leave(socket, rest);
    },
    [TO_NEAR.close]: ({ held, rest }) => {
      const { word, more } = wordOf(rest);
      if (Number(word) === NO_CODE) held.close();
      else held.close(Number(word), more);
    },
    [TO_NEAR.terminate]: ({ held }) => held.terminate(),
    [TO_NEAR.ping]: ({ held }) => void held.ping(),
    [TO_NEAR.ask]: ({ socket, held }) => socket.answer(held),
  };

  /** `publish` sends a message to all sockets of this process that have subscribed to a topic. */
  constructor(publish: (topic: string, message: string) => void) {
    this.#publish = publish;
  }

  /** Begins to pass frames on, over a new link. */
  connected(send: SendFrame): void {
    this.#send = send;
    this.#links += 1;
  }

  /** Closes all sockets: the link has ended, or is to end. */
  lost(code: number, reason: string): void {
    this.#send = null;
    const sockets = [...this.#sockets.values()];
    this.#sockets.clear();
    this.#topics.clear();
    for (const socket of sockets) socket.lost(code, reason);
  }

  /** Begins a socket that is not open yet. null: there is no link. */
  begin(): NearSocket | null {
    if (this.#send === null) return null;
    this.#lastId += 1;
    const socket = new NearSocket(this.#lastId, this);
    this.#sockets.set(socket.id, socket);
    return socket;
  }

  receive(frame: string | Buffer): void {
    if (typeof frame !== "string") {
      this.#sockets.get(frame.readUInt32LE())?.held?.send(frame.subarray(NUMBER_BYTES));
      return;
    }
    const { kind, id, rest } = readFrame(frame);
    if (kind === TO_NEAR.publish) {
      this.#publishTo(id, rest);
      return;
    }
    const socket = this.#sockets.get(id);
    if (socket !== undefined && socket.held !== null) this.#take[kind]?.({ socket, held: socket.held, rest });
  }

  /** Passes a frame on. */
  send(frame: string | Buffer): void {
    this.#send?.(frame);
  }

  ended(socket: NearSocket): void {
    this.#sockets.delete(socket.id);
    for (const topic of socket.topics) this.#leave(socket, topic);
  }

  #publishTo(except: number, rest: string): void {
    const { word: name, more: message } = wordOf(rest);
    const excepted = except === 0 ? null : (this.#sockets.get(except)?.held ?? null);
    if (excepted === null) this.#publish(this.#topicOf(name), message);
    else excepted.publish(this.#topicOf(name), message);
    const topic = this.#topics.get(name);
    if (topic === undefined) return;
    topic.bytes += message.length;
    if (topic.bytes < RELAY_REPORT_BYTES) return;
    topic.bytes = 0;
    for (const { held, report } of topic.members) if (held !== null) report(held);
  }

  /** Returns a topic's name at this port: others of the same name are of another link, or of a server of this process. */
  #topicOf(name: string): string {
    return `${this.#links} ${name}`;
  }

  #subscribe(socket: NearSocket, held: HeldSocket, name: string): void {
    held.subscribe(this.#topicOf(name));
    socket.topics.add(name);
    const topic = this.#topics.get(name);
    if (topic === undefined) this.#topics.set(name, { members: new Set([socket]), bytes: 0 });
    else topic.members.add(socket);
  }

  #leave(socket: NearSocket, name: string): void {
    socket.topics.delete(name);
    const topic = this.#topics.get(name);
    topic?.members.delete(socket);
    if (topic?.members.size === 0) this.#topics.delete(name);
  }
}

/** One WebSocket that this process holds for another one. */
export class NearSocket {
  readonly id: number;
  readonly topics = new Set<string>();
  /** The client's connection; null before it is open, and after its end. */
  held: HeldSocket | null = null;
  readonly #sockets: NearSockets;
  /** Bytes that wait for the client, as the other process knows them. */
  #reported = 0;
  #isEnded = false;

  constructor(id: number, sockets: NearSockets) {
    this.id = id;
    this.#sockets = sockets;
  }

  /** Whether the other process still knows the socket. */
  get isLive(): boolean {
    return !this.#isEnded;
  }

  attach(held: HeldSocket): void {
    if (this.#isEnded) {
      held.close(CLOSE.tryLater, UNREACHABLE);
      return;
    }
    this.held = held;
    this.#sockets.send(textFrame(TO_FAR.opened, this.id));
  }

  send(_held: unknown, message: string | Buffer): void {
    if (this.#isEnded) return;
    this.#sockets.send(
      typeof message === "string" ? textFrame(TO_FAR.message, this.id, message) : binaryFrame(this.id, message),
    );
  }

  /** Reports what waits for a client that reads slowly: the other process sends less, or closes it. */
  readonly report = (held: HeldSocket): void => {
    const bytes = held.getBufferedAmount();
    if (bytes === this.#reported || (bytes > 0 && Math.abs(bytes - this.#reported) < RELAY_REPORT_BYTES)) return;
    this.#reported = bytes;
    this.#sockets.send(textFrame(TO_FAR.waits, this.id, String(bytes)));
  };

  /** Answers what waits for the client. */
  answer(held: HeldSocket): void {
    this.#reported = held.getBufferedAmount();
    this.#sockets.send(textFrame(TO_FAR.answered, this.id, String(this.#reported)));
  }

  ping(): void {
    this.#sockets.send(textFrame(TO_FAR.ping, this.id));
  }

  /** Passes on how the client has closed, or that it has never come. */
  close(code: number, reason: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.held = null;
    this.#sockets.ended(this);
    this.#sockets.send(textFrame(TO_FAR.closed, this.id, `${code} ${reason}`));
  }

  /** Closes the client's connection: nobody decides about it any more. */
  lost(code: number, reason: string): void {
    const { held } = this;
    this.#isEnded = true;
    this.held = null;
    held?.close(code, reason);
  }
}
