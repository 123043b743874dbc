import { type AppError, badRequest, conflict, notFound } from "../../../../kernel/errors.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import { Factor, MFA_TICKET_ATTEMPTS_MAX } from "../../../config/shapes/sign-in.ts";
import { CodeBudget, type Guess } from "../means/guesses.ts";
import type { AuthDeps, Client, SignInAnswer } from "../sessions/deps.ts";
import {
  createRecoveryCodes,
  manageFactor,
  mfaGuessKeys,
  TotpChecks,
  totpLibrary,
  usePhoneCode,
  useRecoveryCode,
  wrongCode,
} from "../sessions/factor-codes.ts";
import { answerSignIn, begin, type SignIn } from "../sessions/sign-in.ts";
import { requireMoreThanPhone, requireRecentProof } from "../sessions/ways-in.ts";
import { deleteFactorsOfType, factorsOfUser, insertFactor } from "../statements/means.ts";
import { countAttempt, deleteSecret, findSecret, type OneTimeSecret } from "../statements/secrets.ts";
import { userById } from "../statements/users.ts";
import type { AccountWrite, Caller } from "../store/account-file.ts";
import { linkPending } from "./credentials.ts";
import { invalidTicket, requireFactor, takesPhone, ticketHash, ticketOwner } from "./phone-factors.ts";

// Second factors: completing a sign-in with one, and TOTP. See `phone-factors.ts` for phones.

export interface Enrolment {
  factorId: string;
  /** Base32. */
  secret: string;
  uri: string;
  recoveryCodes: string[];
}

const factorView = projection(Factor);

export type MfaProof = { code: string } | { recoveryCode: string };

/** Completes a sign-in with a code. Errors: 400 for a wrong, used or expired ticket or code, 403 if disabled, 429. */
export async function verifyMfa(
  deps: AuthDeps,
  ticket: string,
  proof: MfaProof,
  client: Client,
): Promise<SignInAnswer> {
  const { file, guesses, clock } = deps;
  const hash = ticketHash(deps, ticket);
  const userId = findSecret.get(file.sql, { hash, purpose: "mfa-ticket", now: clock.now() })?.userId ?? null;
  if (userId === null) throw invalidTicket();
  const totp = await TotpChecks.load(deps);
  const isCode = "code" in proof;
  const budget = isCode ? new CodeBudget("totp-sign-in", userId, client) : null;
  const isRight = (write: AccountWrite, { payload }: OneTimeSecret): boolean => {
    if (!isCode) return useRecoveryCode(deps, write, userId, proof.recoveryCode);
    const { code } = proof;
    if (totp.use(write, userId, code, null)) return true;
    return takesPhone(payload) && usePhoneCode(deps, write, { userId, owner: ticketOwner(hash), code });
  };
  const guess = async (): Promise<Guess<SignIn>> => {
    // A wrong attempt must be counted, so it is a result of the write and not a throw.
    const result = await file.write<SignIn | AppError>((write) => {
      const found = findSecret.get(write.tx, { hash, purpose: "mfa-ticket", now: write.now });
      const account = userById.get(write.tx, { id: userId });
      if (found === null || account === null) return invalidTicket();
      const refusal = budget?.refusal(write) ?? null;
      if (refusal !== null) return refusal;
      if (!isRight(write, found)) {
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
  const { createTotpSecret, totpUri } = await totpLibrary();
  const secret = createTotpSecret();
  const factorId = deps.ids.uuid();
  const recovery = createRecoveryCodes(deps, caller.userId);
  const account = await deps.file.write((write) => {
    const current = requireRecentProof(write.tx, caller, deps.config, write.now);
    const userId = current.id;
    if (factorsOfUser.all(write.tx, { userId }).some(({ type, verified }) => type === "totp" && verified)) {
      throw conflict("There is a verified factor already; remove it first");
    }
    deleteFactorsOfType.run(write.tx, { userId, type: "totp" });
    const sealed = deps.sealing.seal(secret);
    insertFactor.run(write.tx, { id: factorId, userId, type: "totp", secret: sealed, createdAt: write.now });
    recovery.keep(write, factorId);
    return current;
  });
  const uri = totpUri(secret, { issuer: issuerOf(deps), account: account.email ?? account.id });
  return { factorId, secret, uri, recoveryCodes: recovery.codes };
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
    requireFactor(write, caller, { factorId, type: "totp" });
    const fault = judge((totp) => totp.use(write, caller.userId, code, factorId));
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
    const { userId } = caller;
    const factors = factorsOfUser.all(write.tx, { userId }).filter(({ type }) => type === "totp");
    if (factors.length === 0) throw notFound("There is no second factor");
    if (proof !== "confirmed") {
      if (!factors.some((factor) => factor.verified)) {
        throw badRequest("The factor has not been verified; remove it with the password");
      }
      const fault = judge((totp) => totp.use(write, userId, proof.code, null));
      if (fault !== null) return fault;
    }
    deleteFactorsOfType.run(write.tx, { userId, type: "totp" });
    const account = userById.get(write.tx, { id: userId });
    const isLeft = factorsOfUser.all(write.tx, { userId }).some(({ verified }) => verified);
    if (account !== null && isLeft) requireMoreThanPhone(write.tx, account, deps.config);
    write.auditByUser(caller.userId, "factor.delete", { type: "totp" });
    return null;
  });
}
