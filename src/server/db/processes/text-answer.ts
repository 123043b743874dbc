import { ANSWER_PART_BYTES, LARGE_ANSWER_BYTES } from "../limits.ts";
import type { AnswerRoom, Reservation } from "./answer-room.ts";
import type { Job } from "./job.ts";
import type { ProcessPool } from "./pool.ts";
import type { JobContext } from "./program.ts";

/** A text answered by a process, as bytes in parts, so that it can be forwarded unchanged. */
export interface AnswerText {
  parts: readonly Uint8Array<ArrayBuffer>[];
  sizeBytes: number;
  /** Message of the program to the server, beside the text; null: none. */
  note: string | null;
  /** Releases the memory of a large answer. Call it once the answer has been sent. */
  release(): void;
}

/** A program's answer with a text. `bytes`: null where all of them came as parts. */
export interface SentText {
  bytes: Uint8Array<ArrayBuffer> | null;
  note: string | null;
}

/** Answers with `text`, in a program; a large text is sent in parts once the server has room for it. [DB180] */
export async function sendText(
  text: string,
  { room, sendPart }: JobContext,
  { note }: Pick<SentText, "note"> = { note: null },
): Promise<SentText> {
  const bytes = new TextEncoder().encode(text);
  if (bytes.byteLength < LARGE_ANSWER_BYTES) return { bytes, note };
  await room(bytes.byteLength);
  // Copies: a message takes the whole buffer of its bytes with it.
  for (let from = 0; from < bytes.byteLength; from += ANSWER_PART_BYTES) {
    sendPart(bytes.slice(from, from + ANSWER_PART_BYTES));
  }
  return { bytes: null, note };
}

/** Runs a job, in the server, whose program answers by `sendText`. null: the program answered null. */
export async function runForText(
  pool: ProcessPool,
  { room, ...job }: Omit<Job, "take" | "reserve" | "restart"> & { room: AnswerRoom },
): Promise<AnswerText | null> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let reservation: Reservation | null = null;
  const release = (): void => reservation?.release();
  const reserve = (sizeBytes: number): Promise<void> => {
    reservation = room.reserve(job.caller, sizeBytes);
    return reservation.ready;
  };
  const take = (part: unknown): void => {
    parts.push(part as Uint8Array<ArrayBuffer>); // What `sendText` sends.
  };
  try {
    const answer = (await pool.run({ ...job, take, reserve })) as SentText | null; // What `sendText` returns.
    if (answer === null) return null;
    if (answer.bytes !== null) parts.push(answer.bytes);
    const sizeBytes = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
    return { parts, sizeBytes, note: answer.note, release };
  } catch (cause) {
    release();
    throw cause;
  }
}

export const textOf = ({ parts }: AnswerText): string => Buffer.concat(parts).toString();
