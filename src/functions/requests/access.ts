import { authOf, type Principal } from "../../access/principal.ts";
import type { RouteAccess, RouteAccessContext } from "../../config/types.ts";
import { AppError, forbidden, unauthorized } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";

/** A signed-in user. */
const SIGNED_IN: RouteAccess = (auth) => auth !== null;

/** The name of a route in scopes: the first segment of its path below `/api/functions`. */
export const scopeNameOf = (pattern: string): string => pattern.split("/")[3] ?? "";

/**
 * Whether a caller may call a route. A service key is judged by its scopes alone, everybody else by all of `rules`; without
 * any, by whether they are signed in. Errors: 401, 403; a `Refusal` that a rule throws. Any other error of a rule denies.
 */
export function createAccess(
  pattern: string,
  rules: readonly RouteAccess[],
  logger: Logger,
): (principal: Principal, context: () => RouteAccessContext) => MaybePromise<void> {
  const scopeName = scopeNameOf(pattern);
  const asked = rules.length === 0 ? [SIGNED_IN] : rules.filter((rule) => rule !== true);

  const ask = async (
    rest: readonly RouteAccess[],
    principal: Principal,
    context: RouteAccessContext,
  ): Promise<void> => {
    for (const rule of rest) settle(principal, await askOne(rule, principal, context));
  };
  const askOne = (rule: RouteAccess, principal: Principal, context: RouteAccessContext): MaybePromise<unknown> => {
    try {
      const answer: MaybePromise<unknown> = rule === true || rule(authOf(principal), context);
      return isPromise(answer) ? answer.catch(failed) : answer;
    } catch (cause) {
      return failed(cause);
    }
  };
  const failed = (cause: unknown): false => {
    if (cause instanceof AppError) throw cause;
    logger.error("an access rule threw, which denies", { route: pattern, cause });
    return false;
  };

  return (principal, context) => {
    if (principal.kind === "server") return undefined;
    if (principal.kind === "serviceKey") {
      if (!principal.scopes.allows("functions", "*", scopeName, "call")) throw forbidden();
      return undefined;
    }
    const [first, ...rest] = asked;
    if (first === undefined) return undefined;
    const seen = context();
    const answer = askOne(first, principal, seen);
    if (isPromise(answer)) {
      return answer.then((given) => {
        settle(principal, given);
        return ask(rest, principal, seen);
      });
    }
    settle(principal, answer);
    return rest.length > 0 ? ask(rest, principal, seen) : undefined;
  };
}

/** Anything but true denies. */
function settle(principal: Principal, answer: unknown): void {
  if (answer === true) return;
  throw principal.kind === "anonymous" ? unauthorized() : forbidden();
}
