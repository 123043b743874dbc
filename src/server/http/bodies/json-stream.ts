import { type AnswerGate, behind } from "../../../kernel/answer-gate.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { nextTurn } from "../../../kernel/time/scheduler.ts";
import { STALL_TIMEOUT_MS } from "../limits.ts";

/** The text serialised in one turn of the event loop: about a millisecond. */
const PIECE_LENGTH = 128 * 1024;

/** The memory reservations of large pages that one answer holds until it is sent: most answers hold none. */
export class LargeAnswer {
  #releases: (() => void)[] | null = null;

  keep(release: () => void): void {
    this.#releases ??= [];
    this.#releases.push(release);
  }

  release(): void {
    for (const release of this.#releases ?? []) release();
    this.#releases = null;
  }

  /** Returns the value to answer with: a stream in place of a large page. */
  bodyOf(value: unknown, clock: Clock): unknown {
    if (this.#releases === null) return value;
    if (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
      return streamJson(value, { clock, onEnd: () => this.release() });
    }
    this.release();
    return value;
  }
}

/**
 * Streams a large answer, serialised piece by piece as the client reads it. `onEnd` is called once: when everything is sent, the
 * client is gone, or it stops reading. [HT90]
 */
export const streamJson = (body: object, options: { clock: Clock; onEnd: () => void }): ReadableStream =>
  streamText(jsonPieces(body), options);

/**
 * Streams pieces of text as the client reads them, one in a turn of the event loop. `onEnd` is called once: when everything is sent,
 * the client is gone, it stops reading, or a piece fails. `gate`: for pieces that are read while they are sent.
 */
export function streamText(
  pieces: Iterator<string, void> | AsyncIterator<string, void>,
  { clock, gate = null, onEnd }: { clock: Clock; gate?: AnswerGate | null; onEnd: () => void },
): ReadableStream {
  const encoder = new TextEncoder();
  let cancelStall = () => {};
  let isEnded = false;
  const end = (): void => {
    cancelStall();
    if (isEnded) return;
    isEnded = true;
    onEnd();
  };
  return new ReadableStream(
    {
      async pull(controller) {
        cancelStall();
        // Yields to the event loop between pieces, also when the client reads them at once.
        await nextTurn();
        try {
          const { value, done } = await behind(gate, await pieces.next());
          if (isEnded) return;
          if (done === true) {
            controller.close();
            end();
            return;
          }
          controller.enqueue(encoder.encode(value));
        } catch (cause) {
          end();
          throw cause;
        }
        cancelStall = clock.after(STALL_TIMEOUT_MS, () => {
          controller.error(new Error("The client takes nothing of its answer"));
          end();
        });
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}

/**
 * Yields the text of JSON.stringify in pieces: an array that is a member of the body is split between its elements, a record with
 * expanded records between those.
 */
export function* jsonPieces(body: object): Generator<string, void> {
  let text = "";
  for (const part of membersOf(body)) {
    text += part;
    if (text.length < PIECE_LENGTH) continue;
    yield text;
    text = "";
  }
  yield text;
}

/** The member of a record that contains its expanded records. */
const EXPANDED = "expand";

function* membersOf(body: object): Generator<string, void> {
  let start = "{";
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue;
    yield `${start}${JSON.stringify(name)}:`;
    start = ",";
    if (Array.isArray(value)) yield* elementsOf(value);
    else if (name === EXPANDED && isObject(value)) yield* expandedOf(value);
    else yield JSON.stringify(value);
  }
  yield start === "{" ? "{}" : "}";
}

function* elementsOf(values: readonly unknown[]): Generator<string, void> {
  yield "[";
  for (const [index, value] of values.entries()) {
    if (index > 0) yield ",";
    if (isObject(value) && isObject((value as Record<string, unknown>)[EXPANDED])) yield* membersOf(value);
    else yield JSON.stringify(value) ?? "null";
  }
  yield "]";
}

/** Yields the text of `expand`, whose members are records, pages of records, and null. */
function* expandedOf(expanded: object): Generator<string, void> {
  let start = "{";
  for (const [name, value] of Object.entries(expanded)) {
    yield `${start}${JSON.stringify(name)}:`;
    start = ",";
    if (isObject(value)) yield* membersOf(value);
    else yield JSON.stringify(value);
  }
  yield start === "{" ? "{}" : "}";
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
