import {
  // biome-ignore lint/suspicious/noDeprecatedImports: marked so to stand out; for issuers on loopback alone
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  type CustomFetchOptions,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchProtectedResource,
  fetchUserInfo,
  type ServerMetadata,
} from "openid-client";
import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { SECOND_MS } from "../../../../kernel/time/duration.ts";
import { KNOWN_PROVIDERS, type KnownProvider } from "../../../config/sections/oauth-providers.ts";
import { normalizeEmail } from "../../../config/shapes/user-fields.ts";
import type { OAuthProvider } from "../../../config/types.ts";
import { outgoingFetch } from "../../../http/outgoing/call.ts";
import {
  PROVIDER_ANSWER_MAX_BYTES,
  PROVIDER_METADATA_TTL_MS,
  PROVIDER_SUBJECT_MAX_BYTES,
  PROVIDER_TIMEOUT_SECONDS,
} from "../limits.ts";

/** A user as a provider describes them. */
export interface Profile {
  subject: string;
  /** Trimmed and lower-cased. */
  email: string | null;
  /** Whether the provider says that the email is the user's. */
  emailVerified: boolean;
  name: string | null;
  picture: string | null;
}

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
  /** Checks state, issuer, nonce, PKCE and the ID token's signature on the way. */
  profile(exchange: Exchange): Promise<Profile>;
}

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** Providers with OAuth 2 but without OpenID Connect: their addresses, and how their answers are read. */
export interface PlainProvider {
  metadata: ServerMetadata;
  scopes: readonly string[];
  resources: readonly string[];
  /** `answers` in the order of `resources`. null: not understood. */
  read(answers: readonly unknown[]): Profile | null;
}

/** A provider with an issuer: OpenID Connect. */
const KNOWN: Readonly<Record<KnownProvider, string | PlainProvider>> = {
  google: "https://accounts.google.com",
  gitlab: "https://gitlab.com",
  github: {
    metadata: {
      issuer: "https://github.com",
      authorization_endpoint: "https://github.com/login/oauth/authorize",
      token_endpoint: "https://github.com/login/oauth/access_token",
    },
    scopes: ["read:user", "user:email"],
    resources: ["https://api.github.com/user", "https://api.github.com/user/emails"],
    read: readGithub,
  },
  discord: {
    metadata: {
      issuer: "https://discord.com",
      authorization_endpoint: "https://discord.com/oauth2/authorize",
      token_endpoint: "https://discord.com/api/oauth2/token",
    },
    scopes: ["identify", "email"],
    resources: ["https://discord.com/api/users/@me"],
    read: readDiscord,
  },
};

export function createProviderClient(name: string, config: OAuthProvider, now: () => number): ProviderClient {
  const known = KNOWN_PROVIDERS.find((one) => one === name);
  const provider = config.issuer ?? (known === undefined ? undefined : KNOWN[known]);
  if (provider === undefined) throw new Error(`the check of the config let "${name}" pass without an issuer`);
  return typeof provider === "string" ? createOidcClient(config, provider, now) : createPlainClient(config, provider);
}

/** Sends a request of the library, which gives the same time to each, in a signal. */
function providerFetch(url: string, { method, headers, body, signal }: CustomFetchOptions): Promise<Response> {
  const timeout = signal ?? AbortSignal.timeout(PROVIDER_TIMEOUT_SECONDS * SECOND_MS);
  return outgoingFetch(url, { method, headers, body, signal: timeout, maxBytes: PROVIDER_ANSWER_MAX_BYTES });
}

const scopeOf = (config: OAuthProvider, fallback: readonly string[]) => (config.scopes ?? fallback).join(" ");

