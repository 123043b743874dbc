import {
  type ClientAuth,
  ClientSecretBasic,
  type Configuration,
  type CustomFetchOptions,
  ResponseBodyError,
  refreshTokenGrant,
} from "openid-client";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { Profile, ProviderTokens } from "./profile.ts";
import { providerFetch } from "./provider-fetch.ts";

export interface Exchange {
  /** The callback's address as the provider called it, with its query. */
  callback: URL;
  state: string;
  nonce: string;
  verifier: string;
}

/** The requests to one provider. Errors: those of the library, which the caller answers. */
export interface ProviderClient {
  authorizationUrl(options: Omit<Exchange, "callback"> & { redirectUri: string }): Promise<URL>;
  /** Checks state, issuer, nonce, PKCE and the ID token's signature on the way, as far as the provider has them. */
  profile(exchange: Exchange): Promise<Profile>;
  /** Verifies an ID token that an app on a device has got; null where the provider has none. */
  tokenProfile: ((idToken: string) => Promise<TokenProfile>) | null;
  /** Returns new tokens. Errors: `RefusedRefresh` where the provider takes the refresh token no more. */
  refresh(tokens: RefreshableTokens): Promise<ProviderTokens>;
}

export type RefreshableTokens = Pick<ProviderTokens, "further"> & { refreshToken: string };

/** The provider takes a refresh token no more: the user has withdrawn it, or it was used. */
export class RefusedRefresh extends Error {}

/** Refreshes tokens by the library. The old refresh token stays where the provider gives no new one. */
export async function refreshed(
  configuration: Configuration,
  { refreshToken, further }: RefreshableTokens,
  now: () => number,
): Promise<ProviderTokens> {
  const answer = await refreshTokenGrant(configuration, refreshToken, { ...further }).catch((cause: unknown) => {
    const isRefused = cause instanceof ResponseBodyError && cause.error === "invalid_grant";
    throw isRefused ? new RefusedRefresh("the provider refuses the refresh token", { cause }) : cause;
  });
  return { ...tokensFrom(answer, now, refreshToken), ...(further === undefined ? {} : { further }) };
}

/** Returns the tokens of an answer of the token endpoint. */
export function tokensFrom(
  answer: { access_token: string; refresh_token?: string; expires_in?: number },
  now: () => number,
  before: string | null = null,
): ProviderTokens {
  const { access_token: accessToken, refresh_token: refreshToken = before, expires_in: seconds } = answer;
  return { accessToken, refreshToken, expiresAt: seconds === undefined ? null : now() + seconds * SECOND_MS };
}

export interface TokenProfile {
  profile: Profile;
  nonce: string | null;
  /** End of the token, in seconds since the Unix epoch. */
  expiresAt: number;
}

/**
 * Returns a `fetch` that makes answers of a token endpoint what the library expects: some providers leave out `token_type`, or write
 * the scopes as a list. With `setAside`, the ID token is moved to that member, which the library does not look at.
 */
export const tokenFetch =
  (endpoint: () => string | undefined, setAside: string | null) =>
  async (url: string, options: CustomFetchOptions): Promise<Response> => {
    const response = await providerFetch(url, options);
    if (!response.ok || options.method !== "POST" || url !== endpoint()) return response;
    const text = await response.text();
    return new Response(granted(text, setAside), { status: response.status, headers: response.headers });
  };

function granted(text: string, setAside: string | null): string {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return text;
  }
  if (!isJsonObject(answer)) return text;
  const { id_token: idToken, scope, token_type: type, ...others } = answer;
  const known: JsonObject = { ...others, token_type: typeof type === "string" ? type : "bearer" };
  if (typeof scope === "string") known["scope"] = scope;
  if (idToken !== undefined) known[setAside ?? "id_token"] = idToken;
  return JSON.stringify(known);
}

/** Sends id and secret of the client in the form, the id under another name where the provider has one for it. */
export const secretInForm =
  (secret: string, idName = "client_id"): ClientAuth =>
  (_server, client, body) => {
    body.set(idName, client.client_id);
    body.set("client_secret", secret);
  };

/** Sends the secret as the provider says that it takes it; by HTTP's Basic, the default of OpenID Connect, where it says nothing. */
export const secretAsAsked = (secret: string): ClientAuth => {
  const [inHeader, inForm] = [ClientSecretBasic(secret), secretInForm(secret)];
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported;
    const takesBasic = methods === undefined || methods.includes("client_secret_basic");
    return (takesBasic ? inHeader : inForm)(server, client, body, headers);
  };
};
