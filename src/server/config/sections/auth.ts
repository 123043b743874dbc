import { type Static, Type } from "typebox";
import type { JsonObject } from "../../../kernel/json/json.ts";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { AppAccess } from "../app/index.ts";
import type { User } from "../app/users.ts";
import type { RuleContext } from "../context.ts";
import { PASSWORD_LENGTH_MAX, PORT_MAX, ROTATE_DAYS_MAX } from "../limits.ts";
import { describe, isPlainObject } from "../shape/report.ts";
import {
  func,
  list,
  named,
  refined,
  related,
  rule,
  seconds,
  secretText,
  text,
  textWith,
  url,
  whole,
} from "../shape/schema.ts";
import { languageOf } from "../shapes/user-fields.ts";
import { Issuers } from "./auth-issuers.ts";
import { Pages } from "./auth-pages.ts";
import { Phones, type PhonesConfig } from "./auth-phones.ts";
import { KNOWN_PROVIDERS } from "./oauth-providers.ts";
import { type UsersConfig, UsersShape } from "./users-table.ts";

const MailContent = Type.Object({
  subject: text(),
  /**
   * The plain text, in which `{{link}}`, `{{code}}`, `{{email}}`, `{{appName}}`, `{{name}}`, `{{inviter}}` and `{{data.…}}` are
   * replaced.
   */
  text: text(),
  /** The HTML; made of `text` by default. */
  html: Type.Optional(text()),
  /** The label of the button, which the HTML has in place of a line with `{{link}}` alone. Absent: the link itself. */
  button: Type.Optional(text()),
});
/** The texts of a mail in one language. */
export interface MailContent extends Static<typeof MailContent> {}

const Template = Type.Object({
  ...MailContent.properties,
  /** The texts by language (BCP 47): `de` is also for a user of `de-AT`. */
  languages: Type.Optional(
    related(named(Type.Unsafe<MailContent>(MailContent)), (declared, report) => {
      for (const tag of Object.keys(declared)) {
        if (languageOf(tag) !== tag)
          report.at(tag).say(`must be a language tag such as de or de-AT, got ${describe(tag)}`);
      }
    }),
  ),
});
export interface MailTemplate extends Static<typeof Template> {}
const template = () => Type.Optional(Type.Unsafe<MailTemplate>(Template));

/** Profile of a user at a provider, as `profile` returns it. */
export interface OAuthProfile {
  /** The user's id at the provider, never empty. */
  id: string;
  email?: string | null;
  /** Whether the provider has verified that the address is the user's; false by default. */
  emailVerified?: boolean;
  name?: string | null;
  avatarUrl?: string | null;
}

const Provider = Type.Object({
  clientId: text(),
  /** Required, except for `apple`, which has a key instead. */
  clientSecret: Type.Optional(secretText()),
  /** An OpenID Connect issuer. Known providers need none. */
  issuer: Type.Optional(url("https", "http")),
  scopes: Type.Optional(list(text())),
  /** `microsoft`: who may sign in: `common` by default, `organizations`, `consumers`, or the id of one tenant. */
  tenant: Type.Optional(textWith((value) => (/^[\w.-]+$/.test(value) ? null : "must be a tenant's name or id"))),
  /** `apple`: the team that the key belongs to. */
  teamId: Type.Optional(text()),
  /** `apple`: the key's id. */
  keyId: Type.Optional(text()),
  /** `apple`: the key, the text of the .p8 file. */
  privateKey: Type.Optional(secretText()),
  /** Further client ids whose ID tokens are taken, such as those of apps on phones. */
  clientIds: Type.Optional(list(text())),
  /** Whether the provider's tokens are kept for `app.users.providerToken`, and what refreshes them is asked for; false by default. */
  keepTokens: Type.Optional(Type.Boolean()),
  /** A provider with OAuth 2 alone: where the browser is sent to. */
  authorizationUrl: Type.Optional(url("https", "http")),
  /** The token endpoint of the provider. */
  tokenUrl: Type.Optional(url("https", "http")),
  /** The endpoint of the provider that answers who the user is, as JSON. */
  userInfoUrl: Type.Optional(url("https", "http")),
  /** Reads the answer of `userInfoUrl`. Without an `id`, or if it throws, the sign-in is refused. */
  profile: Type.Optional(func<(raw: unknown) => OAuthProfile>()),
});
export interface OAuthProvider extends Static<typeof Provider> {}

const OWN_ADDRESSES = ["authorizationUrl", "tokenUrl", "userInfoUrl", "profile"] as const;
const APPLE_KEY = ["teamId", "keyId", "privateKey"] as const;

