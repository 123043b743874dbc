import { codeOf, reasonOf } from "../../kernel/errors.ts";
import { StandardOutput } from "./standard-output.ts";

/** Standard error of this process. */
export const errorOutput = new StandardOutput(2);

/** The error when the reader of standard output has closed it, as `head` does. */
export class OutputClosed extends Error {}

/** Maps the error of a failed write to standard output. */
export const outputFailure = (cause: unknown): unknown =>
  codeOf(cause) === "EPIPE" ? new OutputClosed(reasonOf(cause), { cause }) : cause;

/** Writes to standard output, which is for answers. Resolves when the text is written. Errors: OutputClosed. */
export async function printAnswer(text: string): Promise<void> {
  try {
    await Bun.write(Bun.stdout, `${text}\n`);
  } catch (cause) {
    throw outputFailure(cause);
  }
}

/** Writes to standard error, which is for all other messages to people. Resolves when the text is written or the write has failed. */
export async function printNote(text: string): Promise<void> {
  errorOutput.write(`${text}\n`);
  await errorOutput.flush();
}

/** Formats a count with its noun: `2 files`, `1 file`. */
export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
