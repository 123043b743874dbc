import { conflict, forbidden } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { AVATAR_URL_MAX_CHARACTERS, DISPLAY_NAME_MAX_CHARACTERS } from "../../../config/shapes/user-fields.ts";
import type { Profile } from "../providers/profile.ts";
import type { AuthDeps, Client, SignInAnswer } from "../sessions/deps.ts";
import { answerSignIn, completeSignIn, type SignIn } from "../sessions/sign-in.ts";
import { isProofRequired, requireSignUp } from "../sessions/verification.ts";
import { identityBySubject, keepTokens, touchIdentity } from "../statements/means.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import type { AccountWrite } from "../store/account-file.ts";
import { isOfAddress, linkIdentity, type NewIdentity, pendingIdentity } from "./credentials.ts";

// Who has shown by a provider who they are signs in here, or becomes a user.

export interface Visit {
  provider: string;
  profile: Profile;
  client: Client;
  /** Metadata of an account that the visit makes. */
  metadata?: JsonObject;
}

/**
 * Signs in the user of a profile, who becomes one if need be. Errors: 403 if disabled, `Sign-up is closed`, `Email not verified` or
 * `Email required`; 409 if the email belongs to another account.
 */
export async function signInVisit(deps: AuthDeps, visit: Visit): Promise<SignInAnswer> {
  const signIn =
    (await deps.file.write((write) => signInProfile(deps, write, visit))) ?? (await becomeUser(deps, visit));
  return answerSignIn(deps, signIn);
}

/** Signs in the user of a profile. Returns null if nobody has this identity or its address. */
function signInProfile(deps: AuthDeps, write: AccountWrite, { provider, profile, client }: Visit): SignIn | null {
  const known = identityBySubject.get(write.tx, { provider, subject: profile.subject });
  if (known !== null) {
    const account = userById.get(write.tx, { id: known.userId });
    if (account === null) throw new Error(`identity ${known.id} has no user`);
    // Another address of the same person, verified or not, says nothing about this account's.
    const emailVerified = known.emailVerified || isOfAddress(profile, account);
    touchIdentity.run(write.tx, { id: known.id, email: profile.email, lastSignInAt: write.now, emailVerified });
    keepTokensOf(deps, write, known.id, profile);
    return completeSignIn(deps, write, { account, client });
  }
  const account = accountFor(write, profile);
  if (account === null) return null;
  // Who holds the address at a provider and lacks the second factor must not leave a way in behind.
  const identity = newIdentity(deps, provider, profile);
  const signIn = completeSignIn(deps, write, { account, client, pending: pendingIdentity(identity) });
  if (signIn.kind !== "mfa") linkIdentity(write, account.id, identity);
  return signIn;
}

/** Returns the account with the profile's email if it is verified on both sides; null if no account has it. [AU34] */
function accountFor(write: AccountWrite, profile: Profile): SecretAccount | null {
  const owner = profile.email === null ? null : userByEmail.get(write.tx, { email: profile.email });
  if (owner === null || (owner.emailVerified && profile.emailVerified)) return owner;
  throw conflict("This email address has an account, and is not verified on both sides: sign in to it another way");
}

/** Makes a user of a profile. Errors: 403 `Sign-up is closed`, or `Email required` where addresses have to be proved and the provider gives none. */
async function becomeUser(deps: AuthDeps, visit: Visit): Promise<SignIn> {
  const { provider, profile, client, metadata = {} } = visit;
  const { email } = profile;
  const emailVerified = email !== null && profile.emailVerified;
  const { displayName, avatarUrl } = shownOf(profile);
  await requireSignUp(deps, { method: "oauth", provider, email, emailVerified, displayName, metadata });
  // No account, which could not be signed in to before it has an address.
  if (isProofRequired(deps.config) && email === null) throw forbidden("Email required");
  return deps.file.write((write) => {
    // Another sign-in may have been faster while the rule was asked.
    const present = signInProfile(deps, write, visit);
    if (present !== null) return present;
    const account = write.insert({
      id: deps.ids.uuid(),
      email,
      emailVerified,
      displayName,
      avatarUrl,
      metadata,
      language: client.language,
    });
    const signIn = completeSignIn(deps, write, { account, client });
    linkIdentity(write, account.id, newIdentity(deps, provider, profile));
    return signIn;
  });
}

/** Keeps the tokens of this visit. One that a device has begun brings none, and leaves those that are there. */
export function keepTokensOf(deps: AuthDeps, write: AccountWrite, id: string, profile: Profile): void {
  const tokens = sealedTokens(deps, profile);
  if (tokens !== null) keepTokens.run(write.tx, { id, tokens });
}

export const newIdentity = (deps: AuthDeps, provider: string, profile: Profile): NewIdentity => {
  const { subject, email, emailVerified } = profile;
  return { id: deps.ids.uuid(), provider, subject, email, emailVerified, tokens: sealedTokens(deps, profile) };
};

/** Returns the provider's tokens as they are kept; null: none are. */
export const sealedTokens = ({ sealing }: AuthDeps, { tokens }: Profile): string | null =>
  tokens === undefined ? null : sealing.seal(JSON.stringify(tokens));

/** Returns what a new account shows of a profile: a name that is not too long, and a picture of the web. */
export function shownOf({ name, picture }: Profile): { displayName: string | null; avatarUrl: string | null } {
  const isPicture = picture !== null && /^https?:\/\//.test(picture) && picture.length <= AVATAR_URL_MAX_CHARACTERS;
  const characters = name === null ? null : Array.from(name.toWellFormed()).slice(0, DISPLAY_NAME_MAX_CHARACTERS);
  return { displayName: characters?.join("") ?? null, avatarUrl: isPicture ? picture : null };
}