const providers = related(named(Type.Unsafe<OAuthProvider>(Provider)), (declared, report) => {
  for (const [name, provider] of Object.entries(declared)) {
    if (!isPlainObject(provider)) continue;
    const at = report.at(name);
    const isMissing = (member: string) => provider[member] === undefined;
    const require = (members: readonly string[], why: string): void => {
      for (const member of members.filter(isMissing)) at.at(member).say(`is required ${why}`);
    };
    const isKnown = KNOWN_PROVIDERS.some((known) => known === name);
    const own = OWN_ADDRESSES.filter((member) => !isMissing(member));
    if (!isMissing("issuer")) {
      for (const member of own) at.at(member).say("has no use beside issuer: remove one of them");
    } else if (own.length > 0) require(OWN_ADDRESSES, "for a provider with addresses of its own");
    else if (!isKnown) {
      at.at("issuer").say(
        `is required, or ${OWN_ADDRESSES.join(", ")}: only ${KNOWN_PROVIDERS.join(", ")} are built in`,
      );
    }
    const isApple = name === "apple" && isMissing("issuer") && own.length === 0;
    if (isApple) require(APPLE_KEY, "for apple");
    else require(["clientSecret"], "except for apple");
    const ofOthers = [...(isApple ? ["clientSecret"] : APPLE_KEY), ...(name === "microsoft" ? [] : ["tenant"])];
    for (const member of ofOthers.filter((one) => !isMissing(one))) at.at(member).say("has no use for this provider");
  }
});

