import { SECOND_MS } from "../../kernel/duration.ts";
import { AppError } from "../../kernel/errors.ts";
import type { AccountWrite } from "../account-file.ts";
import { CODE_FAILURES_PER_DAY, CODE_FAILURES_WINDOW_MS } from "../limits.ts";
import { countFailure, failuresOf } from "../statements/code-failures.ts";
import type { Client } from "../types.ts";

/**
 * What six-digit codes are for: each has a budget of its own, so that whoever uses one up, with a stolen token for instance,
 * leaves the others.
 */
export type CodeUse = "totp-sign-in" | "totp-manage" | "email-otp";

/**
 * Wrong codes of a day. Windows of minutes alone let a guesser go on for ever, at some percent a day; this bounds it to some
 * thousandths. It is kept in the file, and asked within the write that judges the code: neither a restart nor a race gives
 * more guesses.
 */
export interface CodeBudget {
  /** null while there is some left; else the answer, 429 with when to come back. */
  refusal(write: AccountWrite): AppError | null;
  count(write: AccountWrite): void;
}

/** `owner`: the user's id, or the address that a code was mailed to. */
export function codeBudget(use: CodeUse, owner: string, client: Client): CodeBudget {
  if (!client.isLimited) return { refusal: () => null, count() {} };
  const key = `${use}:${owner}`;
  return {
    refusal({ tx, now }) {
      const found = failuresOf.get(tx, { key, now });
      if (found === null || found.failures < CODE_FAILURES_PER_DAY) return null;
      // A clock that was set back does not lengthen a day.
      const remainingMs = Math.min(found.endsAt - now, CODE_FAILURES_WINDOW_MS);
      const hours = Math.ceil(remainingMs / (3_600 * SECOND_MS));
      return new AppError(
        429,
        `Too many wrong codes: codes are taken again in ${hours} h, other ways to sign in are open`,
        { headers: { "retry-after": String(Math.ceil(remainingMs / SECOND_MS)) } },
      );
    },
    count({ tx, now }) {
      countFailure.run(tx, { key, now, endsAt: now + CODE_FAILURES_WINDOW_MS });
    },
  };
}
