import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, forbidden, unauthorized } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { chain, isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import { inPhase } from "../../../../kernel/observing/request-trace.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import { RULE_TIMEOUT_MS } from "../../../access/limits.ts";
import type { LookupCall, Lookups, LookupWatch } from "../../../access/lookups/lookups.ts";
import { authOf, type Principal } from "../../../access/principal.ts";
import type { RouteAccess, RouteAccessContext } from "../../../config/types.ts";

type Rule = Exclude<RouteAccess, true>;

/** The name of a route in scopes: the first segment of its path below `/api/functions`. */
const scopeNameOf = (pattern: string): string => pattern.split("/")[3] ?? "";

/**
 * Whether a rule has looked records up, which may be others when the body has arrived. `watch` learns what it looks at. Errors: 401, 403; a `Refusal` that a rule
 * throws; 503 where rules look too much up.
 */
export type MayCall = (
  principal: Principal,
  about: () => Pick<RouteAccessContext, "request" | "params">,
  watch: LookupWatch,
) => MaybePromise<boolean>;

/**
 * Who may call a route. A service key is judged by its scopes alone, everybody else by all of `access`; without any, by whether they
 * are signed in. A rule that fails, or takes too long, denies.
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
    logger.error("an access rule failed, which denies", { route: pattern, cause });
    return false;
  };
  const ask = (rule: Rule, principal: Principal, context: RouteAccessContext): MaybePromise<unknown> => {
    try {
      const answer: MaybePromise<unknown> = inPhase("rules", () => rule(authOf(principal), context));
      return isPromise(answer) ? within(clock, RULE_TIMEOUT_MS, answer).catch(failed) : answer;
    } catch (cause) {
      return failed(cause);
    }
  };
  /** All of them, one after another. */
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

/** Anything but true denies. */
function settle(principal: Principal, answer: unknown): void {
  if (answer === true) return;
  throw principal.kind === "anonymous" ? unauthorized() : forbidden();
}