const redirectUrl = textWith((value) => {
  const parsed = URL.parse(value.replace(/\*$/, ""));
  if (parsed === null) return `must be an absolute URL, which may end in * for any rest, got "${value}"`;
  if (parsed.host.includes("*")) return "must not have a * in its host: name each host";
  // Without a path the * could extend the host: https://app.example* would match https://app.example.evil.
  const isOpenHost = value.endsWith("*") && parsed.host !== "" && !/^[a-z][a-z0-9+.-]*:\/\/[^/?#]+[/?#]/i.test(value);
  return isOpenHost ? "must have a / between its host and the *, which would match other hosts" : null;
});

/** The origin of a page, as browsers send it. It is compared whole: with a trailing slash no passkey would work. */
const pageOrigin = refined(url("https", "http"), (value, report) => {
  if (new URL(value).origin === value) return;
  report.say(`must be an origin such as https://app.example.com, got ${describe(value)}`);
});

const Mail = Type.Object({
  smtp: Type.Optional(
    Type.Object({
      host: text(),
      port: whole({ min: 1, max: PORT_MAX }),
      user: Type.Optional(text()),
      pass: Type.Optional(secretText()),
      secure: Type.Optional(Type.Boolean()),
    }),
  ),
  from: Type.Optional(text()),
  templates: Type.Optional(
    Type.Object({
      verification: template(),
      passwordReset: template(),
      magicLink: template(),
      emailOtp: template(),
      emailChange: template(),
      emailChanged: template(),
      accountMerged: template(),
      invite: template(),
    }),
  ),
});

const Captcha = Type.Object({
  provider: Type.Enum(["turnstile", "hcaptcha"]),
  /** The public key, which `GET /api/config` shows to clients. */
  siteKey: text(),
  secretKey: secretText(),
  /** The endpoint that verifies tokens; the provider's own by default. For tests and proxies. */
  endpoint: Type.Optional(url("https", "http")),
});
export interface CaptchaConfig extends Static<typeof Captcha> {}

/** An invitation that its user has accepted. */
export interface AcceptedInvitation {
  /** The role that the invitation has named; null without one. An existing account keeps its role. */
  role: string | null;
  /** The `data` that `invite` was given; empty without it. */
  data: JsonObject;
  /** The id of the user who invites; null where none was named. */
  invitedBy: string | null;
}

const Hooks = Type.Object({
  /** Runs after every invitation is accepted, as a trigger does: it cannot be lost, and is retried when it throws. */
  afterAccept: Type.Optional(func<(user: User, invitation: AcceptedInvitation, app: AppAccess) => unknown>()),
  /** Runs after every account is created, as a trigger does: it cannot be lost, and is retried when it throws. */
  afterSignup: Type.Optional(func<(user: User, app: AppAccess) => unknown>()),
  /** Runs after every account is deleted, as a trigger does: it cannot be lost, and is retried when it throws. */
  afterDelete: Type.Optional(func<(user: User, app: AppAccess) => unknown>()),
});
export interface AuthHooks extends Static<typeof Hooks> {}

const Tokens = Type.Object({
  /** The claim `iss`; `server.publicUrl` by default. */
  issuer: Type.Optional(url("https", "http")),
  /** The claim `aud`: who is to accept the tokens. */
  audience: Type.Union([text(), list(text())]),
  /** Returns further claims, when a token is issued. If it throws or takes more than 5 s, no tokens are issued: 500. */
  claims: Type.Optional(func<(user: User) => MaybePromise<Readonly<Record<string, unknown>>>>()),
  /** Days after which a new key signs; 90 by default. */
  rotateDays: Type.Optional(whole({ min: 1, max: ROTATE_DAYS_MAX, unit: "days" })),
});
export interface TokensConfig extends Static<typeof Tokens> {}

/** The facts about a visitor who would become a user. */
export interface SignUpFacts {
  method: "password" | "magicLink" | "emailOtp" | "phone" | "oauth" | "issuer" | "anonymous";
  /** The name of the OAuth provider, or of the issuer. */
  provider?: string;
  /** The email in lower case; null for anonymous visitors, and where a provider sends none. */
  email: string | null;
  /** The verified number (E.164) of a sign-up by phone. */
  phone?: string;
  /** Whether the address is verified at sign-up, by the mail or by the provider. */
  emailVerified: boolean;
  displayName: string | null;
  /** The metadata as the visitor sends it. */
  metadata: JsonObject;
}
type SignUpRule = (facts: SignUpFacts, context: RuleContext) => MaybePromise<boolean>;

export const AuthSection = Type.Object({
  /** The product's name in mails; the `rpName` of passkeys, else the host of `server.publicUrl`, by default. */
  appName: Type.Optional(text()),
  /** Whether visitors may sign up; true by default. Administrators can always add and invite users. */
  signup: Type.Optional(rule<SignUpRule>()),
  /** true: no tokens before the address of an account is verified. false by default. */
  requireVerifiedEmail: Type.Optional(Type.Boolean()),
  emailPassword: Type.Optional(Type.Boolean()),
  anonymous: Type.Optional(Type.Boolean()),
  magicLink: Type.Optional(Type.Boolean()),
  emailOtp: Type.Optional(Type.Boolean()),
  /** Access tokens that others verify: ES256, with public keys at `/.well-known/jwks.json`. Absent: only this server verifies them. */
  tokens: Type.Optional(Type.Unsafe<TokensConfig>(Tokens)),
  mfa: Type.Optional(
    Type.Object({
      /** A second factor of an authenticator app; false by default. */
      totp: Type.Optional(Type.Boolean()),
      /** The phone of `auth.phones` as a second factor; false by default. */
      phone: Type.Optional(Type.Boolean()),
    }),
  ),
  session: Type.Optional(
    Type.Object({
      /** Seconds; 900 by default. */
      accessTokenTtl: Type.Optional(seconds()),
      /** Seconds; 28 days by default. */
      refreshTokenTtl: Type.Optional(seconds()),
      /** The maximum number of sessions; 0 by default: no limit. Beyond it the oldest session ends. */
      maxActive: Type.Optional(whole({ min: 0 })),
    }),
  ),
  password: Type.Optional(
    Type.Object({
      /** Characters; 8 by default. */
      minLength: Type.Optional(whole({ min: 1, max: PASSWORD_LENGTH_MAX, unit: "characters" })),
    }),
  ),
  oauth: Type.Optional(providers),
  passkeys: Type.Optional(
    Type.Object({ rpName: text(), rpId: text(), origin: Type.Union([pageOrigin, list(pageOrigin)]) }),
  ),
  /** Pages for signing in, signing up and the account, below a path of this server. None by default. */
  pages: Type.Optional(Pages),
  /** The allowed targets of links in mail and of OAuth. A trailing `*` matches any rest. */
  redirectUrls: Type.Optional(list(redirectUrl, { minItems: 0 })),
  /** The mail settings. Absent: messages are written to `<data>/outbox` and logged. */
  mail: Type.Optional(Mail),
  hooks: Type.Optional(Type.Unsafe<AuthHooks>(Hooks)),
  /** Phone numbers of accounts, and codes sent to them. None by default. */
  phones: Type.Optional(Type.Unsafe<PhonesConfig>(Phones)),
  /** Issuers whose tokens are taken as access tokens: Auth0, Clerk, Firebase, Supabase. None by default. */
  issuers: Type.Optional(Issuers),
  /** A table with one record for each account, in a namespace of `databases`. None by default. */
  users: Type.Optional(Type.Unsafe<UsersConfig>(UsersShape)),
  /** The captcha. Absent: none. With it, sign-up, anonymous sign-in and requests for mail need a `captchaToken`. */
  captcha: Type.Optional(Type.Unsafe<CaptchaConfig>(Captcha)),
});
export interface AuthConfig extends Static<typeof AuthSection> {}
