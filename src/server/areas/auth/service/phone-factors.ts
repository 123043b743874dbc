import type { Millis } from "../../../../kernel/clock.ts";
import { badField, badRequest, conflict, notFound } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { Readable } from "../../../db/query.ts";
import { keepPhoneCode, newCode } from "../sessions/codes.ts";
import type { AuthDeps, Client, PhoneDeps } from "../sessions/deps.ts";
import { createRecoveryCodes, manageFactor, usePhoneCode, useRecoveryCode } from "../sessions/factor-codes.ts";
import { requireMoreThanPhone, requireRecentProof } from "../sessions/ways-in.ts";
import { deleteFactorsOfType, type Factor, factorsOfUser, insertFactor, setUsedSteps } from "../statements/means.ts";
import { deleteSecretsFor, findSecret } from "../statements/secrets.ts";
import { type SecretAccount, userById } from "../statements/users.ts";
import type { AccountWrite, Caller } from "../store/account-file.ts";

// The phone as a second factor. Its number is the account's: a change moves the factor along, a removal ends it.

export const ticketHash = ({ sealing }: AuthDeps, ticket: string): Buffer => sealing.digest("mfa-ticket", ticket);
/** The owner of a code that completes one sign-in. A code that manages the factor belongs to the user. */
export const ticketOwner = (hash: Uint8Array): string => `ticket:${Buffer.from(hash).toString("base64url")}`;
/** Whether a phone may complete the sign-in of this ticket: it has not begun it. */
export const takesPhone = (ticket: JsonObject): boolean => ticket["by"] !== "phone";
export const invalidTicket = () => badField("mfaTicket", "invalid_value", "mfaTicket is unknown, used or expired");

const phoneFactorOf = (sql: Readable, userId: string): Factor | undefined =>
  factorsOfUser.all(sql, { userId }).find(({ type }) => type === "phone");
const hasPhoneFactor = (sql: Readable, userId: string): boolean => phoneFactorOf(sql, userId)?.verified === true;

/** Requires that the caller has the factor. Errors: 404. */
export function requireFactor(
  write: AccountWrite,
  { userId }: Caller,
  { factorId, type }: { factorId: string; type: Factor["type"] },
): void {
  const isOwn = factorsOfUser
    .all(write.tx, { userId })
    .some((factor) => factor.id === factorId && factor.type === type);
  if (!isOwn) throw notFound(`There is no factor "${factorId}"`);
}

/**
 * Adds the account's phone as a factor, which counts once the code that is sent to it has come back; it replaces an unverified one.
 * Errors: 401 without a recent sign-in, 409 without a number, with a verified factor, or where nothing but the phone signs in, 429.
 */
export async function enrollPhone(
  deps: PhoneDeps,
  caller: Caller,
  client: Client,
): Promise<{ factorId: string; recoveryCodes: string[] }> {
  const factorId = deps.ids.uuid();
  const recovery = createRecoveryCodes(deps, caller.userId);
  await sendManagingCode(deps, caller, client, (write, account) => {
    const { id: userId } = account;
    if (hasPhoneFactor(write.tx, userId)) throw conflict("The phone is a second factor already; remove it first");
    requireMoreThanPhone(write.tx, account, deps.config);
    deleteFactorsOfType.run(write.tx, { userId, type: "phone" });
    insertFactor.run(write.tx, { id: factorId, userId, type: "phone", secret: "", createdAt: write.now });
    recovery.keep(write, factorId);
  });
  return { factorId, recoveryCodes: recovery.codes };
}

/** Sends a code that manages the factor. Errors: 401 without a recent sign-in, 409 without a verified factor, 429. */
export const resendManagingCode = (deps: PhoneDeps, caller: Caller, client: Client): Promise<void> =>
  sendManagingCode(deps, caller, client, (write, { id }) => {
    if (!hasPhoneFactor(write.tx, id)) throw conflict("The phone is no second factor");
  });

async function sendManagingCode(
  deps: PhoneDeps,
  caller: Caller,
  client: Client,
  prepare: (write: AccountWrite, account: SecretAccount) => void,
): Promise<void> {
  const numberOf = ({ phone }: SecretAccount): string => {
    if (phone === null) throw conflict("This account has no phone number");
    return phone;
  };
  const present = requireRecentProof(deps.file.sql, caller, deps.config, deps.clock.now());
  deps.texts.count("managing", numberOf(present));
  const code = newCode();
  const { phone, language } = await deps.file.write((write) => {
    const account = requireRecentProof(write.tx, caller, deps.config, write.now);
    const phone = numberOf(account);
    prepare(write, account);
    keepPhoneCode(deps, write, { purpose: "phone-factor", owner: account.id, userId: account.id, code, phone });
    return { phone, language: account.language };
  });
  deps.texts.send("managing", { number: phone, code, language: language ?? client.language });
}

