import type { AnswerGate } from "../../kernel/answer-gate.ts";
import { HELD_MAX_BYTES, QUIET_MAX_MS, QUIET_MS } from "./limits.ts";
import type { Socket, SocketHandler } from "./socket.ts";

type Data = string | NodeJS.TypedArray | ArrayBuffer;

interface Batch {
  /** Position at which its works were passed. */
  position: number;
  works: (() => void)[];
  bytes: number;
  mayLeave: boolean;
}

/**
 * Holds everything that sockets are told until the gate lets it leave, in one order for all of them: messages, topics that are joined and
 * left, closes. So it is as if the network were slower. [CLU42]
 */
class SocketLine {
  readonly #gate: AnswerGate;
  /** Called when what is held never may leave, or is too much: every socket has to be closed. */
  readonly #broken: () => void;
  #batches: Batch[] = [];
  #bytes = 0;
  #passed = 0;

  constructor(gate: AnswerGate, broken: () => void) {
    this.#gate = gate;
    this.#broken = broken;
  }

  /** Does this work when it may be done. Returns whether that was now. */
  pass(work: () => void, bytes = 0): boolean {
    this.#passed += 1;
    const { position } = this.#gate;
    const last = this.#batches.at(-1);
    if (last?.position === position) this.#hold(last, work, bytes);
    else {
      const wait = this.#gate.wait();
      if (wait === null && last === undefined) {
        work();
        return true;
      }
      const batch: Batch = { position, works: [], bytes: 0, mayLeave: false };
      this.#batches.push(batch);
      (wait ?? Promise.resolve()).then(
        () => this.#leave(batch),
        () => this.#break(),
      );
      this.#hold(batch, work, bytes);
    }
    if (this.#bytes > HELD_MAX_BYTES) this.#break();
    return false;
  }

  /** Resolves when nothing waits and nothing has been passed for QUIET_MS, or after QUIET_MAX_MS. */
  async quiet(elapsed: (ms: number) => Promise<void>): Promise<void> {
    const givesUpAt = performance.now() + QUIET_MAX_MS;
    for (let known = -1; performance.now() < givesUpAt; ) {
      if (known === this.#passed && this.#batches.length === 0) return;
      known = this.#passed;
      await elapsed(QUIET_MS);
    }
  }

  #hold(batch: Batch, work: () => void, bytes: number): void {
    batch.works.push(work);
    batch.bytes += bytes;
    this.#bytes += bytes;
  }

  #leave(batch: Batch): void {
    batch.mayLeave = true;
    for (let first = this.#batches[0]; first?.mayLeave === true; first = this.#batches[0]) {
      // Kept until then: what a work passes is behind those that are left.
      for (const work of first.works) work();
      this.#batches.shift();
      this.#bytes -= first.bytes;
    }
  }

  #break(): void {
    if (this.#batches.length === 0) return;
    this.#batches = [];
    this.#bytes = 0;
    this.#broken();
  }
}

/** Creates what holds the messages of a server's sockets; without a gate nothing does. `broken`: see `SocketLine`. */
export function createHolding(gate: AnswerGate | null, elapsed: (ms: number) => Promise<void>, broken: () => void) {
  if (gate === null) {
    const quiet = (): Promise<void> => Promise.resolve();
    return { shown: (socket: Socket): Socket => socket, pass: (work: () => void): void => work(), quiet };
  }
  const line = new SocketLine(gate, broken);
  const held = new WeakMap<Socket, Socket>();
  return {
    /** Returns the socket as areas have it. */
    shown(socket: Socket): Socket {
      let one = held.get(socket);
      if (one === undefined) {
        one = new HeldSocket(socket, line);
        held.set(socket, one);
      }
      return one;
    },
    /** Does a work when it may be done. */
    pass: (work: () => void, bytes: number): void => void line.pass(work, bytes),
    /** Resolves when everything has left that was on its way to sockets. */
    quiet: () => line.quiet(elapsed),
  };
}

