import { createRemoteJWKSet, importPKCS8, type JWTPayload, customFetch as joseFetch, jwtVerify, SignJWT } from "jose";
import {
  // biome-ignore lint/suspicious/noDeprecatedImports: marked so to stand out; for issuers on loopback alone
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  type Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
} from "openid-client";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { LOOPBACK } from "../../../config/sections/auth-issuers.ts";
import type { OAuthProvider } from "../../../config/types.ts";
import { APPLE_SECRET_TTL_SECONDS, PROVIDER_METADATA_TTL_MS, PROVIDER_TIMEOUT_SECONDS } from "../limits.ts";
import { type Offline, type OidcRow, offlineOf } from "./known.ts";
import { isSet, type Profile, profileOf } from "./profile.ts";
import { providerFetch } from "./provider-fetch.ts";
import {
  type ProviderClient,
  refreshed,
  secretAsAsked,
  secretInForm,
  type TokenProfile,
  tokenFetch,
  tokensFrom,
} from "./requests.ts";

/** The scope of OpenID Connect that asks for a refresh token. */
const OFFLINE: Offline = { scopes: ["offline_access"] };
/** Algorithms with a public key: one that the client's secret signs could be made by everybody who has an app. */
const SIGNED_BY_KEY = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

export function createOidcClient(config: OAuthProvider, row: OidcRow, now: () => number): ProviderClient {
  const server = new URL(row.issuer.replace("{tenant}", config.tenant ?? "common"));
  const { hasNonce = true, hasPkce = true, isVerified = isVerifiedByClaim } = row;
  const offline = offlineOf(config, row, OFFLINE);
  const configure = configurations(config, server, now);

  const profileFrom = (subject: string, claims: Record<string, unknown>): Profile =>
    profileOf({
      id: subject,
      email: claims["email"],
      emailVerified: isVerified(claims),
      name: claims["name"] ?? claims["preferred_username"],
      picture: claims["picture"],
    });

  const keysAt = rememberedKeys();

  return {
    async authorizationUrl({ redirectUri, state, nonce, verifier }) {
      const configuration = await configure();
      return buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: [...new Set([...(config.scopes ?? row.scopes), ...offline.scopes])].join(" "),
        state,
        ...(hasNonce ? { nonce } : {}),
        ...(hasPkce ? await challengeOf(verifier) : {}),
        ...row.parameters,
        ...offline.parameters,
      });
    },
    async profile({ callback, state, nonce, verifier }) {
      const configuration = await configure();
      const tokens = await authorizationCodeGrant(configuration, callback, {
        expectedState: state,
        idTokenExpected: true,
        ...(hasNonce ? { expectedNonce: nonce } : {}),
        ...(hasPkce ? { pkceCodeVerifier: verifier } : {}),
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error("the provider gave no ID token");
      const kept = config.keepTokens === true ? { tokens: tokensFrom(tokens, now) } : {};
      const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined;
      if (claims["email"] !== undefined || !hasUserInfo) return { ...profileFrom(claims.sub, claims), ...kept };
      const described = await fetchUserInfo(configuration, tokens.access_token, claims.sub);
      return { ...profileFrom(claims.sub, described), ...kept };
    },
    refresh: async (tokens) => refreshed(await configure(), tokens, now),
    async tokenProfile(idToken): Promise<TokenProfile> {
      const { issuer, jwks_uri: keysUrl } = (await configure()).serverMetadata();
      if (keysUrl === undefined) throw new Error("the provider publishes no keys");
      const { payload } = await jwtVerify(idToken, keysAt(keysUrl), {
        audience: [config.clientId, ...(config.clientIds ?? [])],
        algorithms: SIGNED_BY_KEY,
        requiredClaims: ["sub", "iat", "exp"],
        currentDate: new Date(now()),
      });
      if (payload.iss !== issuerFor(issuer, payload)) throw new Error("the ID token is of another issuer");
      const { sub, exp, nonce } = payload;
      if (sub === undefined || exp === undefined) throw new Error("the ID token has no subject or no end");
      return { profile: profileFrom(sub, payload), nonce: typeof nonce === "string" ? nonce : null, expiresAt: exp };
    },
  };
}