/**
 * Verifies a new phone factor. Errors: 400 for a wrong, used or expired code, 404 for an unknown factor, 409 where nothing but the phone
 * signs in, 429.
 */
export function verifyPhoneFactor(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  { factorId, code }: { factorId: string; code: string },
): Promise<void> {
  const { userId } = caller;
  return manageFactor(deps, caller, client, (write, judge) => {
    requireFactor(write, caller, { factorId, type: "phone" });
    const account = userById.get(write.tx, { id: userId });
    if (account !== null) requireMoreThanPhone(write.tx, account, deps.config);
    const fault = judge(() => usePhoneCode(deps, write, { userId, owner: userId, code }));
    if (fault !== null) return fault;
    setUsedSteps.run(write.tx, { id: factorId, usedSteps: [] });
    // A change that was asked for without a code of the factor must not move it.
    deleteSecretsFor.run(write.tx, { userId, purpose: "phone-change" });
    write.auditByUser(userId, "factor.add", { type: "phone factor" });
    return null;
  });
}

/**
 * Sends a code that completes the sign-in of this ticket. Errors: 400 for an unknown, used or expired ticket, or one of a sign-in that
 * the phone does not complete; 429.
 */
export async function sendSignInCode(deps: PhoneDeps, ticket: string, client: Client): Promise<void> {
  const hash = ticketHash(deps, ticket);
  const ownerOf = (sql: Readable, now: Millis): SecretAccount & { phone: string } => {
    const found = findSecret.get(sql, { hash, purpose: "mfa-ticket", now });
    const account = found === null || found.userId === null ? null : userById.get(sql, { id: found.userId });
    if (found === null || account === null) throw invalidTicket();
    const { phone } = account;
    if (phone !== null && takesPhone(found.payload) && hasPhoneFactor(sql, account.id)) return { ...account, phone };
    throw badRequest("A code sent to the phone does not complete this sign-in");
  };
  deps.texts.count("second factor", ownerOf(deps.file.sql, deps.clock.now()).phone);
  const code = newCode();
  const { phone, language } = await deps.file.write((write) => {
    const { id: userId, phone, language } = ownerOf(write.tx, write.now);
    keepPhoneCode(deps, write, { purpose: "phone-factor", owner: ticketOwner(hash), userId, code, phone });
    return { phone, language };
  });
  deps.texts.send("second factor", { number: phone, code, language: language ?? client.language });
}

/**
 * Removes the factor with its recovery codes. `confirmed`: the caller has confirmed the password. Errors: 400 for a wrong code, 401
 * without a recent sign-in or the password, 404 without a factor, 429.
 */
export function removePhoneFactor(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  proof: { code: string } | "confirmed",
): Promise<void> {
  const { userId } = caller;
  return manageFactor(deps, caller, client, (write, judge) => {
    const factor = phoneFactorOf(write.tx, userId);
    if (factor === undefined) throw notFound("The phone is no second factor");
    if (proof !== "confirmed") {
      requireRecentProof(write.tx, caller, deps.config, write.now);
      if (!factor.verified) throw badRequest("The factor has not been verified; remove it with the password");
      const fault = judge(() => usePhoneCode(deps, write, { userId, owner: userId, code: proof.code }));
      if (fault !== null) return fault;
    }
    deleteFactorsOfType.run(write.tx, { userId, type: "phone" });
    write.auditByUser(userId, "factor.delete", { type: "phone factor" });
    return null;
  });
}

/**
 * Requires a code of one of the user's factors, or a recovery code, where the phone is a second factor: who changes the number moves the
 * factor. Returns the check for the write that follows: the factor may have been added meanwhile. Errors: 400 without a code, or for a
 * wrong one; 429.
 */
export async function requirePhoneProof(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  code: string | undefined,
): Promise<(write: AccountWrite) => void> {
  const { userId } = caller;
  const missing = () => badField("code", "required", "code is required: the phone is a second factor");
  if (!hasPhoneFactor(deps.file.sql, userId)) {
    return (write) => {
      if (hasPhoneFactor(write.tx, userId)) throw missing();
    };
  }
  if (code === undefined) throw missing();
  await manageFactor(deps, caller, client, (write, judge) =>
    judge(
      (totp) =>
        totp.use(write, userId, code, null) ||
        usePhoneCode(deps, write, { userId, owner: userId, code }) ||
        useRecoveryCode(deps, write, userId, code),
    ),
  );
  return () => {};
}
