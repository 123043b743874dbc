import { AppError, badField, badRequest, reasonOf } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { OAUTH_STATE_TTL_MS, SECRET_BYTES } from "../limits.ts";
import { allowedRedirect } from "../means/redirect.ts";
import { joinedName, memberOf, type Profile } from "../providers/profile.ts";
import type { ProviderClient } from "../providers/requests.ts";
import type { AuthDeps, Client, SignInAnswer } from "../sessions/deps.ts";
import { pagesUrl } from "../sessions/page-links.ts";
import { requireRecentProof } from "../sessions/ways-in.ts";
import { deleteSecret, findSecret, putSecret } from "../statements/secrets.ts";
import type { Caller } from "../store/account-file.ts";
import { equalsConstantTime } from "../store/sealing.ts";
import { keepLinkCode, keepSignInCode } from "./oauth-codes.ts";
import type { OAuthProviders } from "./oauth-providers.ts";
import { signInVisit } from "./oauth-visits.ts";

// Signing in with an account at a provider of OAuth or OpenID Connect.

export type Finished = { redirectUrl: URL } & (
  | { answer: SignInAnswer }
  | { code: string }
  | { error: string; description: string; hasCode: boolean }
);

const callbackOf = ({ publicUrl }: AuthDeps, provider: string): string =>
  `${publicUrl()}/api/auth/oauth/${encodeURIComponent(provider)}/callback`;

const browserHash = ({ sealing }: AuthDeps, secret: string): Buffer => sealing.digest("oauth-browser", secret);

/**
 * Returns where a sign-in leads back to; the server's root by default. Any app on a device can take over a scheme that is not the
 * web's, so it gets a code that only the app which began can redeem. Errors: 400 naming `name`.
 */
function redirectOf(deps: AuthDeps, text: string | null, { name, hasCode }: { name: string; hasCode: boolean }): URL {
  const { publicUrl, config } = deps;
  if (text === null || text === "") return new URL(`${publicUrl()}/`);
  // The pages redeem the code themselves, by what their cookie holds.
  if (hasCode && text === pagesUrl(deps, "oauth")) return new URL(text);
  const url = allowedRedirect(text, config.redirectUrls ?? [], { anyLoopbackPort: hasCode });
  if (url === null) throw badField(name, "invalid_value", `${name} is not one of auth.redirectUrls`);
  if (hasCode || /^https?:$/.test(url.protocol)) return url;
  throw badField("code_challenge", "required", `code_challenge is required for the scheme ${url.protocol}`);
}

/** Purpose of a sign-in that begins. */
interface Begin {
  provider: string;
  redirectUrl: string | null;
  /** The PKCE challenge of an app, which redeems a code; null for tokens in the fragment. */
  challenge: string | null;
}

/**
 * Begins a sign-in. Returns the provider's address, and a secret for the browser's cookie. Errors: 404 for an undeclared provider,
 * 400, 502.
 */
export async function beginOAuth(
  deps: AuthDeps,
  providers: OAuthProviders,
  { provider, redirectUrl, challenge }: Begin,
): Promise<{ location: string; state: string; browserSecret: string }> {
  const client = await providers.named(provider);
  const redirect = redirectOf(deps, redirectUrl, { name: "redirect_url", hasCode: challenge !== null });
  const browserSecret = deps.ids.secret(SECRET_BYTES);
  const browser = browserHash(deps, browserSecret).toString("base64");
  const begun = await begin(deps, client, { provider, redirect, purpose: { browser, challenge } });
  return { ...begun, browserSecret };
}

/**
 * Begins to link an account at a provider to the caller's. Returns the provider's address. Errors: 401 `Sign in again`, 404, 400, 502.
 */
