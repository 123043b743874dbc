import { AppError } from "../../../../kernel/errors.ts";
import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { LookupWatch } from "../../../access/lookups/lookups.ts";
import type { StandingRight } from "../../../sockets/standing-rights.ts";
import type { StandingRights } from "../../../sockets/standing-rights.ts";
import { ASKED_AGAIN_MAX } from "../limits.ts";

/** Asks the rules of a route. The answer: whether they have looked records up. Errors: those of `MayCall`. */
export type Ask = (watch: LookupWatch) => MaybePromise<boolean>;

/**
 * What the rules say of the records of now: those that are awaited are asked again where what they have looked at changes meanwhile.
 * Errors: those of `ask`; 503 where it always does.
 */
export function judge(ask: Ask, rights: Pick<StandingRights, "begin">): MaybePromise<boolean> {
  const right = rights.begin();
  try {
    const asked = ask(right.watch);
    if (isPromise(asked)) return awaited(asked, ask, right);
    right.end();
    return asked;
  } catch (cause) {
    right.end();
    throw cause;
  }
}

async function awaited(first: Promise<boolean>, ask: Ask, right: StandingRight): Promise<boolean> {
  try {
    let hasLookedUp = await first;
    for (let times = 0; right.isStale; times++) {
      if (times === ASKED_AGAIN_MAX) throw new AppError(503, "What the rule looks at changes all the time, try again");
      right.isStale = false;
      const { watch, answered } = right.renew();
      try {
        hasLookedUp = await ask(watch);
      } finally {
        answered();
      }
    }
    return hasLookedUp;
  } finally {
    right.end();
  }
}
