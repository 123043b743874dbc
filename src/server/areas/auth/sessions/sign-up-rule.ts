import type { Clock } from "../../../../kernel/clock.ts";
import { forbidden } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { within } from "../../../../kernel/time/deadline.ts";
import { RULE_TIMEOUT_MS } from "../../../access/limits.ts";
import type { Lookups } from "../../../access/lookups/lookups.ts";
import type { AuthConfig, SignUpFacts } from "../../../config/types.ts";

/** `auth.signup`: which visitors may become users. [AU201] */
export interface SignUpRule {
  /** Everybody may: there is nothing to ask. */
  readonly isOpen: boolean;
  /** Whether this visitor may. A rule that throws, or that has no answer within five seconds, denies, and is logged. Errors: 503 for too many lookups. */
  allows(facts: SignUpFacts): Promise<boolean>;
  /** Errors: 403 `Sign-up is closed`; those of `allows`. */
  require(facts: SignUpFacts): Promise<void>;
}

export function createSignUpRule(deps: {
  rule: AuthConfig["signup"];
  lookups: () => Lookups;
  clock: Clock;
  logger: Logger;
}): SignUpRule {
  const { rule = true, clock, logger } = deps;

  const allows: SignUpRule["allows"] = async (facts) => {
    if (typeof rule === "boolean") return rule;
    const call = deps.lookups().begin();
    // The rule gets copies: what it changes is not what becomes of the user.
    const asked = async () => rule(structuredClone(facts), call.context(null));
    const answer = await within(clock, RULE_TIMEOUT_MS, asked()).catch((cause: unknown) => {
      logger.error("An access rule threw", { rule: "auth.signup", cause });
      return false;
    });
    call.check();
    return answer === true;
  };
  return {
    isOpen: rule === true,
    allows,
    async require(facts) {
      if (!(await allows(facts))) throw forbidden("Sign-up is closed");
    },
  };
}
