import { randomInt } from "node:crypto";
import { type AppError, badField } from "../../../../kernel/errors.ts";
import { MFA_FAILURES, RECOVERY_CODE_COUNT } from "../limits.ts";
import { CodeBudget, type Guess, type GuessKey } from "../means/guesses.ts";
import { factorsOfUser, insertRecoveryCode, setUsedSteps, takeRecoveryCode } from "../statements/means.ts";
import { userById } from "../statements/users.ts";
import { type AccountWrite, type Caller, currentAccount } from "../store/account-file.ts";
import { takeCode } from "./codes.ts";
import type { AuthDeps, Client } from "./deps.ts";
import { invalidToken } from "./sign-in.ts";

// Codes of second factors: of an authenticator app, sent to the account's phone, and recovery codes.

/** No letters and digits that look alike. */
const RECOVERY_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz";
const RECOVERY_CHARACTERS = 12;

const createRecoveryCode = (): string => {
  const pick = () => RECOVERY_ALPHABET[randomInt(RECOVERY_ALPHABET.length)];
  const text = Array.from({ length: RECOVERY_CHARACTERS }, pick).join("");
  return `${text.slice(0, 4)}-${text.slice(4, 8)}-${text.slice(8)}`;
};
const plainRecoveryCode = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");

const recoveryHash = ({ sealing }: AuthDeps, userId: string, code: string): Buffer =>
  sealing.digest("recovery-code", `${userId}:${plainRecoveryCode(code)}`);

/** Recovery codes of a new factor, which are shown once. */
export function createRecoveryCodes(
  deps: AuthDeps,
  userId: string,
): { codes: string[]; keep: (write: AccountWrite, factorId: string) => void } {
  const codes = Array.from({ length: RECOVERY_CODE_COUNT }, createRecoveryCode);
  const hashes = codes.map((code) => recoveryHash(deps, userId, code));
  return {
    codes,
    keep(write, factorId) {
      for (const hash of hashes) insertRecoveryCode.run(write.tx, { userId, factorId, hash });
    },
  };
}

/** Whether the recovery code is right; it is used up then. */
export const useRecoveryCode = (deps: AuthDeps, write: AccountWrite, userId: string, code: string): boolean =>
  takeRecoveryCode.run(write.tx, { userId, hash: recoveryHash(deps, userId, code) }) > 0;

export const wrongCode = (field = "code") => badField(field, "invalid_value", `${field} is wrong or has been used`);

/** Loaded by the first request about a code: a start without it is faster. */
export const totpLibrary = () => import("../means/totp.ts");
type Library = Awaited<ReturnType<typeof totpLibrary>>;

/** Codes whose wrong guesses are counted separately: who guesses with a stolen token, or at recovery codes, blocks no sign-in with a code. */
type GuessedCode = "code" | "recovery-code" | "managing-code";

export const mfaGuessKeys = (userId: string, client: Client, kind: GuessedCode): GuessKey[] =>
  client.isLimited ? [{ key: `mfa-${kind}:${userId}`, limit: MFA_FAILURES }] : [];

/** Checks codes of an authenticator app, once the library is loaded. */
export class TotpChecks {
  readonly #deps: AuthDeps;
  readonly #acceptCode: Library["acceptCode"];

  private constructor(deps: AuthDeps, { acceptCode }: Library) {
    this.#deps = deps;
    this.#acceptCode = acceptCode;
  }

  static async load(deps: AuthDeps): Promise<TotpChecks> {
    return new TotpChecks(deps, await totpLibrary());
  }

  /** Whether the code is right for this factor (null: a verified one of the user's); marks its step as used. */
  use(write: AccountWrite, userId: string, code: string, factorId: string | null): boolean {
    for (const factor of factorsOfUser.all(write.tx, { userId })) {
      if (factor.type !== "totp" || (factorId === null ? !factor.verified : factor.id !== factorId)) continue;
      const secret = this.#deps.sealing.unseal(factor.secret);
      const usedSteps = secret === null ? null : this.#acceptCode(secret, code, factor.usedSteps, write.now);
      if (usedSteps === null) continue;
      setUsedSteps.run(write.tx, { id: factor.id, usedSteps });
      return true;
    }
    return false;
  }
}

/** Whether the code was sent for `owner` to the number that the account has now; it is used up then. */
export function usePhoneCode(
  deps: AuthDeps,
  write: AccountWrite,
  { userId, owner, code }: { userId: string; owner: string; code: string },
): boolean {
  const taken = takeCode(deps, write, { purpose: "phone-factor", owner, code, budget: null });
  return "payload" in taken && taken.payload["phone"] === userById.get(write.tx, { id: userId })?.phone;
}

/** Judges a code as a guess. Returns null for a right one, and the answer otherwise: a wrong one must be counted, so it is no throw. */
export type Judge = (isRight: (totp: TotpChecks) => boolean) => AppError | null;

/** Runs what a signed-in user does with a factor, as a guess at a code. Errors: 401, 429; those of `act`. */
export async function manageFactor(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  act: (write: AccountWrite, judge: Judge) => AppError | null,
): Promise<void> {
  const { userId } = caller;
  const totp = await TotpChecks.load(deps);
  const budget = new CodeBudget("totp-manage", userId, client);
  await deps.guesses.attempt(mfaGuessKeys(userId, client, "managing-code"), async (): Promise<Guess<null>> => {
    const error = await deps.file.write<AppError | null>((write) => {
      if (currentAccount(write, caller) === null) throw invalidToken();
      return act(write, (isRight) => {
        const refusal = budget.refusal(write);
        if (refusal !== null) return refusal;
        if (isRight(totp)) return null;
        budget.count(write);
        return wrongCode();
      });
    });
    return error === null ? { isRight: true, value: null } : { isRight: false, error };
  });
}
