import { AppError } from "../kernel/errors.ts";
import { LARGE_ANSWER_BYTES, LARGE_ANSWERS_MAX_BYTES } from "./limits.ts";
import type { QueryAnswer } from "./types.ts";

/** Answers on their way to clients, which may read slowly: what they hold together is bounded. */
export interface LargeAnswers {
  /** The answer as a body. Errors: 503 when large ones hold too much already. */
  bodyOf(answer: Pick<QueryAnswer, "chunks" | "sizeBytes">): ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>;
}

export function createLargeAnswers(): LargeAnswers {
  let heldBytes = 0;
  return {
    bodyOf({ chunks, sizeBytes }) {
      if (sizeBytes < LARGE_ANSWER_BYTES) return Buffer.concat(chunks);
      if (heldBytes + sizeBytes > LARGE_ANSWERS_MAX_BYTES) {
        throw new AppError(503, "Too many large answers are being sent; use LIMIT, or try again");
      }
      heldBytes += sizeBytes;
      const waiting = [...chunks];
      let isReleased = false;
      const release = (): void => {
        if (isReleased) return;
        isReleased = true;
        heldBytes -= sizeBytes;
        waiting.length = 0;
      };
      let next = 0;
      return new ReadableStream<Uint8Array>({
        pull(controller) {
          const chunk = waiting[next++];
          if (chunk !== undefined) return controller.enqueue(chunk);
          release();
          controller.close();
        },
        cancel: release,
      });
    },
  };
}
