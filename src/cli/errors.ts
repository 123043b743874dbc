/** The arguments are wrong: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command failed for the reason in the message: exit code 1, without a stack. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** A server that was asked and did not answer. */
export function noAnswer(url: string, cause: unknown): CommandError {
  const isRefused = cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
  // Bun's message asks the user a question.
  const reason = isRefused ? "nothing listens there (ECONNREFUSED)" : cause instanceof Error ? cause.message : cause;
  return new CommandError(`${url} does not answer: ${reason}`, { cause });
}
