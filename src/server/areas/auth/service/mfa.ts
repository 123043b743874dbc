import { randomInt } from "node:crypto";
import { type AppError, badField, badRequest, conflict, notFound } from "../../../../kernel/errors.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import { Factor, MFA_TICKET_ATTEMPTS_MAX } from "../../../config/shapes/sign-in.ts";
import { MFA_FAILURES, RECOVERY_CODE_COUNT } from "../limits.ts";
import { CodeBudget, type Guess, type GuessKey } from "../means/guesses.ts";
import type { AuthDeps, Client, SignInAnswer } from "../sessions/deps.ts";
import { answerSignIn, begin, invalidToken, type SignIn } from "../sessions/sign-in.ts";
import { requireRecentProof } from "../sessions/ways-in.ts";
import {
  deleteFactors,
  deleteUnverifiedFactors,
  factorsOfUser,
  insertFactor,
  insertRecoveryCode,
  setUsedSteps,
  takeRecoveryCode,
} from "../statements/means.ts";
import { countAttempt, deleteSecret, findSecret } from "../statements/secrets.ts";
import { userById } from "../statements/users.ts";
import { type AccountWrite, type Caller, currentAccount } from "../store/account-file.ts";
import { linkPending } from "./credentials.ts";

// Second factors: TOTP and recovery codes.

export interface Enrolment {
  factorId: string;
  /** Base32. */
  secret: string;
  uri: string;
  recoveryCodes: string[];
}

const factorView = projection(Factor);

export type MfaProof = { code: string } | { recoveryCode: string };

/** No letters and digits that look alike. */
const RECOVERY_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz";
const RECOVERY_CHARACTERS = 12;

const createRecoveryCode = (): string => {
  const pick = () => RECOVERY_ALPHABET[randomInt(RECOVERY_ALPHABET.length)];
  const text = Array.from({ length: RECOVERY_CHARACTERS }, pick).join("");
  return `${text.slice(0, 4)}-${text.slice(4, 8)}-${text.slice(8)}`;
};
const plainRecoveryCode = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");

const wrongCode = (field = "code") => badField(field, "invalid_value", `${field} is wrong or has been used`);
const invalidTicket = () => badField("mfaTicket", "invalid_value", "mfaTicket is unknown, used or expired");

/** Loaded by the first request about a code: a start without it is faster. */
const library = () => import("../means/totp.ts");
type Library = Awaited<ReturnType<typeof library>>;

/** Codes whose wrong guesses are counted separately: who guesses with a stolen token, or at recovery codes, blocks no sign-in with a code. */
type GuessedCode = "code" | "recovery-code" | "managing-code";

const mfaGuessKeys = (userId: string, client: Client, kind: GuessedCode): GuessKey[] =>
  client.isLimited ? [{ key: `mfa-${kind}:${userId}`, limit: MFA_FAILURES }] : [];

const recoveryHash = ({ sealing }: AuthDeps, userId: string, code: string): Buffer =>
  sealing.digest("recovery-code", `${userId}:${plainRecoveryCode(code)}`);

/** Checks codes of a factor, once the library is loaded. */
class Checks {
  readonly #deps: AuthDeps;
  readonly #acceptCode: Library["acceptCode"];

  private constructor(deps: AuthDeps, { acceptCode }: Library) {
    this.#deps = deps;
    this.#acceptCode = acceptCode;
  }

  static async load(deps: AuthDeps): Promise<Checks> {
    return new Checks(deps, await library());
  }

  /** Whether the code is right for this factor (null: a verified one of the user's); marks its step as used. */
  useCode(write: AccountWrite, userId: string, code: string, factorId: string | null): boolean {
    for (const factor of factorsOfUser.all(write.tx, { userId })) {
      if (factorId === null ? !factor.verified : factor.id !== factorId) continue;
      const secret = this.#deps.sealing.unseal(factor.secret);
      const usedSteps = secret === null ? null : this.#acceptCode(secret, code, factor.usedSteps, write.now);
      if (usedSteps === null) continue;
      setUsedSteps.run(write.tx, { id: factor.id, usedSteps });
      return true;
    }
    return false;
  }

