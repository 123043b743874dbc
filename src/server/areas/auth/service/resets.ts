import { RESET_TTL_MS } from "../limits.ts";
import { removePasskeys } from "./removal.ts";
import { deleteUnverifiedIdentities } from "../statements/identities.ts";
import { deleteSecretsOfUser } from "../statements/secrets.ts";
import { userByEmail } from "../statements/users.ts";
import { type Client, sharerOf } from "../sessions/deps.ts";
import { invalidMailToken, type MailDeps, type MailTokens, userOfToken } from "../sessions/mail-tokens.ts";
import { clearUnproven } from "./unproven.ts";

/** Setting a new password by mail. */
export interface ResetService {
  /** Takes the same time and has the same answer whether or not there is such a user. */
  requestPasswordReset(email: string, redirect: URL | null): Promise<void>;
  /**
   * Ends every session, and removes identities whose address the provider has not verified. Passkeys are removed too unless `keepPasskeys`: a user whose account somebody else has entered resets
   * the password to keep them out. Errors: 400 for a wrong, used or expired token, 403 if disabled.
   */
  resetPassword(token: string, newPassword: string, options: { keepPasskeys: boolean; client: Client }): Promise<void>;
}

export function createResetService({ file, passwords }: MailDeps, tokens: MailTokens): ResetService {
  return {
    async requestPasswordReset(email, redirect) {
      const account = userByEmail.get(file.sql, { email });
      await tokens.issue({
        purpose: "reset-password",
        kind: "passwordReset",
        page: "reset-password",
        ttlMs: RESET_TTL_MS,
        userId: account?.id ?? null,
        email,
        isMailed: account !== null,
        redirect,
      });
    },

    async resetPassword(token, newPassword, { keepPasskeys, client }) {
      tokens.check("reset-password", token);
      const passwordHash = await passwords.hash(newPassword, sharerOf(client));
      await file.write((write) => {
        const secret = tokens.use(write, "reset-password", token);
        const account = userOfToken(write, secret);
        if (account.email !== secret.email) throw invalidMailToken();
        if (!account.emailVerified) clearUnproven(write, account.id);
        // Somebody at a provider that verifies no address may have brought it along before its owner verified it here.
        deleteUnverifiedIdentities.run(write.tx, { userId: account.id });
        if (!keepPasskeys) removePasskeys(write, account.id);
        write.update(account.id, { passwordHash, emailVerified: true });
        write.endSessions(account.id, { except: null });
        deleteSecretsOfUser.run(write.tx, { userId: account.id });
      });
    },
  };
}
