import { pause } from "../../../../kernel/clock.ts";
import { type AppError, badField, unauthorized } from "../../../../kernel/errors.ts";
import type { Tokens } from "../../../config/shapes/sign-in.ts";
import { REFUSAL_MS } from "../limits.ts";
import type { Guess } from "../means/guesses.ts";
import { type AuthDeps, type Client, type SignInAnswer, sharerOf } from "../sessions/deps.ts";
import { checkToken, invalidMailToken, issueToken, userOfToken, useToken } from "../sessions/mail-tokens.ts";
import {
  answerSignIn,
  completeSignIn,
  type GuessUse,
  guessKeys,
  invalidToken,
  renewTokens,
  type SignIn,
  tokensOf,
} from "../sessions/sign-in.ts";
import { requireRecentProof } from "../sessions/ways-in.ts";
import { deleteTokensOfUser, deleteUnverifiedIdentities } from "../statements/means.ts";
import { deleteSecretsFor, deleteSecretsOfOwner } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import { accountDisabled, type Caller, currentAccount } from "../store/account-file.ts";
import { clearUnproven, removePasskeys, removePhone } from "./credentials.ts";

/** Errors: 401 `Invalid email or password`, 403 `Account is disabled` or `Email not verified`, 429. */
export async function signInWithPassword(
  deps: AuthDeps,
  fields: { email: string; password: string; redirect: URL | null },
  client: Client,
): Promise<SignInAnswer> {
  const { email, password, redirect } = fields;
  const wrong = unauthorized("Invalid email or password");
  const { account: proved, isOutdated } = await prove(deps, { email, password }, { use: "password", client, wrong });
  if (proved.disabled) throw accountDisabled();
  const passwordHash = isOutdated ? await deps.passwords.hash(password, sharerOf(client)) : undefined;
  const signedIn = await deps.file.write<SignIn | null>((write) => {
    const account = userById.get(write.tx, { id: proved.id });
    // The password may have been changed, or the user deleted, while its hash was being computed.
    if (account === null || account.email !== email) throw wrong;
    if (account.passwordHash !== proved.passwordHash) {
      if (!isOutdated) throw wrong;
      return null;
    }
    const present = passwordHash === undefined ? account : write.update(account.id, { passwordHash });
    return completeSignIn(deps, write, { account: present, client });
  });
  // Another sign-in may have replaced the imported hash meanwhile: once more with the new one, which is not outdated.
  return signedIn === null ? signInWithPassword(deps, fields, client) : answerSignIn(deps, signedIn, redirect);
}

/** Changes the password; every other session ends. Errors: 401 for a wrong current password, 429. */
export async function changePassword(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  { current, next }: { current: string; next: string },
): Promise<Tokens> {
  const proved = await confirmPassword(deps, caller, client, current);
  const passwordHash = await deps.passwords.hash(next, sharerOf(client));
  const session = await deps.file.write((write) => {
    const account = currentAccount(write, caller);
    if (account === null || account.passwordHash !== proved.passwordHash) throw invalidToken();
    const changed = write.update(account.id, { passwordHash });
    write.endSessions(account.id, { except: caller.sessionId });
    // A mail that is under way must not set the password back.
    deleteSecretsFor.run(write.tx, { userId: account.id, purpose: "reset-password" });
    return renewTokens(deps, write, { account: changed, caller, accessTokens: "end" });
  });
  return tokensOf(deps, session);
}

/** Returns the caller's account, if this is its password. Errors: 401, 429. */
export async function confirmPassword(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  password: string,
): Promise<SecretAccount> {
  const email = userById.get(deps.file.sql, { id: caller.userId })?.email ?? null;
  const wrong = unauthorized("Invalid password");
  if (email === null) throw wrong;
  return (await prove(deps, { email, password }, { use: "confirmation", client, wrong })).account;
}

/**
 * Returns the caller's account, once the owner has shown who they are: by its password, or, where it has none, by a sign-in of the
 * last ten minutes. Errors: 400 without the password of an account that has one; 401, 429.
 */