/** A socket whose messages pass the line. */
class HeldSocket implements Socket {
  readonly #raw: Socket;
  readonly #line: SocketLine;
  #heldBytes = 0;

  constructor(raw: Socket, line: SocketLine) {
    this.#raw = raw;
    this.#line = line;
  }

  get data(): SocketHandler {
    return this.#raw.data;
  }

  get readyState(): Socket["readyState"] {
    return this.#raw.readyState;
  }

  get isFar(): boolean {
    return this.#raw.isFar === true;
  }

  get remoteAddress(): string {
    return this.#raw.remoteAddress;
  }

  get subscriptions(): string[] {
    return this.#raw.subscriptions;
  }

  getBufferedAmount(): number {
    return this.#raw.getBufferedAmount() + this.#heldBytes;
  }

  send(data: Data, compress?: boolean): number {
    return this.#send(bytesOf(data), () => this.#raw.send(data, compress));
  }

  sendText(data: string, compress?: boolean): number {
    return this.#send(data.length, () => this.#raw.sendText(data, compress));
  }

  sendBinary(data: NodeJS.TypedArray | ArrayBuffer, compress?: boolean): number {
    return this.#send(data.byteLength, () => this.#raw.sendBinary(data, compress));
  }

  publish(topic: string, data: Data, compress?: boolean): number {
    return this.#publish(data, () => this.#raw.publish(topic, data, compress));
  }

  publishText(topic: string, data: string, compress?: boolean): number {
    return this.#publish(data, () => this.#raw.publishText(topic, data, compress));
  }

  publishBinary(topic: string, data: NodeJS.TypedArray | ArrayBuffer, compress?: boolean): number {
    return this.#publish(data, () => this.#raw.publishBinary(topic, data, compress));
  }

  subscribe(topic: string): boolean {
    this.#whileOpen(() => this.#raw.subscribe(topic));
    return true;
  }

  unsubscribe(topic: string): boolean {
    this.#whileOpen(() => this.#raw.unsubscribe(topic));
    return true;
  }

  isSubscribed(topic: string): boolean {
    return this.#raw.isSubscribed(topic);
  }

  cork<Result>(work: (socket: Socket) => Result): Result {
    return this.#raw.cork(() => work(this));
  }

  ping(data?: Data): number {
    return this.#raw.ping(data);
  }

  pong(data?: Data): number {
    return this.#raw.pong(data);
  }

  close(code?: number, reason?: string): void {
    this.#whileOpen(() => this.#raw.close(code, reason));
  }

  terminate(): void {
    this.#raw.terminate();
  }

  /** Returns the bytes sent as Bun does; -1 when they wait. */
  #send(bytes: number, send: () => number): number {
    let sent = 0;
    this.#heldBytes += bytes;
    let isHeld = false;
    const isNow = this.#line.pass(() => {
      this.#heldBytes -= bytes;
      if (this.#raw.readyState !== WebSocket.OPEN) return;
      sent = send();
      if (!isHeld) return;
      // Whoever was told that it waits is told now that it has left, or that it does not fit.
      if (sent === 0 && bytes > 0) this.data.tooSlow?.();
      else if (this.getBufferedAmount() === 0) this.data.drain?.(this);
    }, bytes);
    isHeld = !isNow;
    return isNow ? sent : -1;
  }

  #publish(data: Data, publish: () => number): number {
    let sent = 0;
    const isNow = this.#line.pass(() => {
      if (this.#raw.readyState === WebSocket.OPEN) sent = publish();
    }, bytesOf(data));
    return isNow ? sent : -1;
  }

  #whileOpen(work: () => void): void {
    this.#line.pass(() => {
      if (this.#raw.readyState === WebSocket.OPEN) work();
    });
  }
}

const bytesOf = (data: Data): number => (typeof data === "string" ? data.length : data.byteLength);
