import type { Clock } from "../../../kernel/clock.ts";
import { freeBytes } from "../../../kernel/free-bytes.ts";
import type { AnswerText } from "../../db/index.ts";
import { PIECES_FROM_BYTES, STALLED_CLIENT_TIMEOUT_MS } from "../limits.ts";
import { lateBody } from "./late-body.ts";

/**
 * The answer as a body, sent as the client takes it. Its memory is given back piece by piece, and its room when it has been sent,
 * or its client is gone or takes nothing for a while.
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
        // With nothing kept back by the stream, whoever asks for the next piece has copied the last one.
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
