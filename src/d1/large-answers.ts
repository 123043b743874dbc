import { LARGE_ANSWER_BYTES, LARGE_ANSWERS_MAX_BYTES } from "./limits.ts";
import type { QueryAnswer } from "./types.ts";

/** Room for one answer. */
export interface Reservation {
  /** Resolves when the answer may be taken in. */
  ready: Promise<void>;
  /** Gives the room back, or gives up waiting for it. */
  release(): void;
}

/**
 * Large answers that the server holds for clients, who may read slowly: those beyond the bound stay in their query
 * processes, in order of arrival.
 */
export interface AnswerRoom {
  reserve(sizeBytes: number): Reservation;
}

const SMALL: Reservation = { ready: Promise.resolve(), release: () => {} };

export function createAnswerRoom(): AnswerRoom {
  const waiting = new Set<{ sizeBytes: number; grant: () => void }>();
  let heldBytes = 0;
  const admit = (): void => {
    for (const next of waiting) {
      if (heldBytes > 0 && heldBytes + next.sizeBytes > LARGE_ANSWERS_MAX_BYTES) return;
      waiting.delete(next);
      heldBytes += next.sizeBytes;
      next.grant();
    }
  };
  return {
    reserve(sizeBytes) {
      if (sizeBytes < LARGE_ANSWER_BYTES) return SMALL;
      const { promise: ready, resolve: grant } = Promise.withResolvers<void>();
      const entry = { sizeBytes, grant };
      waiting.add(entry);
      admit();
      let isReleased = false;
      return {
        ready,
        release() {
          if (isReleased) return;
          isReleased = true;
          if (!waiting.delete(entry)) heldBytes -= sizeBytes;
          admit();
        },
      };
    },
  };
}

/** The answer as a body that gives its room back when it has been read, or nobody reads on. */
export function bodyOf({
  chunks,
  sizeBytes,
  release,
}: QueryAnswer): ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> {
  if (sizeBytes < LARGE_ANSWER_BYTES) {
    release();
    return Buffer.concat(chunks);
  }
  const waiting = chunks.values();
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = waiting.next();
      if (done !== true) return controller.enqueue(value);
      release();
      controller.close();
    },
    cancel: release,
  });
}
