import { randomInt } from "node:crypto";
import { type AppError, badField } from "../../../../kernel/errors.ts";
import { CODE_ATTEMPTS_MAX, CODE_DIGITS, PHONE_CODE_TTL_MS } from "../limits.ts";
import type { CodeBudget } from "../means/guesses.ts";
import { countAttempt, deleteSecret, findSecret, type OneTimeSecret, putSecret } from "../statements/secrets.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { equalsConstantTime } from "../store/sealing.ts";
import type { AuthDeps } from "./deps.ts";

// Six-digit codes that are mailed or sent to a phone. Only their hashes are kept, under the hash of their owner.

export type CodePurpose = "email-otp" | "phone-otp" | "phone-change" | "phone-factor";

export const newCode = (): string => String(randomInt(10 ** CODE_DIGITS)).padStart(CODE_DIGITS, "0");

/** Hashes a code together with its owner: an address, a number or a user. */
export const codeHash = ({ sealing }: AuthDeps, purpose: CodePurpose, owner: string, code: string): Buffer =>
  sealing.digest(`${purpose}-code`, `${owner}:${code}`);

export const invalidCode = (): AppError => badField("code", "invalid_value", "code is wrong, used or expired");

/** Stores a code that is sent to a phone; it replaces an earlier one of its owner. `userId`: null for a number without an account. */
export function keepPhoneCode(
  deps: AuthDeps,
  write: AccountWrite,
  { purpose, owner, userId, code, phone }: PhoneCode,
): void {
  putSecret.run(write.tx, {
    hash: deps.sealing.digest(purpose, owner),
    purpose,
    userId,
    payload: { code: codeHash(deps, purpose, owner, code).toString("base64"), phone },
    expiresAt: write.now + PHONE_CODE_TTL_MS,
  });
}

interface PhoneCode {
  purpose: CodePurpose;
  owner: string;
  userId: string | null;
  code: string;
  phone: string;
}

/**
 * Uses a code up, and returns its secret, or the refusal: a wrong attempt must be counted, so it is a result of the write and not a
 * throw. The fifth wrong one ends the code. `budget`: null where the caller counts.
 */
export function takeCode(
  deps: AuthDeps,
  write: AccountWrite,
  { purpose, owner, code, budget }: { purpose: CodePurpose; owner: string; code: string; budget: CodeBudget | null },
): OneTimeSecret | AppError {
  const hash = deps.sealing.digest(purpose, owner);
  const secret = findSecret.get(write.tx, { hash, purpose, now: write.now });
  const expected = secret?.payload["code"];
  if (secret === null || typeof expected !== "string") return invalidCode();
  const refusal = budget?.refusal(write) ?? null;
  if (refusal !== null) return refusal;
  if (!equalsConstantTime(Buffer.from(expected, "base64"), codeHash(deps, purpose, owner, code.trim()))) {
    if (secret.attempts + 1 >= CODE_ATTEMPTS_MAX) deleteSecret.run(write.tx, { hash });
    else countAttempt.run(write.tx, { hash });
    // Without a code that was sent no guess can be right, and the budget does not shrink.
    budget?.count(write);
    return invalidCode();
  }
  deleteSecret.run(write.tx, { hash });
  return secret;
}
