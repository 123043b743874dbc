import { AppError, badField, conflict, forbidden, unauthorized } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import type { Invitation } from "../../../access/accounts.ts";
import type { OwnUser } from "../../../config/shapes/users.ts";
import type { AcceptedInvitation } from "../../../config/types.ts";
import type { Actor } from "../../../db/index.ts";
import { redirectField } from "../means/redirect.ts";
import { type AuthDeps, type Client, ownUser, type SignInAnswer, sharerOf } from "../sessions/deps.ts";
import { checkToken, invalidMailToken, mailLink, userOfToken, useToken } from "../sessions/mail-tokens.ts";
import { answerSignIn, completeSignIn, invalidToken } from "../sessions/sign-in.ts";
import { deletePlainInvitations, deleteSecretsOfOwner, findSecret } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import { type AccountWrite, type Caller, currentAccount } from "../store/account-file.ts";
import { clearUnproven } from "./credentials.ts";

/** Asks the owner of an address to join. See `Accounts.invite`. */
export async function invite(
  deps: AuthDeps,
  invitation: Invitation,
  by: Actor,
): Promise<{ account: SecretAccount; link: string }> {
  const { email, sendMail = true } = invitation;
  const redirect = redirectField(invitation.redirectUrl, deps.config);
  if (sendMail) deps.mailLimit.hit(email);
  const { account, posted, link } = await deps.file.write((write) => {
    const inviter = inviterOf(write, invitation.invitedBy ?? null);
    const account = invited(deps, write, invitation, by);
    const { data, role = null } = invitation;
    const payload = { role, invitedBy: inviter?.id ?? null, ...(data === undefined ? {} : { data }) };
    const values = { inviter: inviter?.displayName ?? null, data: data ?? {} };
    const token = {
      purpose: "invite",
      userId: account.id,
      email,
      redirect,
      payload,
      values,
      isMailed: sendMail,
    } as const;
    return { account, ...mailLink(deps, write, token) };
  });
  await posted();
  return { account, link };
}

/** Errors: 400 for an id that nobody has. */
function inviterOf(write: AccountWrite, id: string | null): SecretAccount | null {
  const inviter = id === null ? null : userById.get(write.tx, { id });
  if (id !== null && inviter === null)
    throw badField("invitedBy", "invalid_value", "invitedBy is not the id of a user");
  return inviter;
}

/** Returns the user to be invited, new or not. Errors: 409. */
function invited(
  { ids }: AuthDeps,
  write: AccountWrite,
  { email, role, metadata, language, data }: Invitation,
  by: Actor,
): SecretAccount {
  const found = userByEmail.get(write.tx, { email });
  if (found === null) return write.insert({ id: ids.uuid(), email, role, metadata, language }, by);
  if (found.disabled) throw new AppError(409, "The account of this address is disabled");
  if (found.hasSignedIn) {
    if (data !== undefined) return found;
    const message = "This user has signed in already";
    throw conflict(message, { email: { code: "not_unique", message } });
  }
  // Somebody else may have signed up with the address. Nothing that they set may open an account that is given a role now, nor
  // may a link that they had mailed.
  if (!found.emailVerified) clearUnproven(write, found.id);
  deletePlainInvitations.run(write.tx, { userId: found.id });
  return write.update(found.id, { role, metadata, language }, by);
}

interface Acceptance {
  token: string;
  /** null: the user signs in without one. */
  password: string | null;
  displayName?: string | null | undefined;
  language?: string | null | undefined;
}

/**
 * Accepts an invitation: the reader of the mail is the owner of the address. A user who has an account accepts one with data signed in to
 * it, as `caller`. Errors: 400 for a wrong, used or expired token, or a password that is missing, 403 if disabled; 401 and 403 for
 * anybody else than the user with the account.
 */
export async function acceptInvitation(
  deps: AuthDeps,
  accepted: Acceptance,
  client: Client,
  caller: Caller | null,
): Promise<SignInAnswer | { user: OwnUser }> {
  const { token, password, displayName } = accepted;
  const { userId, payload } = checkToken(deps, "invite", token);
  const known = userId === null ? null : userById.get(deps.file.sql, { id: userId });
  if (known !== null && hasAccount(known, payload)) return { user: await join(deps, token, known.id, caller) };
  if (password === null && deps.config.emailPassword !== false) {
    throw badField("password", "required", "password is required");
  }
  const passwordHash = password === null ? undefined : await deps.passwords.hash(password, sharerOf(client));
  const signIn = await deps.file.write((write) => {
    const { account, invitation } = taken(deps, write, token);
    // The user may have signed in while the password was hashed: then it is their session that accepts.
    if (hasAccount(account, invitation.payload)) throw signInToAccept();
    if (!account.emailVerified) clearUnproven(write, account.id);
    deleteSecretsOfOwner.run(write.tx, { userId: account.id });
    const name = displayName ?? undefined;
    const language = accepted.language ?? account.language ?? client.language;
    const present = write.update(account.id, { passwordHash, displayName: name, emailVerified: true, language });
    write.accepted(account.id, invitation.facts);
    // An account that has never had a session has no second factor yet.
    const data = invitation.hasData ? invitation.facts.data : null;
    return completeSignIn(deps, write, { account: present, client, invitation: data });
  });
  return answerSignIn(deps, signIn);
}

/** Whether whoever holds this token has to sign in to accept. false for a token that is wrong, used or expired. */
export function asksForAccount({ file, sealing, clock }: AuthDeps, token: string): boolean {
  const hash = sealing.digest("invite", token);
  const secret = findSecret.get(file.sql, { hash, purpose: "invite", now: clock.now() });
  const account = secret === null || secret.userId === null ? null : userById.get(file.sql, { id: secret.userId });
  return secret !== null && account !== null && hasAccount(account, secret.payload);
}

/** Whether the mail alone must not open the account: its owner signs in, and accepts. */
const hasAccount = ({ hasSignedIn, passwordHash }: SecretAccount, payload: JsonObject): boolean =>
  payload["data"] !== undefined && (hasSignedIn || passwordHash !== null);

const signInToAccept = () => unauthorized("Sign in to accept the invitation");

/** Accepts an invitation of the signed-in user. */
function join(deps: AuthDeps, token: string, userId: string, caller: Caller | null): Promise<OwnUser> {
  if (caller === null) throw signInToAccept();
  if (caller.userId !== userId) throw forbidden("The invitation is for another account");
  return deps.file.write((write) => {
    const present = currentAccount(write, caller);
    if (present === null) throw invalidToken();
    const { account, invitation } = taken(deps, write, token);
    if (account.id !== present.id) throw invalidMailToken();
    write.accepted(account.id, invitation.facts);
    return ownUser(account);
  });
}

/** Uses a token up. Errors: 400, 403 if disabled. */
function taken(deps: AuthDeps, write: AccountWrite, token: string) {
  const secret = useToken(deps, write, "invite", token);
  const account = userOfToken(write, secret);
  if (account.email !== secret.email) throw invalidMailToken();
  const { role, data, invitedBy } = secret.payload;
  const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
  const facts: AcceptedInvitation = {
    role: text(role),
    data: isJsonObject(data) ? data : {},
    invitedBy: text(invitedBy),
  };
  return { account, invitation: { payload: secret.payload, hasData: isJsonObject(data), facts } };
}
