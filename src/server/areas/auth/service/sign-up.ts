import { badRequest } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { Pending, Tokens } from "../../../config/shapes/sign-in.ts";
import type { Posted } from "../mail/mailer.ts";
import { type AuthDeps, type Client, ownUser, type SignInAnswer, sharerOf } from "../sessions/deps.ts";
import { mailToken } from "../sessions/mail-tokens.ts";
import {
  answerSignIn,
  begin,
  emailTaken,
  invalidToken,
  keepPageCode,
  openSession,
  renewTokens,
  tokensOf,
} from "../sessions/sign-in.ts";
import { isProofRequired, requireSignUp } from "../sessions/verification.ts";
import { deleteSecretsFor } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import { type AccountWrite, type Caller, currentAccount } from "../store/account-file.ts";

// How visitors become users by themselves: with a password, or anonymously.

interface Credentials {
  email: string;
  password: string;
  /** Address to which the link of a mail leads. */
  redirect: URL | null;
}

/** Errors: 403 `Sign-up is closed`, 409 for a known email. */
export async function signUp(
  deps: AuthDeps,
  fields: Credentials & {
    displayName?: string | null | undefined;
    metadata?: JsonObject | undefined;
    language: string | null;
  },
  client: Client,
): Promise<SignInAnswer | Pending> {
  const { email, password, displayName = null, metadata = {}, language, redirect } = fields;
  // Before anything else about the address: a closed sign-up must not tell who has an account.
  await requireSignUp(deps, { method: "password", email, emailVerified: false, displayName, metadata });
  if (userByEmail.get(deps.file.sql, { email }) !== null) throw emailTaken();
  const isProved = !isProofRequired(deps.config);
  if (!isProved) deps.mailLimit.hit(email);
  const passwordHash = await deps.passwords.hash(password, sharerOf(client));
  const insert = (write: AccountWrite): SecretAccount => {
    if (userByEmail.get(write.tx, { email }) !== null) throw emailTaken();
    const id = deps.ids.uuid();
    return write.insert({ id, email, passwordHash, displayName, metadata, language, hasSignedIn: isProved });
  };
  if (isProved) {
    return answerSignIn(deps, await deps.file.write((write) => begin(deps, write, insert(write), client)));
  }
  const pending = await deps.file.write((write) => {
    const account = insert(write);
    const posted = mailToken(deps, write, { purpose: "verify-email", userId: account.id, email, redirect });
    return { account, posted };
  });
  return answerPending(pending);
}

/** Errors: 403 `Sign-up is closed`. */
export async function signInAnonymously(deps: AuthDeps, client: Client): Promise<Tokens> {
  await requireSignUp(deps, {
    method: "anonymous",
    email: null,
    emailVerified: false,
    displayName: null,
    metadata: {},
  });
  const { language } = client;
  const session = await deps.file.write((write) => {
    const account = write.insert({ id: deps.ids.uuid(), email: null, isAnonymous: true, hasSignedIn: true, language });
    return openSession(deps, write, account, client);
  });
  return tokensOf(deps, session);
}

/**
 * Gives an anonymous user an address and a password; the id stays. Where addresses have to be proved, the user stays anonymous until
 * then. Errors: 400 for a user who is not anonymous, 403 `Sign-up is closed`, 409 for a known email.
 */
export async function linkEmail(
  deps: AuthDeps,
  caller: Caller,
  fields: Credentials,
  { codeFor }: Pick<Client, "codeFor"> = {},
): Promise<SignInAnswer | Pending> {
  const { email, password, redirect } = fields;
  const { displayName, metadata } = requireAnonymous(userById.get(deps.file.sql, { id: caller.userId }));
  await requireSignUp(deps, { method: "password", email, emailVerified: false, displayName, metadata });
  if (userByEmail.get(deps.file.sql, { email }) !== null) throw emailTaken();
  const isProved = !isProofRequired(deps.config);
  if (!isProved) deps.mailLimit.hit(email);
  const passwordHash = await deps.passwords.hash(password, `user:${caller.userId}`);
  const current = (write: AccountWrite): SecretAccount => {
    const account = requireAnonymous(currentAccount(write, caller));
    if (userByEmail.get(write.tx, { email }) !== null) throw emailTaken();
    return account;
  };
  if (codeFor !== undefined) {
    // Not before the application redeems the code: somebody else's guest must not become this visitor, who would share its sessions.
    return deps.file.write((write) => {
      const kept = { userId: current(write).id, provedAt: write.now, invitation: null, link: { email, passwordHash } };
      return { pageCode: keepPageCode(deps, write, { ...kept, ...codeFor }) };
    });
  }
  if (isProved) {
    const session = await deps.file.write((write) => {
      const account = write.update(current(write).id, { email, passwordHash, isAnonymous: false });
      // A guest who creates an account in the middle of a game continues it.
      return renewTokens(deps, write, { account, caller, accessTokens: "stay" });
    });
    return tokensOf(deps, session);
  }
  const pending = await deps.file.write((write) => {
    const account = current(write);
    const userId = account.id;
    // The last address that was asked for counts.
    deleteSecretsFor.run(write.tx, { userId, purpose: "verify-email" });
    // The user gets neither address nor password before the address is proved: rules trust `auth.email` then.
    const payload = { passwordHash };
    return { account, posted: mailToken(deps, write, { purpose: "verify-email", userId, email, redirect, payload }) };
  });
  return answerPending(pending);
}

/** Errors: 400, 401. */
function requireAnonymous(account: SecretAccount | null): SecretAccount {
  if (account === null) throw invalidToken();
  if (!account.isAnonymous) throw badRequest("Only an anonymous user can be linked, and this one has an account");
  return account;
}

/** Called when the write is on disk. */
async function answerPending({ account, posted }: { account: SecretAccount; posted: Posted }): Promise<Pending> {
  await posted();
  return { user: ownUser(account), verificationRequired: true };
}
