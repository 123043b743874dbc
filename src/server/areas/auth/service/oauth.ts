import { AppError, badField, badRequest, conflict, forbidden, notFound, reasonOf } from "../../../../kernel/errors.ts";
import { projection } from "../../../../kernel/schema/projection.ts";
import { Identity } from "../../../config/shapes/sign-in.ts";
import { AVATAR_URL_MAX_CHARACTERS, DISPLAY_NAME_MAX_CHARACTERS } from "../../../config/shapes/user-fields.ts";
import type { AuthConfig } from "../../../config/types.ts";
import { OAUTH_STATE_TTL_MS, SECRET_BYTES } from "../limits.ts";
import type { Profile, ProviderClient } from "../means/oauth-provider.ts";
import { allowedRedirect } from "../means/redirect.ts";
import type { AuthDeps, Client, SignInAnswer } from "../sessions/deps.ts";
import { answerSignIn, completeSignIn, type SignIn } from "../sessions/sign-in.ts";
import { isProofRequired, requireSignUp } from "../sessions/verification.ts";
import { requireOtherWayIn, requireRecentProof } from "../sessions/ways-in.ts";
import { deleteIdentity, identitiesOfUser, identityBySubject, touchIdentity } from "../statements/means.ts";
import { deleteSecret, findSecret, putSecret } from "../statements/secrets.ts";
import { type SecretAccount, userByEmail, userById } from "../statements/users.ts";
import type { AccountWrite, Caller } from "../store/account-file.ts";
import { equalsConstantTime } from "../store/sealing.ts";
import { linkIdentity, type NewIdentity, pendingIdentity } from "./credentials.ts";

// Signing in with an account at a provider of OAuth or OpenID Connect.

const identityView = projection(Identity);

export type Finished = { redirectUrl: URL } & ({ answer: SignInAnswer } | { error: string; description: string });

interface State {
  provider: string;
  nonce: string;
  verifier: string;
  redirectUrl: string;
  browser: string;
}

const callbackOf = ({ publicUrl }: AuthDeps, provider: string): string =>
  `${publicUrl()}/api/auth/oauth/${encodeURIComponent(provider)}/callback`;

const browserHash = ({ sealing }: AuthDeps, secret: string): Buffer => sealing.digest("oauth-browser", secret);

/** Errors: 400. */
function redirectOf({ publicUrl, config }: AuthDeps, text: string | null): URL {
  if (text === null || text === "") return new URL(`${publicUrl()}/`);
  const url = allowedRedirect(text, config.redirectUrls ?? []);
  if (url !== null) return url;
  throw badField("redirect_url", "invalid_value", "redirect_url is not one of auth.redirectUrls");
}

/** The clients of the declared providers, each made by its first sign-in. */
export class OAuthProviders {
  readonly #declared: NonNullable<AuthConfig["oauth"]>;
  readonly #now: () => number;
  readonly #clients = new Map<string, ProviderClient>();

  constructor(declared: NonNullable<AuthConfig["oauth"]>, now: () => number) {
    this.#declared = declared;
    this.#now = now;
  }