export async function confirmOwner(
  deps: AuthDeps,
  caller: Caller,
  client: Client,
  password: string | null,
): Promise<SecretAccount> {
  const hasPassword = (userById.get(deps.file.sql, { id: caller.userId })?.passwordHash ?? null) !== null;
  if (password !== null) return confirmPassword(deps, caller, client, password);
  if (hasPassword) throw badField("password", "required", "password is required");
  return requireRecentProof(deps.file.sql, caller, deps.config, deps.clock.now());
}

/** An account whose password was given. `isOutdated`: the hash of it is replaced. */
interface Proved {
  account: SecretAccount;
  isOutdated: boolean;
}

/** Returns the account that `password` opens. The time is the same whether there is one or not, and whatever hash it has. */
async function prove(
  deps: AuthDeps,
  { email, password }: { email: string; password: string },
  { use, client, wrong }: { use: GuessUse; client: Client; wrong: AppError },
): Promise<Proved> {
  const { file, passwords, guesses, clock } = deps;
  let refusedAt = 0;
  const about = { userId: null as string | null, email, way: "password" as const };
  const guess = async (): Promise<Guess<Proved>> => {
    const account = userByEmail.get(file.sql, { email });
    about.userId = account?.id ?? null;
    const hash = account?.passwordHash ?? null;
    const { isRight, isOutdated, beganAt } = await passwords.verify(password, hash, sharerOf(client));
    refusedAt = beganAt + REFUSAL_MS;
    return isRight && account !== null ? { isRight, value: { account, isOutdated } } : { isRight: false, error: wrong };
  };
  return guesses.attempt(guessKeys(deps, use, email, client), guess, about).catch(async (cause: unknown) => {
    // Judged already, so that it holds up no other guess. Nothing to wait for where it was not judged.
    const leftMs = Math.min(REFUSAL_MS, refusedAt - clock.now());
    if (leftMs > 0) await pause(clock, leftMs);
    throw cause;
  });
}

/** Mails a link that sets a password. Takes the same time and has the same answer whether or not there is such a user. */
export async function requestPasswordReset(deps: AuthDeps, email: string, redirect: URL | null): Promise<void> {
  const account = userByEmail.get(deps.file.sql, { email });
  const userId = account?.id ?? null;
  await issueToken(deps, { purpose: "reset-password", userId, email, isMailed: account !== null, redirect });
}

/**
 * Sets a password with a mailed token: ends every session, and removes identities whose address the provider has not verified.
 * Passkeys and the phone number are removed too unless `keepPasskeys` and `keepPhone`: a user whose account somebody else has entered resets the password to keep them
 * out. Errors: 400 for a wrong, used or expired token, 403 if disabled.
 */
export async function resetPassword(
  deps: AuthDeps,
  {
    token,
    newPassword,
    keepPasskeys,
    keepPhone,
  }: { token: string; newPassword: string; keepPasskeys: boolean; keepPhone: boolean },
  client: Client,
): Promise<void> {
  checkToken(deps, "reset-password", token);
  const passwordHash = await deps.passwords.hash(newPassword, sharerOf(client));
  await deps.file.write((write) => {
    const secret = useToken(deps, write, "reset-password", token);
    const account = userOfToken(write, secret);
    if (account.email !== secret.email) throw invalidMailToken();
    if (!account.emailVerified) clearUnproven(write, account.id);
    // Somebody at a provider that verifies no address may have brought it along before its owner verified it here.
    deleteUnverifiedIdentities.run(write.tx, { userId: account.id });
    deleteTokensOfUser.run(write.tx, { userId: account.id });
    if (!keepPasskeys) removePasskeys(write, account.id);
    if (!keepPhone) removePhone(write, account.id);
    write.update(account.id, { passwordHash, emailVerified: true });
    write.endSessions(account.id, { except: null });
    deleteSecretsOfOwner.run(write.tx, { userId: account.id });
  });
}
