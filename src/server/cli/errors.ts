import { whyUnanswered } from "../../kernel/errors.ts";

/** The error of wrong arguments: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The error of a failed command, with the reason as its message: exit code 1, without a stack. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** Creates the error for a server that did not answer. */
export const noAnswer = (url: string, cause: unknown): CommandError =>
  new CommandError(`${url} does not answer: ${whyUnanswered(cause)}`, { cause });
