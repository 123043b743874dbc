import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { isatty } from "node:tty";
import { codeOf } from "../../kernel/errors.ts";
import { OUTPUT_FLUSH_MAX_MS, OUTPUT_RETRY_MS, OUTPUT_WAITING_MAX_CHARACTERS } from "./limits.ts";

const LINE_FEED = 10;

type Written = (cause: Error | null, bytes: number) => void;

/** Writes a part of the bytes, without blocking. */
type Send = (bytes: Uint8Array, written: Written) => void;

/**
 * The standard output or standard error of a server, line by line. Writing neither blocks nor throws: lines that cannot be written,
 * because the disk is full, the pipe is closed or nobody reads it, are dropped and counted.
 */
export class StandardOutput {
  readonly #descriptor: 1 | 2;
  /** Called with the number of dropped lines once a later one is written. */
  onLost: (lines: number) => void = () => {};
  #send: Send | null = null;
  #lines: string[] = [];
  #waitingCharacters = 0;
  #lost = 0;
  /** Whether a failure cut the latest line. */
  #isCut = false;
  #idle: PromiseWithResolvers<void> | null = null;

  constructor(descriptor: 1 | 2) {
    this.#descriptor = descriptor;
  }

  /** Queues a text that ends with a line break. */
  write(text: string): void {
    if (this.#waitingCharacters > OUTPUT_WAITING_MAX_CHARACTERS) {
      this.#lost++;
      return;
    }
    this.#lines.push(text);
    this.#waitingCharacters += text.length;
    if (this.#idle !== null) return;
    this.#idle = Promise.withResolvers();
    // Batches lines of the same turn of the event loop into one write.
    queueMicrotask(() => this.#next());
  }

  /** Resolves when the queue is empty, or after OUTPUT_FLUSH_MAX_MS. */
  async flush(): Promise<void> {
    if (this.#idle !== null) await Promise.race([this.#idle.promise, Bun.sleep(OUTPUT_FLUSH_MAX_MS)]);
  }

  #next(): void {
    const text = this.#lines.join("");
    this.#lines = [];
    if (text === "") {
      this.#idle?.resolve();
      this.#idle = null;
      return;
    }
    this.#write(Buffer.from(this.#isCut ? `\n${text}` : text), text.length);
  }

  #write(bytes: Uint8Array, characters: number): void {
    this.#send ??= sendTo(this.#descriptor);
    this.#send(bytes, (cause, length) => {
      if (cause === null && length < bytes.length) {
        this.#isCut = bytes[length - 1] !== LINE_FEED;
        this.#write(bytes.subarray(length), characters);
        return;
      }
      this.#waitingCharacters -= characters;
      if (cause === null) {
        this.#isCut = false;
        const lines = this.#lost;
        this.#lost = 0;
        if (lines > 0) this.onLost(lines);
      } else {
        this.#lost += bytes.filter((byte) => byte === LINE_FEED).length;
      }
      this.#next();
    });
  }
}

/**
 * Creates the write function. A pipe or terminal is opened a second time, non-blocking, so that writes to a slow reader fail
 * instead of blocking: Bun's own stream blocks on a paused terminal, and at exit on a pipe that nobody reads. Writes to files, one
 * at a time, run on another thread, as they wait for the disk.
 */
function sendTo(descriptor: 1 | 2): Send {
  const stats = fstatSync(descriptor);
  const isPipe = stats.isFIFO() || stats.isSocket();
  const own = isPipe || isatty(descriptor) ? reopened(descriptor) : null;
  if (own !== null) return (bytes, written) => writeOrRetry(own, bytes, written);
  if (!isPipe) return (bytes, written) => write(descriptor, bytes, (cause, length) => written(cause, length));
  const stream = descriptor === 1 ? process.stdout : process.stderr;
  // Without a listener a failed write is an uncaught exception, which is logged: another failed write.
  stream.on("error", () => {});
  return (bytes, written) => stream.write(bytes, (cause) => written(cause ?? null, bytes.length));
}

/**
 * Opens the descriptor again, non-blocking; null where that is impossible: for sockets, without permission, and on systems other
 * than Linux.
 */
function reopened(descriptor: number): number | null {
  if (process.platform !== "linux") return null;
  try {
    return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
}

function writeOrRetry(descriptor: number, bytes: Uint8Array, written: Written): void {
  let length = 0;
  try {
    length = writeSync(descriptor, bytes);
  } catch (cause) {
    if (codeOf(cause) === "EAGAIN") {
      setTimeout(writeOrRetry, OUTPUT_RETRY_MS, descriptor, bytes, written);
    } else {
      written(cause instanceof Error ? cause : new Error(String(cause)), 0);
    }
    return;
  }
  written(null, length);
}
