import {
  // biome-ignore lint/suspicious/noDeprecatedImports: marked so to stand out; for providers on loopback alone
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretBasic,
  Configuration,
  customFetch,
  fetchProtectedResource,
} from "openid-client";
import { LOOPBACK } from "../../../config/sections/auth-issuers.ts";
import type { OAuthProvider } from "../../../config/types.ts";
import { PROVIDER_TIMEOUT_SECONDS } from "../limits.ts";
import { offlineOf, type PlainRow, type ProfileRequest } from "./known.ts";
import { challengeOf } from "./oidc-client.ts";
import { profileOf } from "./profile.ts";
import { type ProviderClient, refreshed, secretInForm, tokenFetch, tokensFrom } from "./requests.ts";

/** Member in which an ID token passes the library, which would check it as one of OpenID Connect. */
const SET_ASIDE = "set_aside_id_token";

/** Creates the client of a provider with OAuth 2 alone: its API says who the user is. */
export function createPlainClient(config: OAuthProvider, row: PlainRow, now: () => number): ProviderClient {
  const offline = offlineOf(config, row);
  const secret = config.clientSecret ?? "";
  const { hasPkce = true, clientIdName, separator = " ", passedOn = [] } = row;
  const authentication = row.secretIn === "header" ? ClientSecretBasic(secret) : secretInForm(secret, clientIdName);
  const configurationFor = (tokenEndpoint: string): Configuration => {
    const metadata = {
      issuer: new URL(row.authorize).origin,
      authorization_endpoint: row.authorize,
      token_endpoint: tokenEndpoint,
    };
    const made = new Configuration(metadata, config.clientId, undefined, authentication);
    made.timeout = PROVIDER_TIMEOUT_SECONDS;
    made[customFetch] = tokenFetch(() => tokenEndpoint, SET_ASIDE);
    if (LOOPBACK.has(new URL(tokenEndpoint).hostname)) allowInsecureRequests(made);
    return made;
  };
  const configuration = configurationFor(row.token);

  const ask = async (accessToken: string, { url, method = "GET", headers, form }: ProfileRequest): Promise<unknown> => {
    const all = new Headers({ accept: "application/json", "user-agent": "platform", ...headers });
    const body = form === undefined ? null : new URLSearchParams(form);
    const response = await fetchProtectedResource(configuration, accessToken, new URL(url), method, body, all);
    if (!response.ok) throw new Error(`${new URL(url).host} answered ${response.status}`);
    return response.json();
  };

  return {
    async authorizationUrl({ redirectUri, state, verifier }) {
      const scopes = [...new Set([...(config.scopes ?? row.scopes), ...offline.scopes])];
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        state,
        response_type: "code",
        ...(scopes.length > 0 ? { scope: scopes.join(separator) } : {}),
        ...(hasPkce ? await challengeOf(verifier) : {}),
        ...row.parameters,
        ...offline.parameters,
      });
      if (clientIdName !== undefined) {
        url.searchParams.delete("client_id");
        url.searchParams.set(clientIdName, config.clientId);
      }
      return url;
    },
    async profile({ callback, state, verifier }) {
      const checks = { expectedState: state, ...(hasPkce ? { pkceCodeVerifier: verifier } : {}) };
      const further: Record<string, string> = {};
      for (const name of passedOn) further[name] = callback.searchParams.get(name) ?? "";
      const tokens = await authorizationCodeGrant(configuration, callback, checks, further);
      const { access_token: accessToken, [SET_ASIDE]: idToken = null } = tokens;
      const granted = { accessToken, idToken: typeof idToken === "string" ? idToken : null, clientId: config.clientId };
      const answers: unknown[] = [];
      for (const request of row.requests(granted)) answers.push(await ask(accessToken, request));
      const profile = profileOf(row.read(...answers));
      if (config.keepTokens !== true) return profile;
      const kept = row.refreshWith?.map((name) => [name, callback.searchParams.get(name) ?? ""] as const);
      const again = kept === undefined ? {} : { further: Object.fromEntries(kept) };
      return { ...profile, tokens: { ...tokensFrom(tokens, now), ...again } };
    },
    tokenProfile: null,
    refresh: (tokens) =>
      refreshed(row.refresh === undefined ? configuration : configurationFor(row.refresh), tokens, now),
  };
}
