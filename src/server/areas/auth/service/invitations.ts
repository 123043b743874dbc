import { AppError, conflict } from "../../../../kernel/errors.ts";
import type { Invitation } from "../../../access/accounts.ts";
import type { Actor } from "../../../db/index.ts";
import { redirectField } from "../means/redirect.ts";
import { type AuthDeps, type Client, type SignInAnswer, sharerOf } from "../sessions/deps.ts";
import { checkToken, invalidMailToken, mailToken, userOfToken, useToken } from "../sessions/mail-tokens.ts";
import { answerSignIn, completeSignIn } from "../sessions/sign-in.ts";
import { deleteSecretsFor, deleteSecretsOfUser } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail } from "../statements/users.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { clearUnproven } from "./credentials.ts";

/** Asks the owner of an address to join. See `Accounts.invite`. */
export async function invite(deps: AuthDeps, invitation: Invitation, by: Actor): Promise<SecretAccount> {
  const { email } = invitation;
  const redirect = redirectField(invitation.redirectUrl, deps.config);
  deps.mailLimit.hit(email);
  const { account, posted } = await deps.file.write((write) => {
    const account = invited(deps, write, invitation, by);
    return { account, posted: mailToken(deps, write, { purpose: "invite", userId: account.id, email, redirect }) };
  });
  await posted();
  return account;
}

/** Returns the user to be invited, new or not. Errors: 409. */
function invited(
  { ids }: AuthDeps,
  write: AccountWrite,
  { email, role, metadata, language }: Invitation,
  by: Actor,
): SecretAccount {
  const found = userByEmail.get(write.tx, { email });
  if (found === null) return write.insert({ id: ids.uuid(), email, role, metadata, language }, by);
  if (found.disabled) throw new AppError(409, "The account of this address is disabled");
  if (found.hasSignedIn) {
    const message = "This user has signed in already";
    throw conflict(message, { email: { code: "not_unique", message } });
  }
  // Somebody else may have signed up with the address. Nothing that they set may open an account that is given a role now, nor
  // may a link that they had mailed.
  if (!found.emailVerified) clearUnproven(write, found.id);
  deleteSecretsFor.run(write.tx, { userId: found.id, purpose: "invite" });
  return write.update(found.id, { role, metadata, language }, by);
}

/**
 * Accepts an invitation: the reader of the mail is the owner of the address. `password` null: the user signs in without one. Errors:
 * 400 for a wrong, used or expired token, 403 if disabled.
 */
export async function acceptInvitation(
  deps: AuthDeps,
  accepted: {
    token: string;
    password: string | null;
    displayName?: string | null | undefined;
    language?: string | null | undefined;
  },
  client: Client,
): Promise<SignInAnswer> {
  const { token, password, displayName } = accepted;
  checkToken(deps, "invite", token);
  const passwordHash = password === null ? undefined : await deps.passwords.hash(password, sharerOf(client));
  const signIn = await deps.file.write((write) => {
    const secret = useToken(deps, write, "invite", token);
    const account = userOfToken(write, secret);
    if (account.email !== secret.email) throw invalidMailToken();
    if (!account.emailVerified) clearUnproven(write, account.id);
    deleteSecretsOfUser.run(write.tx, { userId: account.id });
    const name = displayName ?? undefined;
    const language = accepted.language ?? account.language ?? client.language;
    const present = write.update(account.id, { passwordHash, displayName: name, emailVerified: true, language });
    return completeSignIn(deps, write, { account: present, client });
  });
  return answerSignIn(deps, signIn);
}
