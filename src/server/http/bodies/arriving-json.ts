import { type AppError, tooLarge } from "../../../kernel/errors.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import type { Scheduler } from "../../../kernel/time/scheduler.ts";
import { BLOCK_BYTES } from "../limits.ts";
import { parseInSteps, refusalOf } from "./json-body.ts";
import { JsonScan } from "./json-scan.ts";
import type { Query } from "./query.ts";
import type { HeldBody, UnfinishedBodies } from "./unfinished-bodies.ts";

export interface BodyRules {
  /** The query parameters. They are validated before the body, since both belong to one request. */
  query: Query;
  maxBytes: number;
  bodies: UnfinishedBodies;
  /** The scheduler that parses large bodies one after the other, in steps. */
  turns: Scheduler;
  /** The sender whose memory quota a large body counts against; null for a service key, whose values are not counted either. */
  sender: () => string | null;
  /** Receives the bytes as they are read; null or absent: no digest is needed. */
  digest?: BodyDigest | null;
}

/** A hash of a body's bytes. */
export interface BodyDigest {
  update(bytes: Uint8Array): unknown;
}

export const over = (maxBytes: number): AppError => tooLarge(`The body must be at most ${maxBytes} bytes`);

/** JSON that arrives in chunks, within the bounds of a body: a large body, or one part of a form. */
export class ArrivingJson {
  /** Why it has to make room for others; null: it has not. */
  refused: AppError | null = null;
  readonly #rules: BodyRules;
  readonly #scan: JsonScan;
  readonly #held: HeldBody;
  /** The bytes in few blocks, however small the chunks. */
  #blocks: Uint8Array<ArrayBuffer>[] = [];
  /** Bytes of the last block that are taken. */
  #used = 0;
  #byteCount = 0;

  constructor(rules: BodyRules, onRefused: (cause: AppError) => void = () => {}) {
    const sender = rules.sender();
    this.#rules = rules;
    this.#scan = new JsonScan({ areValuesCounted: sender !== null });
    this.#held = rules.bodies.begin(sender, (cause) => {
      this.refused = cause;
      this.#blocks = [];
      onRefused(cause);
    });
  }

  /** Errors: 413 for too many bytes or values, 400 for excessive nesting, 429 and 503 where it has to make room for others. */
  async take(bytes: Uint8Array): Promise<void> {
    if (this.refused !== null) throw this.refused;
    const { maxBytes, digest, bodies } = this.#rules;
    this.#byteCount += bytes.byteLength;
    if (this.#byteCount > maxBytes) throw over(maxBytes);
    this.#scan.take(bytes);
    digest?.update(bytes);
    this.#held.add(bytes.byteLength);
    this.#keep(bytes);
    await bodies.room();
  }

  /** Ends it, and returns its bytes. Errors: 503 where it had to make room for others. */
  complete(): Uint8Array<ArrayBuffer>[] {
    if (this.refused !== null) throw this.refused;
    this.#held.complete();
    const blocks = this.#blocks;
    this.#blocks = [];
    const last = blocks.pop();
    if (last !== undefined) blocks.push(last.subarray(0, this.#used));
    return blocks;
  }

  /** Ends it, and parses it. Errors: 400; those of `complete`. */
  async value(): Promise<JsonValue> {
    try {
      return await this.#rules.turns.run(parseInSteps(this.complete()));
    } catch (cause) {
      throw refusalOf(cause);
    }
  }

  /** Frees its memory, also of what has not ended. */
  release(): void {
    this.#held.release();
    this.#blocks = [];
  }

  #keep(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.byteLength; ) {
      const block = this.#block(bytes.byteLength - from);
      const part = bytes.subarray(from, from + block.byteLength - this.#used);
      block.set(part, this.#used);
      this.#used += part.byteLength;
      from += part.byteLength;
    }
  }

  /** Returns a block with room. The first is as long as what has come, since a form's record is short; each next one twice as long. */
  #block(wanted: number): Uint8Array<ArrayBuffer> {
    const last = this.#blocks.at(-1);
    if (last !== undefined && this.#used < last.byteLength) return last;
    const block = new Uint8Array(Math.min(BLOCK_BYTES, Math.max(2 * (last?.byteLength ?? 0), wanted)));
    this.#blocks.push(block);
    this.#used = 0;
    return block;
  }
}