  /** Whether the code is right; it becomes invalid then. */
  useProof(write: AccountWrite, userId: string, proof: MfaProof): boolean {
    if ("code" in proof) return this.useCode(write, userId, proof.code, null);
    const hash = recoveryHash(this.#deps, userId, proof.recoveryCode);
    return takeRecoveryCode.run(write.tx, { userId, hash }) > 0;
  }
}

/** Completes a sign-in with a code. Errors: 400 for a wrong, used or expired ticket or code, 403 if disabled, 429. */
export async function verifyMfa(
  deps: AuthDeps,
  ticket: string,
  proof: MfaProof,
  client: Client,
): Promise<SignInAnswer> {
  const { file, guesses, clock } = deps;
  const hash = deps.sealing.digest("mfa-ticket", ticket);
  const userId = findSecret.get(file.sql, { hash, purpose: "mfa-ticket", now: clock.now() })?.userId ?? null;
  if (userId === null) throw invalidTicket();
  const checks = await Checks.load(deps);
  const isCode = "code" in proof;
  const budget = isCode ? new CodeBudget("totp-sign-in", userId, client) : null;
  const guess = async (): Promise<Guess<SignIn>> => {
    // A wrong attempt must be counted, so it is a result of the write and not a throw.
    const result = await file.write<SignIn | AppError>((write) => {
      const found = findSecret.get(write.tx, { hash, purpose: "mfa-ticket", now: write.now });
      const account = userById.get(write.tx, { id: userId });
      if (found === null || account === null) return invalidTicket();
      const refusal = budget?.refusal(write) ?? null;
      if (refusal !== null) return refusal;
      if (!checks.useProof(write, userId, proof)) {
        if (found.attempts + 1 >= MFA_TICKET_ATTEMPTS_MAX) deleteSecret.run(write.tx, { hash });
        else countAttempt.run(write.tx, { hash });
        budget?.count(write);
        return wrongCode(isCode ? "code" : "recoveryCode");
      }
      deleteSecret.run(write.tx, { hash });
      linkPending(write, userId, found.payload);
      return begin(deps, write, account, client);
    });
    return "kind" in result ? { isRight: true, value: result } : { isRight: false, error: result };
  };
  const keys = mfaGuessKeys(userId, client, isCode ? "code" : "recovery-code");
  const about = { userId, email: null, way: isCode ? "code" : "recovery code" } as const;
  return answerSignIn(deps, await guesses.attempt(keys, guess, about));
}

/**
 * Adds a factor that counts once it is verified; it replaces an unverified one. Errors: 409 if one is verified already, 401
 * `Sign in again` if the last sign-in was too long ago.
 */
export async function enroll(deps: AuthDeps, caller: Caller): Promise<Enrolment> {
  const { createTotpSecret, totpUri } = await library();
  const secret = createTotpSecret();
  const factorId = deps.ids.uuid();
  const recoveryCodes = Array.from({ length: RECOVERY_CODE_COUNT }, createRecoveryCode);
  const hashes = recoveryCodes.map((code) => recoveryHash(deps, caller.userId, code));
  const account = await deps.file.write((write) => {
    const current = requireRecentProof(write.tx, caller, deps.config, write.now);
    const userId = current.id;
    if (factorsOfUser.all(write.tx, { userId }).some((factor) => factor.verified)) {
      throw conflict("There is a verified factor already; remove it first");
    }
    deleteUnverifiedFactors.run(write.tx, { userId });
    const sealed = deps.sealing.seal(secret);
    insertFactor.run(write.tx, { id: factorId, userId, type: "totp", secret: sealed, createdAt: write.now });
    for (const hash of hashes) insertRecoveryCode.run(write.tx, { userId, factorId, hash });
    return current;
  });
  const uri = totpUri(secret, { issuer: issuerOf(deps), account: account.email ?? account.id });
  return { factorId, secret, uri, recoveryCodes };
}

/** The name that authenticator apps show beside the account. */
function issuerOf({ config, publicUrl }: AuthDeps): string {
  return config.passkeys?.rpName ?? URL.parse(publicUrl())?.hostname ?? "Platform";
}

/** Verifies a new factor. Errors: 400 for a wrong or used code, 404 for an unknown factor, 429. */
export function verifyFactor(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  { factorId, code }: { factorId: string; code: string },
): Promise<void> {
  return manageFactor(deps, caller, client, (write, judge) => {
    if (!factorsOfUser.all(write.tx, { userId: caller.userId }).some((factor) => factor.id === factorId)) {
      throw notFound(`There is no factor "${factorId}"`);
    }
    const fault = judge(code, factorId);
    if (fault === null) write.auditByUser(caller.userId, "factor.add", { type: "totp" });
    return fault;
  });
}

export const factorsOf = ({ file }: AuthDeps, { userId }: Caller): Factor[] =>
  factorsOfUser.all(file.sql, { userId }).map(factorView);

/**
 * Removes the factor with its recovery codes. `confirmed`: the caller has confirmed the password. Errors: 400 for a wrong code, 404
 * without a factor.
 */
export function removeFactor(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  proof: { code: string } | "confirmed",
): Promise<void> {
  return manageFactor(deps, caller, client, (write, judge) => {
    const factors = factorsOfUser.all(write.tx, { userId: caller.userId });
    if (factors.length === 0) throw notFound("There is no second factor");
    if (proof !== "confirmed") {
      if (!factors.some((factor) => factor.verified)) {
        throw badRequest("The factor has not been verified; remove it with the password");
      }
      const fault = judge(proof.code, null);
      if (fault !== null) return fault;
    }
    deleteFactors.run(write.tx, { userId: caller.userId });
    write.auditByUser(caller.userId, "factor.delete", { type: "totp" });
    return null;
  });
}

/**
 * Runs what a signed-in user does with a factor, as a guess at a code. `judge` returns null for a right code, which is used then, and
 * otherwise the answer: a wrong one must be counted, so it is no throw.
 */
async function manageFactor(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  act: (write: AccountWrite, judge: (code: string, factorId: string | null) => AppError | null) => AppError | null,
): Promise<void> {
  const { userId } = caller;
  const checks = await Checks.load(deps);
  const budget = new CodeBudget("totp-manage", userId, client);
  await deps.guesses.attempt(mfaGuessKeys(userId, client, "managing-code"), async (): Promise<Guess<null>> => {
    const error = await deps.file.write<AppError | null>((write) => {
      if (currentAccount(write, caller) === null) throw invalidToken();
      return act(write, (code, factorId) => {
        const refusal = budget.refusal(write);
        if (refusal !== null) return refusal;
        if (checks.useCode(write, userId, code, factorId)) return null;
        budget.count(write);
        return wrongCode();
      });
    });
    return error === null ? { isRight: true, value: null } : { isRight: false, error };
  });
}
