import { KNOWN_PROVIDERS } from "../../../config/sections/oauth-providers.ts";
import type { OAuthProvider } from "../../../config/types.ts";
import { KNOWN, type OidcRow, type PlainRow } from "./known.ts";
import { createOidcClient } from "./oidc-client.ts";
import { createPlainClient } from "./plain-client.ts";
import type { ProviderClient } from "./requests.ts";

export function createProviderClient(name: string, config: OAuthProvider, now: () => number): ProviderClient {
  if (config.issuer !== undefined) return createOidcClient(config, ownIssuer(config.issuer), now);
  if (config.authorizationUrl !== undefined) return createPlainClient(config, ownAddresses(config), now);
  const known = KNOWN_PROVIDERS.find((one) => one === name);
  if (known === undefined) throw new Error(`the check of the config let "${name}" pass without an issuer`);
  const row = KNOWN[known];
  return "oidc" in row ? createOidcClient(config, row.oidc, now) : createPlainClient(config, row.plain, now);
}

const ownIssuer = (issuer: string): OidcRow => ({ issuer, scopes: ["openid", "email", "profile"] });

function ownAddresses(config: OAuthProvider): PlainRow {
  const { authorizationUrl, tokenUrl, userInfoUrl, profile } = config;
  if (authorizationUrl === undefined || tokenUrl === undefined || userInfoUrl === undefined || profile === undefined) {
    throw new Error("the check of the config let a provider pass without all of its addresses");
  }
  return {
    authorize: authorizationUrl,
    token: tokenUrl,
    scopes: [],
    requests: () => [{ url: userInfoUrl }],
    read(raw) {
      const { id, email, emailVerified, name, avatarUrl } = profile(raw);
      return { id, email, emailVerified: emailVerified === true, name, picture: avatarUrl };
    },
  };
}
