import { randomInt } from "node:crypto";
import { type AppError, badField, badRequest, conflict, notFound, unauthorized } from "../../../../kernel/errors.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import { Factor, MFA_TICKET_ATTEMPTS_MAX, type Tokens } from "../../../config/shapes/sign-in.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { MFA_FAILURES, RECOVERY_CODE_COUNT } from "../limits.ts";
import { linkPending } from "./link.ts";
import { type CodeBudget, codeBudget } from "../means/code-budget.ts";
import type { Guess, GuessKey } from "../means/guesses.ts";
import type { Caller } from "../store/caller.ts";
import type { OpenSession, SignIns } from "../sessions/sign-in.ts";
import {
  deleteFactors,
  deleteUnverifiedFactors,
  factorsOfUser,
  insertFactor,
  insertRecoveryCode,
  setUsedSteps,
  takeRecoveryCode,
} from "../statements/factors.ts";
import { countAttempt, deleteSecret, findSecret } from "../statements/secrets.ts";
import { userById } from "../statements/users.ts";
import type { AuthDeps, Client } from "../sessions/deps.ts";
import { requireRecentProof } from "../sessions/ways-in.ts";

export interface Enrolment {
  factorId: string;
  /** Base32. */
  secret: string;
  uri: string;
  recoveryCodes: string[];
}

const factorView = projection(Factor);

/** TOTP and recovery codes. */
export interface MfaService {
  /**
   * A factor that counts once it is verified; it replaces an unverified one. Errors: 409 if one is verified already, 401
   * `Sign in again` if the last sign-in was too long ago.
   */
  enroll(caller: Caller): Promise<Enrolment>;
  /** Errors: 400 for a wrong or used code, 404 for an unknown factor, 429. */
  verifyFactor(caller: Caller, client: Client, factorId: string, code: string): Promise<void>;
  /** Errors: 400 for a wrong, used or expired ticket or code, 403 if disabled, 429. */
  verify(ticket: string, proof: MfaProof, client: Client): Promise<Tokens>;
  factors(caller: Caller): Factor[];
  /** `confirmed`: the caller has confirmed the password. Errors: 400 for a wrong code, 404 without a factor. */
  remove(caller: Caller, client: Client, proof: { code: string } | "confirmed"): Promise<void>;
}

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

export function createMfaService(deps: AuthDeps, signIns: SignIns, issuer: () => string): MfaService {
  const loadChecks = async () => createChecks(deps, await library());
  return { ...createFactorService(deps, loadChecks, issuer), verify: createMfaSignIn(deps, loadChecks, signIns) };
}

/** Loaded by the first request about a code: a start without it is faster. */
const library = () => import("../means/totp.ts");
type LoadChecks = () => Promise<Checks>;

/** Each is counted by itself: who guesses with a stolen token, or at recovery codes, blocks no sign-in with a code. */
type GuessedCode = "code" | "recovery-code" | "managing-code";

interface Checks {
  guessKeys(userId: string, client: Client, kind: GuessedCode): GuessKey[];
  recoveryHash(userId: string, code: string): Buffer;
  /** Whether the code is right for this factor (null: a verified one of the user's); marks its step as used. */
  useCode(write: AccountWrite, userId: string, code: string, factorId: string | null): boolean;
  /** Whether the code is right; it becomes invalid then. */
  useProof(write: AccountWrite, userId: string, proof: MfaProof): boolean;
}

function createChecks({ sealing }: AuthDeps, { acceptCode }: Awaited<ReturnType<typeof library>>): Checks {
  const recoveryHash: Checks["recoveryHash"] = (userId, code) =>
    sealing.digest("recovery-code", `${userId}:${plainRecoveryCode(code)}`);
  const useCode: Checks["useCode"] = (write, userId, code, factorId) => {
    for (const factor of factorsOfUser.all(write.tx, { userId: userId })) {
      if (factorId === null ? !factor.verified : factor.id !== factorId) continue;
      const secret = sealing.unseal(factor.secret);
      const usedSteps = secret === null ? null : acceptCode(secret, code, factor.usedSteps, write.now);
      if (usedSteps === null) continue;
      setUsedSteps.run(write.tx, { id: factor.id, usedSteps });
      return true;
    }
    return false;
  };
  return {
    recoveryHash,
    useCode,
    guessKeys: (userId, client, kind) =>
      client.isLimited ? [{ key: `mfa-${kind}:${userId}`, limit: MFA_FAILURES }] : [],
    useProof(write, userId, proof) {
      if ("code" in proof) return useCode(write, userId, proof.code, null);
      return takeRecoveryCode.run(write.tx, { userId, hash: recoveryHash(userId, proof.recoveryCode) }) > 0;
    },
  };
}

