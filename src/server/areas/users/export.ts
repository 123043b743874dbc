import type { AnswerGate } from "../../../kernel/answer-gate.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import type { Principal } from "../../access/principal.ts";
import type { SignInMeans } from "../../config/shapes/sign-in.ts";
import { streamText } from "../../http/bodies/json-stream.ts";

/** Exports that are streamed at once. */
const EXPORTS_MAX = 16;
/** Text that is sent together. */
const PIECE_LENGTH = 64 * 1024;

/** The parts of an export that other areas have. Each yields what the caller may read. */
export interface ExportSources {
  records(principal: Principal, userId: string, signal: AbortSignal): AsyncIterable<{ place: string; record: object }>;
  files(principal: Principal, of: { userId: string; origin: string }, signal: AbortSignal): AsyncIterable<object>;
}

interface Export {
  principal: Principal;
  userId: string;
  /** The account as the caller sees it. */
  account: object;
  means: SignInMeans;
  origin: string;
}

/** The exports that are under way: one for a user, and a bounded number in all. */
export class Exports {
  readonly #deps: ExportSources & { requirePresent(principal: Principal): void; clock: Clock; gate: AnswerGate | null };
  readonly #running = new Set<string>();

  constructor(
    deps: ExportSources & { requirePresent(principal: Principal): void; clock: Clock; gate: AnswerGate | null },
  ) {
    this.#deps = deps;
  }

  /** Errors: 429 while this user is being exported, 503 while too many are. */
  #requireRoom(userId: string): void {
    if (this.#running.has(userId)) throw new AppError(429, "This user is being exported already");
    if (this.#running.size >= EXPORTS_MAX) throw new AppError(503, "Too many exports are under way");
  }

  /**
   * Streams the export as a file, as fast as the client reads it. It breaks off when the caller's session or key ends. `note` records
   * it once nothing can refuse it any more. Errors: 429 while this user is being exported, 503 while too many are; those of `note`.
   */
  async answer(asked: Export, note: () => Promise<void>): Promise<Response> {
    const { userId } = asked;
    this.#requireRoom(userId);
    this.#running.add(userId);
    try {
      await note();
    } catch (cause) {
      this.#running.delete(userId);
      throw cause;
    }
    const ending = new AbortController();
    const body = streamText(this.#text(asked, ending.signal), {
      clock: this.#deps.clock,
      gate: this.#deps.gate,
      onEnd: () => {
        this.#running.delete(userId);
        ending.abort();
      },
    });
    return new Response(body, {
      headers: {
        "content-type": "application/json",
        "content-disposition": `attachment; filename="export-${day(this.#deps.clock.now())}.json"`,
        "cache-control": "private, no-store",
      },
    });
  }

  async *#text(asked: Export, signal: AbortSignal): AsyncGenerator<string, void> {
    let text = "";
    for await (const part of this.#parts(asked, signal)) {
      text += part;
      if (text.length < PIECE_LENGTH) continue;
      yield text;
      text = "";
    }
    yield text;
  }

  async *#parts(
    { principal, userId, account, means, origin }: Export,
    signal: AbortSignal,
  ): AsyncGenerator<string, void> {
    const { clock, requirePresent, records, files } = this.#deps;
    const head = { exportedAt: new Date(clock.now()).toISOString(), account, ...means };
    yield `${JSON.stringify(head).slice(0, -1)},"records":{`;
    let place: string | null = null;
    for await (const found of records(principal, userId, signal)) {
      requirePresent(principal);
      if (found.place === place) yield ",";
      else yield `${place === null ? "" : "],"}${JSON.stringify(found.place)}:[`;
      place = found.place;
      yield JSON.stringify(found.record);
    }
    yield `${place === null ? "" : "]"}},"files":[`;
    let separator = "";
    for await (const file of files(principal, { userId, origin }, signal)) {
      requirePresent(principal);
      yield separator + JSON.stringify(file);
      separator = ",";
    }
    yield "]}";
  }
}

const day = (time: number): string => new Date(time).toISOString().slice(0, "2026-01-01".length);