/** Returns a function that gives what an issuer says of itself, which is read again after a day. */
function configurations(config: OAuthProvider, server: URL, now: () => number): () => Promise<Configuration> {
  // Plain http is for issuers on this machine only: elsewhere a network attacker could impersonate any user.
  const isLoopback = server.protocol === "http:" && LOOPBACK.has(server.hostname);
  let known: { configuration: Configuration; readAt: number } | null = null;

  // Sign-ins that begin together share one reading.
  let reading: Promise<Configuration> | null = null;
  const configure = (): Promise<Configuration> => {
    // Also anew after the clock was set back.
    if (known !== null && Math.abs(now() - known.readAt) < PROVIDER_METADATA_TTL_MS)
      return Promise.resolve(known.configuration);
    reading ??= read().finally(() => {
      reading = null;
    });
    return reading;
  };

  const read = async (): Promise<Configuration> => {
    let endpoint: string | undefined;
    const configuration = await discovery(server, config.clientId, undefined, secretOf(config, now), {
      timeout: PROVIDER_TIMEOUT_SECONDS,
      [customFetch]: tokenFetch(() => endpoint, null),
      ...(isLoopback ? { execute: [allowInsecureRequests] } : {}),
    });
    endpoint = configuration.serverMetadata().token_endpoint;
    // The ID token's signature is checked too, not only the connection that it came through.
    enableNonRepudiationChecks(configuration);
    known = { configuration, readAt: now() };
    return configuration;
  };
  return configure;
}

type Keys = ReturnType<typeof createRemoteJWKSet>;

/** Returns a function that gives the keys at an address, which are read again when a token has an unknown one. */
function rememberedKeys(): (url: string) => Keys {
  let known: { url: string; keys: Keys } | null = null;
  return (url) => {
    if (known?.url === url) return known.keys;
    const keys = createRemoteJWKSet(new URL(url), {
      timeoutDuration: PROVIDER_TIMEOUT_SECONDS * SECOND_MS,
      [joseFetch]: (address, { method, headers, signal }) =>
        providerFetch(address, {
          method,
          headers: Object.fromEntries(headers),
          body: undefined,
          signal,
          redirect: "manual",
        }),
    });
    known = { url, keys };
    return keys;
  };
}

const isVerifiedByClaim = (claims: Record<string, unknown>): boolean => isSet(claims["email_verified"]);

/** Microsoft's issuer for all tenants has a place for the id of each. */
const issuerFor = (issuer: string, { ["tid"]: tenant }: JWTPayload): string =>
  typeof tenant === "string" ? issuer.replace("{tenantid}", tenant) : issuer;

export const challengeOf = async (verifier: string) => ({
  code_challenge: await calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
});

/** Returns how the client proves itself: by its secret, or at Apple by a token that its key signs. */
function secretOf(config: OAuthProvider, now: () => number): ClientAuth {
  const { clientId, clientSecret, teamId, keyId, privateKey } = config;
  if (clientSecret !== undefined) return secretAsAsked(clientSecret);
  if (teamId === undefined || keyId === undefined || privateKey === undefined) {
    throw new Error("the check of the config let a provider pass without a secret");
  }
  return async (server, client, body, headers) => {
    const issuedAt = Math.floor(now() / SECOND_MS);
    const token = new SignJWT().setProtectedHeader({ alg: "ES256", kid: keyId }).setIssuer(teamId).setSubject(clientId);
    token
      .setAudience(server.issuer)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + APPLE_SECRET_TTL_SECONDS);
    const secret = await token.sign(await importPKCS8(privateKey, "ES256"));
    return secretInForm(secret)(server, client, body, headers);
  };
}