  /** Errors: 404. */
  async named(name: string): Promise<ProviderClient> {
    const config = Object.hasOwn(this.#declared, name) ? this.#declared[name] : undefined;
    if (config === undefined) throw notFound(`There is no OAuth provider "${name}"`);
    // Loaded by the first sign-in: a start without the OpenID library is faster.
    const { createProviderClient } = await import("../means/oauth-provider.ts");
    const client = this.#clients.get(name) ?? createProviderClient(name, config, this.#now);
    this.#clients.set(name, client);
    return client;
  }
}

/** Begins a sign-in. Returns the provider's address, and a secret for the browser's cookie. Errors: 404 for an undeclared provider, 400, 502. */
export async function beginOAuth(
  deps: AuthDeps,
  providers: OAuthProviders,
  { provider, redirectUrl }: { provider: string; redirectUrl: string | null },
): Promise<{ location: string; state: string; browserSecret: string }> {
  const client = await providers.named(provider);
  const redirect = redirectOf(deps, redirectUrl);
  const secret = () => deps.ids.secret(SECRET_BYTES);
  const [state, nonce, verifier, browserSecret] = [secret(), secret(), secret(), secret()] as const;
  const redirectUri = callbackOf(deps, provider);
  const url = await client.authorizationUrl({ state, nonce, verifier, redirectUri }).catch((cause: unknown) => {
    deps.logger.error("An OAuth provider does not answer", { provider, reason: faultOf(cause) });
    throw new AppError(502, `The provider "${provider}" does not answer`, { cause });
  });
  await deps.file.write((write) => {
    putSecret.run(write.tx, {
      hash: deps.sealing.digest("oauth-state", state),
      purpose: "oauth-state",
      userId: null,
      expiresAt: write.now + OAUTH_STATE_TTL_MS,
      payload: {
        provider,
        nonce,
        verifier: deps.sealing.seal(verifier),
        redirectUrl: redirect.href,
        browser: browserHash(deps, browserSecret).toString("base64"),
      },
    });
  });
  return { location: url.href, state, browserSecret };
}

/**
 * Completes a sign-in with the query of the callback. `browserSecret` is the cookie's, null in a browser without it,
 * undefined where the request does not come from a browser. Errors: 400 for a wrong, used or expired state, another
 * browser, or an invalid answer of the provider; 403 if disabled, `Sign-up is closed`, `Email not verified` or `Email
 * required`; 409 if the email belongs to another account.
 */
export async function finishOAuth(
  deps: AuthDeps,
  providers: OAuthProviders,
  {
    provider,
    query,
    browserSecret,
    client,
  }: {
    provider: string;
    query: URLSearchParams;
    browserSecret: string | null | undefined;
    client: Client;
  },
): Promise<Finished> {
  const providerClient = await providers.named(provider);
  const text = query.get("state");
  if (text === null || text === "") throw badField("state", "required", "state is required");
  const state = await takeState(deps, text, provider);
  if (browserSecret !== undefined) {
    const given = browserHash(deps, browserSecret ?? "");
    // An attacker's sign-in, begun in another browser, must not complete in this one.
    if (!equalsConstantTime(given, Buffer.from(state.browser, "base64"))) {
      throw badField("state", "invalid_value", "state belongs to another browser");
    }
  }
  const redirectUrl = new URL(state.redirectUrl);
  const error = query.get("error");
  if (error !== null) {
    return { redirectUrl, error, description: (query.get("error_description") ?? "").slice(0, 256) };
  }
  const callback = new URL(`${callbackOf(deps, provider)}?${query}`);
  const { nonce, verifier } = state;
  const profile = await providerClient.profile({ callback, state: text, nonce, verifier }).catch((cause: unknown) => {
    deps.logger.warn("An OAuth sign-in was refused", { provider, reason: faultOf(cause) });
    throw badRequest(`The answer of the provider "${provider}" does not check`);
  });
  const visit = { provider, profile, client };
  const signIn =
    (await deps.file.write((write) => signInProfile(deps, write, visit))) ?? (await becomeUser(deps, visit));
  return { redirectUrl, answer: await answerSignIn(deps, signIn) };
}

interface State {
  provider: string;
  nonce: string;
  verifier: string;
  redirectUrl: string;
  browser: string;
}

/** Returns a state, which is valid once: it is deleted before the provider is asked anything. Errors: 400. */
function takeState({ file, sealing }: AuthDeps, state: string, provider: string): Promise<State> {
  return file.write((write) => {
    const hash = sealing.digest("oauth-state", state);
    const found = findSecret.get(write.tx, { hash, purpose: "oauth-state", now: write.now });
    if (found === null || found.payload["provider"] !== provider) {
      throw badField("state", "invalid_value", "state is wrong, used or expired");
    }
    deleteSecret.run(write.tx, { hash });
    const { nonce, verifier, redirectUrl, browser } = found.payload;
    const text = (value: unknown) => (typeof value === "string" ? value : "");
    return {
      provider,
      nonce: text(nonce),
      verifier: sealing.unseal(text(verifier)) ?? "",
      redirectUrl: text(redirectUrl),
      browser: text(browser),
    };
  });
}

interface Visit {
  provider: string;
  profile: Profile;
  client: Client;
}

/** Signs in the user of a profile. Returns null if nobody has this identity or its address. */
function signInProfile(deps: AuthDeps, write: AccountWrite, { provider, profile, client }: Visit): SignIn | null {
  const known = identityBySubject.get(write.tx, { provider, subject: profile.subject });
  if (known !== null) {
    const account = userById.get(write.tx, { id: known.userId });
    if (account === null) throw new Error(`identity ${known.id} has no user`);
    // Another address of the same person, verified or not, says nothing about this account's.
    const emailVerified = known.emailVerified || (profile.emailVerified && profile.email === account.email);
    touchIdentity.run(write.tx, { id: known.id, email: profile.email, lastSignInAt: write.now, emailVerified });
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
  const { provider, profile, client } = visit;
  const { email, name } = profile;
  const emailVerified = email !== null && profile.emailVerified;
  const displayName = name === null ? null : shortened(name);
  await requireSignUp(deps, { method: "oauth", provider, email, emailVerified, displayName, metadata: {} });
  // No account, which could not be signed in to before it has an address.
  if (isProofRequired(deps.config) && email === null) throw forbidden("Email required");
  const picture = profile.picture !== null && /^https?:\/\//.test(profile.picture) ? profile.picture : null;
  const avatarUrl = picture !== null && picture.length <= AVATAR_URL_MAX_CHARACTERS ? picture : null;
  return deps.file.write((write) => {
    // Another sign-in may have been faster while the rule was asked.
    const present = signInProfile(deps, write, visit);
    if (present !== null) return present;
    const account = write.insert({ id: deps.ids.uuid(), email, emailVerified, displayName, avatarUrl });
    const signIn = completeSignIn(deps, write, { account, client });
    linkIdentity(write, account.id, newIdentity(deps, provider, profile));
    return signIn;
  });
}

const newIdentity = (deps: AuthDeps, provider: string, profile: Profile): NewIdentity => {
  const { subject, email, emailVerified } = profile;
  return { id: deps.ids.uuid(), provider, subject, email, emailVerified };
};

const shortened = (name: string): string =>
  Array.from(name.toWellFormed()).slice(0, DISPLAY_NAME_MAX_CHARACTERS).join("");

export const identitiesOf = ({ file }: AuthDeps, { userId }: Caller): Identity[] =>
  identitiesOfUser.all(file.sql, { userId }).map(identityView);

/** Errors: 404, 401 `Sign in again`, 400 for the last way of signing in. */
export async function removeIdentity({ file, config }: AuthDeps, caller: Caller, id: string): Promise<void> {
  const { userId } = caller;
  await file.write((write) => {
    const account = requireRecentProof(write.tx, caller, config, write.now);
    const identities = identitiesOfUser.all(write.tx, { userId });
    if (!identities.some((identity) => identity.id === id)) throw notFound(`There is no identity "${id}"`);
    requireOtherWayIn(write.tx, account, config, id);
    deleteIdentity.run(write.tx, { id });
    const after = { type: "identity" };
    write.audit({ user: userId }, { action: "factor.delete", target: `users/${userId}`, after });
  });
}

/**
 * Returns why a request to a provider failed, for the log. The errors of the library hold what the provider sent as well: tokens, and
 * what it says of the user.
 */
function faultOf(cause: unknown): string {
  const reasons: unknown[] = [];
  for (let error = cause; error instanceof Error; error = error.cause) {
    // An error answer of the provider has these.
    const { error: code, error_description: description } = error as { error?: unknown; error_description?: unknown };
    reasons.push(error.message, code, description);
  }
  const texts = reasons.filter((reason) => typeof reason === "string");
  return texts.length === 0 ? reasonOf(cause) : texts.join(": ");
}
