import type { Clock } from "../../../kernel/clock.ts";
import { freeBytes } from "../../../kernel/free-bytes.ts";
import type { AnswerText } from "../../db/index.ts";
import { PIECES_FROM_BYTES, STALLED_CLIENT_TIMEOUT_MS } from "../limits.ts";
import { lateBody } from "./late-body.ts";

/**
 * Builds the body of an answer, sent as the client reads it. Frees each piece once it is copied, and calls `release` when
 * everything is sent, the client is gone, or it reads nothing for STALLED_CLIENT_TIMEOUT_MS.
 */
export function answerBody(
  { parts, sizeBytes, release }: AnswerText,
  clock: Clock,
): ReadableStream | Uint8Array<ArrayBuffer> {
  if (sizeBytes < PIECES_FROM_BYTES) {
    release();
    return lateBody(Buffer.concat(parts));
  }
  const waiting = parts.values();
  let sent: Uint8Array<ArrayBuffer> | null = null;
  let cancelStall = () => {};
  const end = (): void => {
    cancelStall();
    release();
  };
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        cancelStall();
        // The stream buffers nothing, so a pull means that the previous piece has been copied.
        if (sent !== null) freeBytes(sent);
        const { done, value } = waiting.next();
        if (done === true) {
          controller.close();
          end();
          return;
        }
        sent = value;
        controller.enqueue(value);
        cancelStall = clock.after(STALLED_CLIENT_TIMEOUT_MS, () => {
          controller.error(new Error("The client reads nothing of its answer"));
          end();
        });
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}
