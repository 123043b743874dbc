/** The arguments are wrong: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command failed for the reason in the message: exit code 1, without a stack. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
