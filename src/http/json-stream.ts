import type { Clock } from "../kernel/clock.ts";
import { STALL_TIMEOUT_MS } from "./limits.ts";

/** What is serialised in one turn of the event loop: about a millisecond. */
const PIECE_LENGTH = 128 * 1024;

/** The places of large pages that one answer holds until it is sent: most hold none. */
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

  /** What to answer with: a stream in the place of a large page. */
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
 * A large answer, serialised piece by piece as the client takes it. `onEnd` is called once: when all is sent, or the client
 * is gone, or takes nothing more. [HT90]
 */
export function streamJson(body: object, { clock, onEnd }: { clock: Clock; onEnd: () => void }): ReadableStream {
  const pieces = jsonPieces(body);
  const encoder = new TextEncoder();
  let cancelStall = () => {};
  const end = (): void => {
    cancelStall();
    onEnd();
  };
  return new ReadableStream(
    {
      async pull(controller) {
        cancelStall();
        // The loop goes on between two pieces, also where the client takes them at once.
        await new Promise((resolve) => setImmediate(resolve));
        try {
          const { value, done } = pieces.next();
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

/** The text of JSON.stringify, in pieces: those of an array that is a member of the body end between its elements. */
export function* jsonPieces(body: object): Generator<string, void> {
  let text = "{";
  let isFirst = true;
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue;
    text += `${isFirst ? "" : ","}${JSON.stringify(name)}:`;
    isFirst = false;
    if (!Array.isArray(value)) {
      text += JSON.stringify(value);
      continue;
    }
    text += "[";
    for (const [index, element] of value.entries()) {
      text += `${index === 0 ? "" : ","}${JSON.stringify(element) ?? "null"}`;
      if (text.length < PIECE_LENGTH) continue;
      yield text;
      text = "";
    }
    text += "]";
  }
  yield `${text}}`;
}
