import { AppError } from "../../kernel/errors.ts";
import { isPromise, type MaybePromise } from "../../kernel/maybe-promise.ts";
import type { LookupWatch } from "../access/lookups/lookups.ts";
import type { StandingRight, StandingRights } from "./standing-rights.ts";

/** Retries of an awaited rule because the data it looks up has changed. */
const ASKED_AGAIN_MAX = 10;

/** Evaluates the rules of one request, and reports their lookups to `watch`. */
export type Ask = (watch: LookupWatch) => MaybePromise<boolean>;

/**
 * Evaluates the rules of one request against the current records: awaited rules are evaluated again when the data they looked up
 * changes meanwhile. Errors: those of `ask`; 503 after ASKED_AGAIN_MAX retries.
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
    let answer = await first;
    for (let times = 0; right.isStale; times++) {
      if (times === ASKED_AGAIN_MAX) throw new AppError(503, "What the rule looks up changes all the time, try again");
      right.isStale = false;
      const { watch, answered } = right.renew();
      try {
        answer = await ask(watch);
      } finally {
        answered();
      }
    }
    return answer;
  } finally {
    right.end();
  }
}
