import { badRequest } from "../../../../kernel/errors.ts";
import { DAY_MS } from "../../../../kernel/time/duration.ts";
import type { Posted } from "../mail/mailer.ts";
import type { AuthDeps } from "../sessions/deps.ts";
import { invalidMailToken, issueToken, userOfToken, useToken } from "../sessions/mail-tokens.ts";
import { emailTaken, invalidToken } from "../sessions/sign-in.ts";
import { deleteSecretsOfUser } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import { type AccountWrite, type Caller, currentAccount } from "../store/account-file.ts";

// Verifying and changing email addresses.

/** Mails a link, unless the address is verified already. Errors: 400 for a user without an address. */
export async function requestVerification(deps: AuthDeps, caller: Caller, redirect: URL | null): Promise<void> {
  const account = userById.get(deps.file.sql, { id: caller.userId });
  if (account === null) throw invalidToken();
  const { id: userId, email } = account;
  if (email === null) throw badRequest("This user has no email address");
  if (account.emailVerified) return;
  await issueToken(deps, { purpose: "verify-email", userId, email, redirect });
}

/**
 * Verifies an address, and completes a link of an anonymous user too. Errors: 400 for a wrong, used or expired token, 403 if
 * disabled, 409 if another account has taken the address of a link meanwhile.
 */
export async function verifyEmail(deps: AuthDeps, token: string): Promise<void> {
  await deps.file.write((write) => {
    const secret = useToken(deps, write, "verify-email", token);
    const account = userOfToken(write, secret);
    const { passwordHash } = secret.payload;
    if (account.isAnonymous && typeof passwordHash === "string") {
      return linkProved(write, account, secret.email, passwordHash);
    }
    // A link to a former address of the user proves nothing about the present one.
    if (account.email !== secret.email) throw invalidMailToken();
    write.update(account.id, { emailVerified: true });
  });
}

/** Sets the proved address of an anonymous user. Errors: 409 if another account has taken it meanwhile. */
function linkProved(write: AccountWrite, account: SecretAccount, email: string, passwordHash: string): void {
  if (userByEmail.get(write.tx, { email }) !== null) throw emailTaken();
  write.update(account.id, { email, passwordHash, emailVerified: true, isAnonymous: false });
}

/**
 * Mails a link that changes the address. `proved`: the caller's account as it was when the password was confirmed. Errors: 401 if
 * the password has been changed or the session has ended since, 429. An address that another account has is mailed nothing, and
 * the answer is the same.
 */
export async function requestEmailChange(
  deps: AuthDeps,
  caller: Caller,
  { proved, email, redirect }: { proved: SecretAccount; email: string; redirect: URL | null },
): Promise<void> {
  deps.addressLimit.hit(caller.userId);
  // Whether somebody else has the address is told to its owner alone, who gets the link.
  const isMailed = userByEmail.get(deps.file.sql, { email }) === null;
  await issueToken(deps, { purpose: "email-change", userId: caller.userId, email, isMailed, redirect }, (write) => {
    // The password may have been changed, or the session ended, while its hash was being computed.
    if (currentAccount(write, caller)?.passwordHash !== proved.passwordHash) throw invalidToken();
  });
}

/** Changes the address, and ends every session. Errors: 400, 403, 409 if another account has taken the address meanwhile. */
export async function verifyEmailChange(deps: AuthDeps, token: string): Promise<void> {
  const told = await deps.file.write((write) => {
    const secret = useToken(deps, write, "email-change", token);
    const account = userOfToken(write, secret);
    const other = userByEmail.get(write.tx, { email: secret.email });
    if (other !== null && other.id !== account.id) throw emailTaken();
    write.update(account.id, { email: secret.email, emailVerified: true, isAnonymous: false });
    write.endSessions(account.id, { except: null });
    deleteSecretsOfUser.run(write.tx, { userId: account.id });
    return { inOutbox: tellFormerAddress(deps, write, account) };
  });
  await told.inOutbox();
}

/**
 * Mails the address that an account had that it has another one now. `account`: as it was. Returns what waits until the mail is in the
 * outbox, to be called after the commit.
 */
export function tellFormerAddress(
  { mailer }: AuthDeps,
  write: AccountWrite,
  { email, displayName: name, language }: SecretAccount,
): Posted {
  if (email === null) return async () => {};
  return mailer.post(write.tx, {
    kind: "emailChanged",
    values: { email, name },
    language,
    ttlMs: DAY_MS,
    delivery: "mail",
  });
}
