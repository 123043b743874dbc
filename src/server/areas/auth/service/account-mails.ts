import { AppError, badRequest, conflict } from "../../../../kernel/errors.ts";
import type { AccountMail, Accounts } from "../../../access/accounts.ts";
import type { MailDeps, MailTokens } from "../sessions/mail-tokens.ts";
import { RESET_TTL_MS, VERIFICATION_TTL_MS } from "../limits.ts";
import { redirectField } from "../means/redirect.ts";
import { requireUser } from "./means.ts";

const MAILS = {
  reset: { purpose: "reset-password", kind: "passwordReset", page: "reset-password", ttlMs: RESET_TTL_MS },
  verification: { purpose: "verify-email", kind: "verification", page: "verify-email", ttlMs: VERIFICATION_TTL_MS },
} as const satisfies Readonly<Record<AccountMail, object>>;

/** Mails that an administrator sends to a user, as the user could ask for them. */
export function createAccountMails(deps: MailDeps & { mailTokens: MailTokens }): Accounts["sendMail"] {
  return async (id, mail, redirectUrl, by) => {
    const redirect = redirectField(redirectUrl ?? undefined, deps.config.redirectUrls ?? []);
    const { email } = requireUser(deps.file.sql, id);
    if (email === null) throw badRequest("This user has no email address");
    const token = { ...MAILS[mail], userId: id, email, isMailed: true, redirect };
    await deps.mailTokens.issue(token, (write) => {
      const present = requireUser(write.tx, id);
      if (present.email !== email) throw conflict("The email address of this user has just been changed");
      if (present.disabled) throw new AppError(409, "The account is disabled");
      if (mail === "verification" && present.emailVerified) throw conflict("The email address is verified already");
      write.audit(by, { action: "user.mail", target: `users/${id}`, after: { mail: MAILS[mail].kind } });
    });
  };
}