export async function beginLink(
  deps: AuthDeps,
  providers: OAuthProviders,
  caller: Caller,
  { provider, redirectUrl }: { provider: string; redirectUrl: string },
): Promise<string> {
  const client = await providers.named(provider);
  requireRecentProof(deps.file.sql, caller, deps.config, deps.clock.now());
  const redirect = redirectOf(deps, redirectUrl, { name: "redirectUrl", hasCode: true });
  const purpose = { userId: caller.userId, sessionId: caller.sessionId };
  return (await begin(deps, client, { provider, redirect, purpose })).location;
}

async function begin(
  deps: AuthDeps,
  client: ProviderClient,
  { provider, redirect, purpose }: { provider: string; redirect: URL; purpose: JsonObject },
): Promise<{ location: string; state: string }> {
  const secret = () => deps.ids.secret(SECRET_BYTES);
  const [state, nonce, verifier] = [secret(), secret(), secret()] as const;
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
      payload: { ...purpose, provider, nonce, verifier: deps.sealing.seal(verifier), redirectUrl: redirect.href },
    });
  });
  return { location: url.href, state };
}

/**
 * Completes what has begun, with the query of the callback: signs in, or keeps a code for whoever began. `browserSecret` is the
 * cookie's, null in a browser without it, undefined where the request does not come from a browser. Errors: 400 for a wrong, used or
 * expired state, another browser, or an invalid answer of the provider; those of `signInVisit`.
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
  // What links belongs to a session, which alone can redeem the code.
  if (browserSecret !== undefined && state.link === null) {
    const given = browserHash(deps, browserSecret ?? "");
    // An attacker's sign-in, begun in another browser, must not complete in this one.
    if (!equalsConstantTime(given, Buffer.from(state.browser, "base64"))) {
      throw badField("state", "invalid_value", "state belongs to another browser");
    }
  }
  const redirectUrl = new URL(state.redirectUrl);
  const error = query.get("error");
  if (error !== null) {
    const description = (query.get("error_description") ?? "").slice(0, 256);
    return { redirectUrl, error, description, hasCode: state.link !== null || state.challenge !== null };
  }
  const callback = new URL(`${callbackOf(deps, provider)}?${query}`);
  const { nonce, verifier, link, challenge } = state;
  const found = await providerClient.profile({ callback, state: text, nonce, verifier }).catch((cause: unknown) => {
    throw refused(deps, provider, cause);
  });
  const profile = { ...found, name: found.name ?? nameOfForm(query.get("user")) };
  if (link !== null) return { redirectUrl, code: await keepLinkCode(deps, { provider, profile, ...link }) };
  if (challenge !== null) return { redirectUrl, code: await keepSignInCode(deps, { provider, profile, challenge }) };
  return { redirectUrl, answer: await signInVisit(deps, { provider, profile, client }) };
}

/** Logs why a provider's answer was refused. Returns a 400 without the reason. */
export function refused({ logger }: AuthDeps, provider: string, cause: unknown): AppError {
  logger.warn("An OAuth sign-in was refused", { provider, reason: faultOf(cause) });
  return badRequest(`The answer of the provider "${provider}" does not check`);
}

/** Returns the name that Apple posts with the first sign-in; null without one. It decides nothing but what a new account is called. */
function nameOfForm(user: string | null): Profile["name"] {
  if (user === null) return null;
  try {
    const name = memberOf(JSON.parse(user), "name");
    return joinedName(memberOf(name, "firstName"), memberOf(name, "lastName")) || null;
  } catch {
    return null;
  }
}

interface State {
  nonce: string;
  verifier: string;
  redirectUrl: string;
  browser: string;
  challenge: string | null;
  link: { userId: string; sessionId: string } | null;
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
    const { nonce, verifier, redirectUrl, browser, challenge, userId, sessionId } = found.payload;
    const text = (value: unknown) => (typeof value === "string" ? value : "");
    return {
      nonce: text(nonce),
      verifier: sealing.unseal(text(verifier)) ?? "",
      redirectUrl: text(redirectUrl),
      browser: text(browser),
      challenge: typeof challenge === "string" ? challenge : null,
      link: typeof userId === "string" ? { userId, sessionId: text(sessionId) } : null,
    };
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
