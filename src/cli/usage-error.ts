/** The command was called wrongly: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** It could not be done, for a reason that the message says whole: exit code 1, without a stack. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
