import { AppError, conflict } from "../../../../kernel/errors.ts";
import type { Invitation } from "../../../access/accounts.ts";
import type { Actor } from "../../../db/index.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { invalidMailToken, type MailDeps, type MailTokens, userOfToken } from "../sessions/mail-tokens.ts";
import { clearUnproven } from "./unproven.ts";
import { INVITATION_TTL_MS } from "../limits.ts";
import { redirectField } from "../means/redirect.ts";
import type { SignIns } from "../sessions/sign-in.ts";
import { deleteSecretsFor, deleteSecretsOfUser } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail } from "../statements/users.ts";
import { type Client, type SignInAnswer, sharerOf } from "../sessions/deps.ts";

export interface Acceptance {
  token: string;
  /** null: the user signs in without one. */
  password: string | null;
  displayName?: string | null | undefined;
}

/** Users whom an administrator asks to join. */
export interface Invitations {
  /** See `Accounts.invite`. */
  invite(invitation: Invitation, by: Actor): Promise<SecretAccount>;
  /** The reader of the mail is the owner of the address. Errors: 400 for a wrong, used or expired token, 403 if disabled. */
  accept(acceptance: Acceptance, client: Client): Promise<SignInAnswer>;
}

export function createInvitations(deps: MailDeps, tokens: MailTokens, signIns: SignIns): Invitations {
  const { file, passwords } = deps;

  /** The user to be invited, new or not. Errors: 409. */
  const invited = (write: AccountWrite, { email, role, metadata }: Invitation, by: Actor): SecretAccount => {
    const found = userByEmail.get(write.tx, { email });
    if (found === null) return write.insert({ id: deps.ids.uuid(), email, role, metadata }, by);
    if (found.disabled) throw new AppError(409, "The account of this address is disabled");
    if (found.hasSignedIn) {
      const message = "This user has signed in already";
      throw conflict(message, { email: { code: "not_unique", message } });
    }
    // Somebody else may have signed up with the address. Nothing that they set may open an account that is given a role now, nor
    // may a link that they had mailed.
    if (!found.emailVerified) clearUnproven(write, found.id);
    deleteSecretsFor.run(write.tx, { userId: found.id, purpose: "invite" });
    return write.update(found.id, { role, metadata }, by);
  };

  return {
    async invite(invitation, by) {
      const { email } = invitation;
      const redirect = redirectField(invitation.redirectUrl ?? undefined, deps.config.redirectUrls ?? []);
      deps.mailLimit.hit(email);
      const { account, posted } = await file.write((write) => {
        const account = invited(write, invitation, by);
        const posted = tokens.mail(write, {
          purpose: "invite",
          kind: "invite",
          page: "accept-invite",
          ttlMs: INVITATION_TTL_MS,
          userId: account.id,
          email,
          isMailed: true,
          redirect,
        });
        return { account, posted };
      });
      await posted();
      return account;
    },

    async accept({ token, password, displayName }, client) {
      tokens.check("invite", token);
      const passwordHash = password === null ? undefined : await passwords.hash(password, sharerOf(client));
      const signIn = await file.write((write) => {
        const secret = tokens.use(write, "invite", token);
        const account = userOfToken(write, secret);
        if (account.email !== secret.email) throw invalidMailToken();
        if (!account.emailVerified) clearUnproven(write, account.id);
        deleteSecretsOfUser.run(write.tx, { userId: account.id });
        const name = displayName ?? undefined;
        const accepted = write.update(account.id, { passwordHash, displayName: name, emailVerified: true });
        return signIns.complete(write, accepted, client);
      });
      return signIns.answer(signIn);
    },
  };
}
