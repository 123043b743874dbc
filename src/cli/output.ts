/** Whoever read standard output has gone, as `head` does that has seen enough. */
export class ReaderGone extends Error {}

/** What a failed write to standard output means. */
export const outputFailure = (cause: unknown): unknown =>
  cause instanceof Error && "code" in cause && cause.code === "EPIPE"
    ? new ReaderGone(cause.message, { cause })
    : cause;

/** Standard output is for answers; this returns when the text has left, so that the process may end. Errors: ReaderGone. */
export async function printAnswer(text: string): Promise<void> {
  try {
    await Bun.write(Bun.stdout, `${text}\n`);
  } catch (cause) {
    throw outputFailure(cause);
  }
}

/** Standard error is for everything else that a person reads. */
export async function printNote(text: string): Promise<void> {
  await Bun.write(Bun.stderr, `${text}\n`);
}
