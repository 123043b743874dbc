import { AppError, forbidden } from "../../../../kernel/errors.ts";
import type { Account } from "../../../access/accounts.ts";
import type { AccountWrite } from "../store/account-file.ts";
import type { MailDeps, MailTokens } from "./mail-tokens.ts";
import type { Posted } from "../mail/mailer.ts";
import { VERIFICATION_PAUSE_MS, VERIFICATION_TTL_MS } from "../limits.ts";
import { recentSecret } from "../statements/secrets.ts";
import { userById } from "../statements/users.ts";

/** `auth.requireVerifiedEmail`: no tokens before the address is proved. [AU204] */
export interface Verification {
  readonly isRequired: boolean;
  /** true: this account must prove its address before it gets tokens. Anonymous users have none to prove. */
  isMissing(account: Account): boolean;
  /** Stores a token, and writes down the mail with the link that verifies the address. */
  mail(write: AccountWrite, account: { id: string; email: string }, redirect: URL | null): Posted;
  /** Mails the link again, at most once a minute, and gives the answer to a sign-in that has to wait for it. */
  remind(account: Account, redirect: URL | null): Promise<AppError>;
}

/** The answer to whoever has to prove an address first. */
export const emailNotVerified = () => forbidden("Email not verified");

export function createVerification(deps: MailDeps, tokens: MailTokens): Verification {
  const isRequired = deps.config.requireVerifiedEmail === true;

  const mail: Verification["mail"] = (write, { id, email }, redirect) =>
    tokens.mail(write, {
      purpose: "verify-email",
      kind: "verification",
      page: "verify-email",
      ttlMs: VERIFICATION_TTL_MS,
      userId: id,
      email,
      isMailed: true,
      redirect,
    });

  /** null: none is due. */
  const mailDue = (write: AccountWrite, userId: string, email: string, redirect: URL | null): Posted | null => {
    const present = userById.get(write.tx, { id: userId });
    if (present === null || present.email !== email || present.emailVerified) return null;
    const expiresAt = write.now + VERIFICATION_TTL_MS;
    // From the file, so that restarts allow no more mails. A clock that was set back counts as a minute that is over.
    const bounds = { after: expiresAt - VERIFICATION_PAUSE_MS, upTo: expiresAt };
    if (recentSecret.get(write.tx, { userId, purpose: "verify-email", ...bounds }) !== null) return null;
    return mail(write, { id: userId, email }, redirect);
  };

  return {
    isRequired,
    isMissing: ({ isAnonymous, emailVerified }) => isRequired && !isAnonymous && !emailVerified,
    mail,
    async remind({ id, email }, redirect) {
      if (email === null) return forbidden("Email required");
      try {
        deps.mailLimit.check(email);
      } catch (cause) {
        // The answer stays the same: mails to this address have been asked for elsewhere.
        if (cause instanceof AppError) return emailNotVerified();
        throw cause;
      }
      const posted = await deps.file.write((write) => mailDue(write, id, email, redirect));
      if (posted !== null) {
        deps.mailLimit.count(email);
        await posted();
      }
      return emailNotVerified();
    },
  };
}
