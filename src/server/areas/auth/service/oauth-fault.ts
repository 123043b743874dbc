import { reasonOf } from "../../../../kernel/errors.ts";

/**
 * Why a request to a provider failed, for the log. The errors of the library hold what the provider sent as well: tokens, and
 * what it says of the user.
 */
export function faultOf(cause: unknown): string {
  const reasons: unknown[] = [];
  for (let error = cause; error instanceof Error; error = error.cause) {
    // Of an error answer of the provider.
    const { error: code, error_description: description } = error as { error?: unknown; error_description?: unknown };
    reasons.push(error.message, code, description);
  }
  const texts = reasons.filter((reason) => typeof reason === "string");
  return texts.length === 0 ? reasonOf(cause) : texts.join(": ");
}
