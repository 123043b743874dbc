import { AppError } from "../../../../kernel/errors.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { CODE_FAILURES_PER_DAY, CODE_FAILURES_WINDOW_MS } from "../limits.ts";
import { countFailure, failuresOf } from "../statements/code-failures.ts";
import type { Client } from "../sessions/deps.ts";

/** The uses of six-digit codes. Each has its own budget: one used up with a stolen token, for instance, leaves the others. */
export type CodeUse = "totp-sign-in" | "totp-manage" | "email-otp";

/**
 * Wrong codes within a day. Limits per minute alone would allow guessing forever, with a chance of some percent a day; this
 * bounds the chance to some thousandths. The count is in the file, and is read in the write that checks the code: neither a
 * restart nor a race allows more guesses. [AU102]
 */
export interface CodeBudget {
  /** null while guesses are left; otherwise the answer, 429 with `Retry-After`. */
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
