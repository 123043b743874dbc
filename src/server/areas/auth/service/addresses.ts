import { badRequest, unauthorized } from "../../../../kernel/errors.ts";
import type { RateLimiter } from "../../../http/rate-limit.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { VERIFICATION_TTL_MS } from "../limits.ts";
import type { Caller } from "../store/caller.ts";
import { emailTaken } from "../sessions/sign-in.ts";
import { deleteSecretsOfUser } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import { invalidMailToken, type MailDeps, type MailTokens, userOfToken } from "../sessions/mail-tokens.ts";

/** Verifying and changing email addresses. */
export interface AddressService {
  /** Sends no mail if the address is verified already. Errors: 400 for a user without an address. */
  requestVerification(caller: Caller, redirect: URL | null): Promise<void>;
  /**
   * Completes a link of an anonymous user too. Errors: 400 for a wrong, used or expired token, 403 if disabled, 409 if another
   * account has taken the address of a link meanwhile.
   */
  verifyEmail(token: string): Promise<void>;
  /**
   * `proved`: the caller's account as it was when the password was confirmed. Errors: 401 if the password has been changed or the
   * session has ended since, 429. An address that another account has is mailed nothing, and the answer is the same.
   */
  requestEmailChange(
    caller: Caller,
    proved: SecretAccount,
    change: { email: string; redirect: URL | null },
  ): Promise<void>;
  /** Ends every session. Errors: 400, 403, 409 if another account has taken the address meanwhile. */
  verifyEmailChange(token: string): Promise<void>;
}

/** An anonymous user whose link waited for the address to be proved. Errors: 409 if another account has taken it meanwhile. */
function linkProved(write: AccountWrite, account: SecretAccount, email: string, passwordHash: string): void {
  if (userByEmail.get(write.tx, { email }) !== null) throw emailTaken();
  write.update(account.id, { email, passwordHash, emailVerified: true, isAnonymous: false });
}

export function createAddressService({ file }: MailDeps, tokens: MailTokens, changeLimit: RateLimiter): AddressService {
  return {
    async requestVerification(caller, redirect) {
      const account = userById.get(file.sql, { id: caller.userId });
      if (account === null) throw unauthorized("Invalid token");
      if (account.email === null) throw badRequest("This user has no email address");
      if (account.emailVerified) return;
      await tokens.issue({
        purpose: "verify-email",
        kind: "verification",
        page: "verify-email",
        ttlMs: VERIFICATION_TTL_MS,
        userId: account.id,
        email: account.email,
        isMailed: true,
        redirect,
      });
    },

    async verifyEmail(token) {
      await file.write((write) => {
        const secret = tokens.use(write, "verify-email", token);
        const account = userOfToken(write, secret);
        const { passwordHash } = secret.payload;
        if (account.isAnonymous && typeof passwordHash === "string")
          return linkProved(write, account, secret.email, passwordHash);
        // A link to a former address of the user proves nothing about the present one.
        if (account.email !== secret.email) throw invalidMailToken();
        write.update(account.id, { emailVerified: true });
      });
    },

    async requestEmailChange(caller, proved, { email, redirect }) {
      changeLimit.hit(caller.userId);
      // Whether somebody else has the address is told to its owner alone, who gets the link.
      const isTaken = userByEmail.get(file.sql, { email }) !== null;
      const token = {
        purpose: "email-change",
        kind: "emailChange",
        page: "verify-email-change",
        ttlMs: VERIFICATION_TTL_MS,
        userId: caller.userId,
        email,
        isMailed: !isTaken,
        redirect,
      } as const;
      await tokens.issue(token, (write) => {
        const account = file.current(write, caller);
        // The password may have been changed, or the session ended, while its hash was being computed.
        if (account?.passwordHash !== proved.passwordHash) throw unauthorized("Invalid token");
      });
    },

    async verifyEmailChange(token) {
      await file.write((write) => {
        const secret = tokens.use(write, "email-change", token);
        const account = userOfToken(write, secret);
        const other = userByEmail.get(write.tx, { email: secret.email });
        if (other !== null && other.id !== account.id) throw emailTaken();
        write.update(account.id, { email: secret.email, emailVerified: true, isAnonymous: false });
        write.endSessions(account.id, { except: null });
        deleteSecretsOfUser.run(write.tx, { userId: account.id });
      });
    },
  };
}
