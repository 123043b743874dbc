import type { ServerWebSocket } from "bun";
import {
  BACKLOGS_LEFT_BYTES,
  BACKLOGS_MAX_BYTES,
  CLOSE,
  CLOSING_MAX_BYTES,
  CLOSING_MS,
  RELAY_BUFFER_BYTES,
} from "./limits.ts";

/** Handler of a socket that ends it through `Backlogs.drop` when too much waits for it. */
interface Slow {
  tooSlow?(): void;
}
type AnySocket = Pick<ServerWebSocket<Slow>, "data" | "getBufferedAmount" | "close" | "terminate">;

/** Bounds the bytes that wait to be sent to all sockets together. */
export class Backlogs {
  readonly #after: (delayMs: number, work: () => void) => void;
  readonly #relayedBytes: (socket: AnySocket) => number | null;
  /** Waiting bytes of each socket when last measured; sockets without any are absent. */
  readonly #known = new Map<AnySocket, number>();
  #knownBytes = 0;
  #closingBytes = 0;
  #isShort = false;

  /**
   * `after`: a timer that does not keep the process alive. `relayedBytes`: the bytes that wait for the client where another process
   * relays the socket; null: it is the client's own.
   */
  constructor(
    after: (delayMs: number, work: () => void) => void,
    relayedBytes: (socket: AnySocket) => number | null = () => null,
  ) {
    this.#after = after;
    this.#relayedBytes = relayedBytes;
  }

  /** Returns the bytes that wait for this socket. Ends sockets, possibly this one, when all together exceed their bound. */
  look(socket: AnySocket): number {
    this.#note(socket, this.#bytesOf(socket));
    if (this.#knownBytes > BACKLOGS_MAX_BYTES && !this.#isShort) this.#shed();
    const bytes = this.#bytesOf(socket);
    return this.#relayedBytes(socket) === null ? bytes : Math.max(0, bytes - RELAY_BUFFER_BYTES);
  }

  /** Ends a socket that does not read: with 1013 behind the waiting bytes, or at once when there is no memory for that. */
  drop(socket: AnySocket): void {
    const bytes = this.#bytesOf(socket);
    this.#note(socket, 0);
    if (this.#isShort || this.#closingBytes + bytes > CLOSING_MAX_BYTES) {
      socket.terminate();
      return;
    }
    this.#closingBytes += bytes;
    this.#after(CLOSING_MS, () => {
      this.#closingBytes -= bytes;
    });
    socket.close(CLOSE.tryLater, "Too slow");
  }

  /** Forgets a socket that has closed. */
  forget(socket: AnySocket): void {
    this.#note(socket, 0);
  }

  #bytesOf(socket: AnySocket): number {
    return socket.getBufferedAmount() + (this.#relayedBytes(socket) ?? 0);
  }

  #note(socket: AnySocket, bytes: number): void {
    if (bytes === 0 && this.#known.size === 0) return;
    const before = this.#known.get(socket) ?? 0;
    if (bytes === before) return;
    this.#knownBytes += bytes - before;
    if (bytes === 0) this.#known.delete(socket);
    else this.#known.set(socket, bytes);
  }

  #shed(): void {
    // Sockets drain without an event, so the known bytes are an upper bound.
    for (const socket of [...this.#known.keys()]) this.#note(socket, this.#bytesOf(socket));
    if (this.#knownBytes <= BACKLOGS_MAX_BYTES) return;
    this.#isShort = true;
    for (const [socket] of [...this.#known].sort(([, one], [, other]) => other - one)) {
      if (this.#knownBytes <= BACKLOGS_LEFT_BYTES) break;
      if (socket.data.tooSlow === undefined) socket.terminate();
      else socket.data.tooSlow();
      this.#note(socket, 0);
    }
    this.#isShort = false;
  }
}
