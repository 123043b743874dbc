import { type Static, Type } from "typebox";
import { isPlainObject, type PlainObject, type Report } from "../shape/report.ts";
import { func, list, text, textWith, url } from "../shape/schema.ts";

/** Hosts to which plain HTTP is as safe as HTTPS. */
export const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** A user as `profile` of an issuer reads them from the claims of a token. The id is the claim `sub`. */
export interface IssuedProfile {
  email?: string | null;
  /** Whether the issuer has verified that the address is the user's; false by default. */
  emailVerified?: boolean;
  name?: string | null;
  avatarUrl?: string | null;
}

const Issuer = Type.Object({
  /** The name with which identities and sign-up facts show it; never changed, since accounts belong to it. */
  name: textWith((value) => (/^[a-z][a-z0-9-]{0,31}$/.test(value) ? null : "must be a name such as auth0")),
  /** The claim `iss`, exactly. */
  issuer: url("https", "http"),
  /** The claim `aud`: one of these. */
  audience: Type.Optional(Type.Union([text(), list(text())])),
  /** The claim `azp`: one of these. */
  authorizedParties: Type.Optional(list(text())),
  /** The address of the keys; the one that `.well-known/openid-configuration` of the issuer names by default. */
  jwksUrl: Type.Optional(url("https", "http")),
  /** Whether a verified address joins the account here that has it; false by default. */
  link: Type.Optional(Type.Boolean()),
  /** Reads address and name from the claims of a token; by default `email`, `email_verified`, `name` and `picture`. */
  profile: Type.Optional(func<(claims: Readonly<Record<string, unknown>>) => IssuedProfile>()),
});
export interface IssuerConfig extends Static<typeof Issuer> {}

export const Issuers = list(Type.Unsafe<IssuerConfig>(Issuer));

const isOpen = (address: unknown): boolean => {
  const parsed = typeof address === "string" ? URL.parse(address) : null;
  return parsed?.protocol === "http:" && !LOOPBACK.has(parsed.hostname);
};

/** Checks what issuers say of one another and of this server's own tokens. Broken parts are skipped. */
export function checkIssuers({ auth }: PlainObject, report: Report): void {
  const issuers = isPlainObject(auth) ? auth["issuers"] : undefined;
  if (!isPlainObject(auth) || !Array.isArray(issuers)) return;
  const own = isPlainObject(auth["tokens"]) ? auth["tokens"]["issuer"] : undefined;
  const seen = new Set<unknown>(own === undefined ? [] : [own]);
  const names = new Set<unknown>();
  for (const [index, entry] of issuers.entries()) {
    if (!isPlainObject(entry)) continue;
    const at = report.at("auth").at("issuers").at(String(index));
    const { audience, authorizedParties, issuer, jwksUrl, name } = entry;
    if (audience === undefined && authorizedParties === undefined)
      at.say("needs audience or authorizedParties: otherwise tokens for every application would be taken");
    // On the way somebody could replace the keys.
    if (isOpen(issuer)) at.at("issuer").say("must begin with https:");
    if (isOpen(jwksUrl)) at.at("jwksUrl").say("must begin with https:");
    if (seen.has(issuer)) at.at("issuer").say("is there already");
    if (names.has(name)) at.at("name").say("is there already");
    seen.add(issuer);
    names.add(name);
  }
}