function createMfaSignIn(deps: AuthDeps, loadChecks: LoadChecks, signIns: SignIns): MfaService["verify"] {
  const { file, sealing, guesses } = deps;
  return async (ticket, proof, client) => {
    const hash = sealing.digest("mfa-ticket", ticket);
    const userId = findSecret.get(file.sql, { hash, purpose: "mfa-ticket", now: deps.clock.now() })?.userId ?? null;
    if (userId === null) throw invalidTicket();
    const checks = await loadChecks();
    const kind = "code" in proof ? "code" : "recovery-code";
    const budget = kind === "code" ? codeBudget("totp-sign-in", userId, client) : null;
    const guess = async (): Promise<Guess<OpenSession>> => {
      // A wrong attempt must be counted, so it is a result of the write and not a throw.
      const result = await file.write<OpenSession | AppError>((write) => {
        const found = findSecret.get(write.tx, { hash, purpose: "mfa-ticket", now: write.now });
        const account = userById.get(write.tx, { id: userId });
        if (found === null || account === null) return invalidTicket();
        const refusal = budget?.refusal(write) ?? null;
        if (refusal !== null) return refusal;
        if (!checks.useProof(write, userId, proof)) {
          if (found.attempts + 1 >= MFA_TICKET_ATTEMPTS_MAX) deleteSecret.run(write.tx, { hash });
          else countAttempt.run(write.tx, { hash });
          budget?.count(write);
          return wrongCode("code" in proof ? "code" : "recoveryCode");
        }
        deleteSecret.run(write.tx, { hash });
        linkPending(write, userId, found.payload);
        return signIns.open(write, account, client);
      });
      return "sessionId" in result ? { isRight: true, value: result } : { isRight: false, error: result };
    };
    const about = { userId, email: null, way: kind === "code" ? ("code" as const) : ("recovery code" as const) };
    return signIns.tokens(await guesses.attempt(checks.guessKeys(userId, client, kind), guess, about));
  };
}

function createFactorService(deps: AuthDeps, loadChecks: LoadChecks, issuer: () => string): Omit<MfaService, "verify"> {
  const { file, sealing, guesses } = deps;
  return {
    async enroll(caller) {
      const [checks, { createTotpSecret, totpUri }] = await Promise.all([loadChecks(), library()]);
      const secret = createTotpSecret();
      const factorId = deps.ids.uuid();
      const recoveryCodes = Array.from({ length: RECOVERY_CODE_COUNT }, createRecoveryCode);
      const hashes = recoveryCodes.map((code) => checks.recoveryHash(caller.userId, code));
      const account = await file.write((write) => {
        const current = requireRecentProof(write.tx, caller, deps.config, write.now);
        if (factorsOfUser.all(write.tx, { userId: current.id }).some((factor) => factor.verified)) {
          throw conflict("There is a verified factor already; remove it first");
        }
        deleteUnverifiedFactors.run(write.tx, { userId: current.id });
        const createdAt = write.now;
        insertFactor.run(write.tx, {
          id: factorId,
          userId: current.id,
          type: "totp",
          secret: sealing.seal(secret),
          createdAt,
        });
        for (const hash of hashes) insertRecoveryCode.run(write.tx, { userId: current.id, factorId, hash });
        return current;
      });
      const uri = totpUri(secret, { issuer: issuer(), account: account.email ?? account.id });
      return { factorId, secret, uri, recoveryCodes };
    },

    async verifyFactor(caller, client, factorId, code) {
      const checks = await loadChecks();
      const budget = codeBudget("totp-manage", caller.userId, client);
      await guesses.attempt(
        checks.guessKeys(caller.userId, client, "managing-code"),
        async (): Promise<Guess<null>> => {
          const error = await file.write<AppError | null>((write) => {
            if (file.current(write, caller) === null) throw unauthorized("Invalid token");
            if (!factorsOfUser.all(write.tx, { userId: caller.userId }).some((factor) => factor.id === factorId)) {
              throw notFound(`There is no factor "${factorId}"`);
            }
            const fault = judgeCode(checks, write, budget, { userId: caller.userId, code, factorId });
            if (fault === null) noteFactor(write, caller.userId, "factor.add");
            return fault;
          });
          return error === null ? { isRight: true, value: null } : { isRight: false, error };
        },
      );
    },

    factors: ({ userId }) => factorsOfUser.all(file.sql, { userId }).map(factorView),

    remove: createFactorRemoval(deps, loadChecks),
  };
}

/** null for a right code, which is used now; otherwise the answer. A wrong one must be counted: no throw. */
function judgeCode(
  checks: Checks,
  write: AccountWrite,
  budget: CodeBudget,
  { userId, code, factorId }: { userId: string; code: string; factorId: string | null },
): AppError | null {
  const refusal = budget.refusal(write);
  if (refusal !== null) return refusal;
  if (checks.useCode(write, userId, code, factorId)) return null;
  budget.count(write);
  return wrongCode();
}

function createFactorRemoval({ file, guesses }: AuthDeps, loadChecks: LoadChecks): MfaService["remove"] {
  return async (caller, client, proof) => {
    const checks = await loadChecks();
    const budget = codeBudget("totp-manage", caller.userId, client);
    const removed = async (): Promise<Guess<null>> => {
      const error = await file.write<AppError | null>((write) => {
        if (file.current(write, caller) === null) throw unauthorized("Invalid token");
        const factors = factorsOfUser.all(write.tx, { userId: caller.userId });
        if (factors.length === 0) throw notFound("There is no second factor");
        const isVerified = factors.some((factor) => factor.verified);
        if (proof !== "confirmed") {
          if (!isVerified) throw badRequest("The factor has not been verified; remove it with the password");
          const fault = judgeCode(checks, write, budget, { userId: caller.userId, code: proof.code, factorId: null });
          if (fault !== null) return fault;
        }
        deleteFactors.run(write.tx, { userId: caller.userId });
        noteFactor(write, caller.userId, "factor.delete");
        return null;
      });
      return error === null ? { isRight: true, value: null } : { isRight: false, error };
    };
    await guesses.attempt(checks.guessKeys(caller.userId, client, "managing-code"), removed);
  };
}

/** What users do with their own factors is in the audit log. */
const noteFactor = ({ tx }: AccountWrite, userId: string, action: "factor.add" | "factor.delete"): void =>
  tx.auditBy({ kind: "user", name: userId }, { action, target: `users/${userId}`, after: { type: "totp" } });