function createOidcClient(config: OAuthProvider, issuer: string, now: () => number): ProviderClient {
  const server = new URL(issuer);
  // Plain http is for issuers on this machine only: elsewhere a network attacker could impersonate any user.
  const isLoopback = server.protocol === "http:" && LOOPBACK.has(server.hostname);
  let known: { configuration: Configuration; readAt: number } | null = null;

  // Sign-ins that begin together share one reading.
  let reading: Promise<Configuration> | null = null;
  const configure = async (): Promise<Configuration> => {
    // Also anew after the clock was set back.
    if (known !== null && Math.abs(now() - known.readAt) < PROVIDER_METADATA_TTL_MS) return known.configuration;
    reading ??= read().finally(() => {
      reading = null;
    });
    return reading;
  };

  const read = async (): Promise<Configuration> => {
    const found = await discovery(server, config.clientId, config.clientSecret, undefined, {
      timeout: PROVIDER_TIMEOUT_SECONDS,
      [customFetch]: providerFetch,
      ...(isLoopback ? { execute: [allowInsecureRequests] } : {}),
    });
    const methods = found.serverMetadata().token_endpoint_auth_methods_supported;
    // Basic is the default of OpenID Connect.
    const takesBasic = methods === undefined || methods.includes("client_secret_basic");
    const secret = config.clientSecret;
    const authentication = takesBasic ? ClientSecretBasic(secret) : ClientSecretPost(secret);
    const configuration = new Configuration(found.serverMetadata(), config.clientId, secret, authentication);
    configuration.timeout = PROVIDER_TIMEOUT_SECONDS;
    configuration[customFetch] = providerFetch;
    if (isLoopback) allowInsecureRequests(configuration);
    // The ID token's signature is checked too, not only the connection that it came through.
    enableNonRepudiationChecks(configuration);
    known = { configuration, readAt: now() };
    return configuration;
  };

  return {
    async authorizationUrl({ redirectUri, state, nonce, verifier }) {
      return buildAuthorizationUrl(await configure(), {
        redirect_uri: redirectUri,
        scope: scopeOf(config, ["openid", "email", "profile"]),
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
    },
    async profile({ callback, state, nonce, verifier }) {
      const configuration = await configure();
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
      const tokens = await authorizationCodeGrant(configuration, callback, checks);
      const claims = tokens.claims();
      if (claims === undefined) throw new Error("the provider gave no ID token");
      const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined;
      if (claims["email"] !== undefined || !hasUserInfo) return readOidc(claims.sub, claims);
      return readOidc(claims.sub, await fetchUserInfo(configuration, tokens.access_token, claims.sub));
    },
  };
}

export function createPlainClient(config: OAuthProvider, plain: PlainProvider): ProviderClient {
  const secret = config.clientSecret;
  const configuration = new Configuration(plain.metadata, config.clientId, secret, ClientSecretPost(secret));
  configuration.timeout = PROVIDER_TIMEOUT_SECONDS;
  configuration[customFetch] = providerFetch;
  if (LOOPBACK.has(new URL(plain.metadata.issuer).hostname)) allowInsecureRequests(configuration);
  return {
    async authorizationUrl({ redirectUri, state, verifier }) {
      return buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: scopeOf(config, plain.scopes),
        state,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
    },
    async profile({ callback, state, verifier }) {
      const checks = { expectedState: state, pkceCodeVerifier: verifier };
      const tokens = await authorizationCodeGrant(configuration, callback, checks);
      const answers: unknown[] = [];
      for (const resource of plain.resources) {
        const headers = new Headers({ accept: "application/json", "user-agent": "platform" });
        const url = new URL(resource);
        const response = await fetchProtectedResource(configuration, tokens.access_token, url, "GET", null, headers);
        if (!response.ok) throw new Error(`${url.host} answered ${response.status}`);
        answers.push(await response.json());
      }
      const profile = plain.read(answers);
      if (profile === null) throw new Error(`${plain.metadata.issuer} gave a profile that is not understood`);
      return profile;
    },
  };
}

const textOrNull = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);

/** Whether a provider can tell its users apart by this: an empty one would make all of them one user. */
const isSubject = (subject: string): boolean =>
  subject.trim() !== "" && Buffer.byteLength(subject) <= PROVIDER_SUBJECT_MAX_BYTES;

function readOidc(subject: string, claims: Record<string, unknown>): Profile {
  if (!isSubject(subject)) throw new Error("the provider gave a subject that is empty or too long");
  const email = textOrNull(claims["email"]);
  return {
    subject,
    email: email === null ? null : normalizeEmail(email),
    // Some providers write it as a string.
    emailVerified: claims["email_verified"] === true || claims["email_verified"] === "true",
    name: textOrNull(claims["name"]),
    picture: textOrNull(claims["picture"]),
  };
}

export function readGithub([user, emails]: readonly unknown[]): Profile | null {
  if (!isJsonObject(user) || !Number.isSafeInteger(user["id"]) || Number(user["id"]) <= 0) return null;
  const all: JsonObject[] = Array.isArray(emails) ? emails.filter(isJsonObject) : [];
  const primary = all.find((entry) => entry["primary"] === true && entry["verified"] === true);
  const email = textOrNull(primary?.["email"]);
  return {
    subject: String(user["id"]),
    email: email === null ? null : normalizeEmail(email),
    emailVerified: email !== null,
    name: textOrNull(user["name"]) ?? textOrNull(user["login"]),
    picture: textOrNull(user["avatar_url"]),
  };
}

export function readDiscord([user]: readonly unknown[]): Profile | null {
  if (!isJsonObject(user) || typeof user["id"] !== "string" || !isSubject(user["id"])) return null;
  const email = textOrNull(user["email"]);
  return {
    subject: user["id"],
    email: email === null ? null : normalizeEmail(email),
    emailVerified: user["verified"] === true,
    name: textOrNull(user["global_name"]) ?? textOrNull(user["username"]),
    picture: null,
  };
}
