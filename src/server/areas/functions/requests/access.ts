import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, forbidden, unauthorized } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { askRule } from "../../../../kernel/observing/request-trace.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import { RULE_TIMEOUT_MS } from "../../../access/limits.ts";
import type { LookupCall, Lookups, LookupWatch } from "../../../access/lookups/lookups.ts";
import { authOf, type Principal } from "../../../access/principal.ts";
import type { RouteAccess, RouteAccessContext } from "../../../config/types.ts";

type Rule = Exclude<RouteAccess, true>;

/** Returns the name of a route in scopes: the first segment of its path below `/api/functions`. */
const scopeNameOf = (pattern: string): string => pattern.split("/")[3] ?? "";

/**
 * Evaluates the access of a route, and returns whether a rule has looked up records, which may have changed when the body has
 * arrived. `watch` receives what it looks at. Errors: 401, 403; a `Refusal` that a rule throws; 503 where rules make too many
 * lookups.
 */
export type MayCall = (
  principal: Principal,
  about: () => Pick<RouteAccessContext, "request" | "params">,
  watch: LookupWatch,
) => MaybePromise<boolean>;

/**
 * Creates the access check of a route. Only its scopes decide for a service key, all of `access` for everybody else; without
 * `access`, a caller must be signed in. A rule that fails, or exceeds its timeout, denies.
 */
export function createAccess(
  pattern: string,
  access: readonly RouteAccess[],
  { clock, logger, lookups }: { clock: Clock; logger: Logger; lookups: Lookups },
): MayCall {
  const scopeName = scopeNameOf(pattern);
  const rules = access.filter((rule) => rule !== true);

  const failed = (cause: unknown): false => {
    if (cause instanceof AppError) throw cause;
    logger.error("functions: an access rule failed and denies", { route: pattern, cause });
    return false;
  };
  const ask = (rule: Rule, principal: Principal, context: RouteAccessContext): MaybePromise<unknown> => {
    try {
      const answer: MaybePromise<unknown> = askRule(`route ${pattern}`, () => rule(authOf(principal), context));
      return isPromise(answer) ? within(clock, RULE_TIMEOUT_MS, answer).catch(failed) : answer;
    } catch (cause) {
      return failed(cause);
    }
  };
  /** Evaluates all rules in order. */
  const askAll = (
    [rule, ...rest]: readonly Rule[],
    principal: Principal,
    call: LookupCall,
    context: RouteAccessContext,
  ): MaybePromise<void> => {
    if (rule === undefined) return undefined;
    return chain(ask(rule, principal, context), (answer) => {
      call.check();
      settle(principal, answer);
      return askAll(rest, principal, call, context);
    });
  };

  return (principal, about, watch) => {
    if (principal.kind === "server") return false;
    if (principal.kind === "serviceKey") {
      if (!principal.scopes.allows("functions", "*", scopeName, "call")) throw forbidden();
      return false;
    }
    if (access.length === 0) settle(principal, principal.kind === "user");
    if (rules.length === 0) return false;
    let hasLookedUp = false;
    const lookedAt: LookupWatch["lookedAt"] = (place) => {
      hasLookedUp = true;
      watch.lookedAt(place);
    };
    const call = lookups.begin({ watch: { lookedAt } });
    const { table, db } = call.context(null);
    const asked = askAll(rules, principal, call, { ...about(), table, db });
    return chain(asked, () => hasLookedUp);
  };
}

/** Throws unless the answer is true: anything else denies. */
function settle(principal: Principal, answer: unknown): void {
  if (answer === true) return;
  throw principal.kind === "anonymous" ? unauthorized() : forbidden();
}
