import { whyUnanswered } from "../../kernel/errors.ts";

/** The arguments are wrong: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command failed for the reason in the message: exit code 1, without a stack. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** A server that was asked and did not answer. */
export const noAnswer = (url: string, cause: unknown): CommandError =>
  new CommandError(`${url} does not answer: ${whyUnanswered(cause)}`, { cause });
