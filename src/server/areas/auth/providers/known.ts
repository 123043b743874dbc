import type { KnownProvider } from "../../../config/sections/oauth-providers.ts";
import { isSet, joinedName, memberOf, objectsOf, type RawProfile } from "./profile.ts";

// The table of providers: addresses, scopes, and how each describes a user. An address counts as verified only where the provider
// says so of this very address.

/** Scopes and parameters that ask for a refresh token. */
export interface Offline {
  scopes?: readonly string[];
  parameters?: Readonly<Record<string, string>>;
}

/** Returns what asks for a refresh token, where the config keeps tokens; nothing otherwise. */
export const offlineOf = (
  { keepTokens }: { keepTokens?: boolean },
  { offline }: { offline?: Offline },
  usual: Offline = {},
): Required<Offline> => ({ scopes: [], parameters: {}, ...(keepTokens === true ? (offline ?? usual) : {}) });

/** A provider with OpenID Connect: its ID token says who the user is. */
export interface OidcRow {
  /** The issuer; `{tenant}` is replaced by the tenant of the config. */
  issuer: string;
  scopes: readonly string[];
  /** Further parameters of the address that the browser is sent to. */
  parameters?: Readonly<Record<string, string>>;
  /** Asks for a refresh token; the scope `offline_access` by default. */
  offline?: Offline;
  /** Whether the provider puts the nonce into its ID tokens; true by default. Without it, PKCE or the client's secret binds the code. */
  hasNonce?: boolean;
  /** Whether the provider takes a PKCE challenge; true by default. */
  hasPkce?: boolean;
  /** Whether the provider has verified the address of the claims; by `email_verified` by default. */
  isVerified?(claims: Record<string, unknown>): boolean;
}

/** Answer of a provider's token endpoint. */
export interface Granted {
  accessToken: string;
  /** The ID token as sent; null where there is none. It is not verified. */
  idToken: string | null;
  clientId: string;
}

/** A request for the user's profile, with the access token in its header. */
export interface ProfileRequest {
  url: string;
  method?: "GET" | "POST";
  headers?: Readonly<Record<string, string>>;
  form?: Readonly<Record<string, string>>;
}

/** A provider with OAuth 2 alone: its API says who the user is. */
export interface PlainRow {
  authorize: string;
  token: string;
  /** Address at which tokens are refreshed; the token endpoint by default. */
  refresh?: string;
  scopes: readonly string[];
  /** Separator of scopes; a space by default. */
  separator?: string;
  parameters?: Readonly<Record<string, string>>;
  /** Asks for a refresh token; nothing by default. */
  offline?: Offline;
  /** Name of the client id in requests; `client_id` by default. */
  clientIdName?: string;
  /** Authentication of the client at the token endpoint; in the form by default. */
  secretIn?: "header" | "form";
  hasPkce?: boolean;
  /** Parameters of the callback that the token endpoint wants as well. */
  passedOn?: readonly string[];
  /** Parameters of the callback that a refresh wants as well. */
  refreshWith?: readonly string[];
  requests(granted: Granted): readonly ProfileRequest[];
  /** Reads the answers, in the order of the requests. */
  read(...answers: readonly unknown[]): RawProfile;
}

const isMicrosoftVerified = (claims: Record<string, unknown>): boolean => isSet(claims["xms_edov"]);
const never = (): boolean => false;
const from =
  (url: string, headers: Readonly<Record<string, string>> = {}) =>
  (): readonly ProfileRequest[] => [{ url, headers }];

const OIDC = {
  google: {
    issuer: "https://accounts.google.com",
    scopes: ["openid", "email", "profile"],
    // A refresh token comes with a consent alone.
    offline: { parameters: { access_type: "offline", prompt: "consent" } },
  },
  // It gives a refresh token to everybody, and refuses the scope that asks for one.
  gitlab: { issuer: "https://gitlab.com", scopes: ["openid", "email", "profile"], offline: {} },
  // With scopes, the answer comes as a form that the user's browser posts.
  apple: {
    issuer: "https://appleid.apple.com",
    scopes: ["openid", "name", "email"],
    parameters: { response_mode: "form_post" },
    offline: {},
  },
  microsoft: {
    issuer: "https://login.microsoftonline.com/{tenant}/v2.0",
    scopes: ["openid", "email", "profile"],
    isVerified: isMicrosoftVerified,
  },
  linkedin: {
    issuer: "https://www.linkedin.com/oauth",
    scopes: ["openid", "email", "profile"],
    hasNonce: false,
    hasPkce: false,
    offline: {},
  },
  slack: { issuer: "https://slack.com", scopes: ["openid", "email", "profile"], hasPkce: false, offline: {} },
  twitch: {
    issuer: "https://id.twitch.tv/oauth2",
    scopes: ["openid", "user:read:email"],
    parameters: {
      claims: JSON.stringify({
        id_token: { email: null, email_verified: null, picture: null, preferred_username: null },
      }),
    },
    hasPkce: false,
    offline: {},
  },
  salesforce: {
    issuer: "https://login.salesforce.com",
    scopes: ["openid", "email", "profile"],
    offline: { scopes: ["refresh_token"] },
    isVerified: never,
  },
} as const satisfies Partial<Record<KnownProvider, OidcRow>>;

const PLAIN = {
  github: {
    authorize: "https://github.com/login/oauth/authorize",
    token: "https://github.com/login/oauth/access_token",
    scopes: ["read:user", "user:email"],
    requests: () => [{ url: "https://api.github.com/user" }, { url: "https://api.github.com/user/emails" }],
    read(user, emails) {
      const primary = objectsOf(emails).find((entry) => entry["primary"] === true && entry["verified"] === true);
      return {
        id: numberOnly(memberOf(user, "id")),
        email: primary?.["email"],
        emailVerified: primary !== undefined,
        name: memberOf(user, "name") ?? memberOf(user, "login"),
        picture: memberOf(user, "avatar_url"),
      };
    },
  },
  discord: {
    authorize: "https://discord.com/oauth2/authorize",
    token: "https://discord.com/api/oauth2/token",
    scopes: ["identify", "email"],
    requests: from("https://discord.com/api/users/@me"),
    read(user) {
      const [id, avatar] = [memberOf(user, "id"), memberOf(user, "avatar")];
      const hasAvatar = typeof id === "string" && typeof avatar === "string";
      return {
        id,
        email: memberOf(user, "email"),
        emailVerified: memberOf(user, "verified") === true,
        name: memberOf(user, "global_name") ?? memberOf(user, "username"),
        picture: hasAvatar ? `https://cdn.discordapp.com/avatars/${id}/${avatar}.png` : null,
      };
    },
  },
  facebook: {
    authorize: "https://www.facebook.com/v23.0/dialog/oauth",
    token: "https://graph.facebook.com/v23.0/oauth/access_token",
    scopes: ["email", "public_profile"],
    separator: ",",
    requests: from("https://graph.facebook.com/v23.0/me?fields=id,name,email,picture.type(large)"),
    read: (user) => ({
      id: memberOf(user, "id"),
      email: memberOf(user, "email"),
      name: memberOf(user, "name"),
      picture: memberOf(user, "picture", "data", "url"),
    }),
  },
  x: {
    authorize: "https://x.com/i/oauth2/authorize",
    token: "https://api.x.com/2/oauth2/token",
    offline: { scopes: ["offline.access"] },
    scopes: ["users.read", "tweet.read", "users.email"],
    secretIn: "header",
    requests: from("https://api.x.com/2/users/me?user.fields=profile_image_url,confirmed_email"),
    read(answer) {
      const email = memberOf(answer, "data", "confirmed_email");
      return {
        id: memberOf(answer, "data", "id"),
        name: memberOf(answer, "data", "name"),
        email,
        emailVerified: typeof email === "string",
        picture: memberOf(answer, "data", "profile_image_url"),
      };
    },
  },
  spotify: {
    authorize: "https://accounts.spotify.com/authorize",
    token: "https://accounts.spotify.com/api/token",
    scopes: ["user-read-email"],
    secretIn: "header",
    requests: from("https://api.spotify.com/v1/me"),
    read: (user) => ({
      id: memberOf(user, "id"),
      email: memberOf(user, "email"),
      name: memberOf(user, "display_name"),
      picture: memberOf(user, "images", 0, "url"),
    }),
  },
  notion: {
    authorize: "https://api.notion.com/v1/oauth/authorize",
    token: "https://api.notion.com/v1/oauth/token",
    scopes: [],
    parameters: { owner: "user" },
    secretIn: "header",
    hasPkce: false,
    requests: from("https://api.notion.com/v1/users/me", { "notion-version": "2022-06-28" }),
    read(answer) {
      const user = memberOf(answer, "bot", "owner", "user");
      return {
        id: memberOf(user, "id"),
        email: memberOf(user, "person", "email"),
        name: memberOf(user, "name"),
        picture: memberOf(user, "avatar_url"),
      };
    },
  },
  kakao: {
    authorize: "https://kauth.kakao.com/oauth/authorize",
    token: "https://kauth.kakao.com/oauth/token",
    scopes: ["account_email", "profile_nickname", "profile_image"],
    separator: ",",
    requests: from("https://kapi.kakao.com/v2/user/me"),
    read(user) {
      const account = memberOf(user, "kakao_account");
      return {
        id: memberOf(user, "id"),
        email: memberOf(account, "email"),
        // An address that has gone to another account is no longer valid for this one.
        emailVerified: memberOf(account, "is_email_verified") === true && memberOf(account, "is_email_valid") === true,
        name: memberOf(account, "profile", "nickname"),
        picture: memberOf(account, "profile", "profile_image_url"),
      };
    },
  },
  line: {
    authorize: "https://access.line.me/oauth2/v2.1/authorize",
    token: "https://api.line.me/oauth2/v2.1/token",
    scopes: ["openid", "profile", "email"],
    // Its ID tokens are signed with the client's secret; this endpoint verifies them.
    requests: ({ idToken, clientId }) => [
      {
        url: "https://api.line.me/oauth2/v2.1/verify",
        method: "POST",
        form: { id_token: idToken ?? "", client_id: clientId },
      },
    ],
    read: (claims) => ({
      id: memberOf(claims, "sub"),
      email: memberOf(claims, "email"),
      name: memberOf(claims, "name"),
      picture: memberOf(claims, "picture"),
    }),
  },
  naver: {
    authorize: "https://nid.naver.com/oauth2.0/authorize",
    token: "https://nid.naver.com/oauth2.0/token",
    scopes: [],
    hasPkce: false,
    passedOn: ["state"],
    requests: from("https://openapi.naver.com/v1/nid/me"),
    read: (answer) => ({
      id: memberOf(answer, "response", "id"),
      email: memberOf(answer, "response", "email"),
      name: memberOf(answer, "response", "nickname") ?? memberOf(answer, "response", "name"),
      picture: memberOf(answer, "response", "profile_image"),
    }),
  },
  bitbucket: {
    authorize: "https://bitbucket.org/site/oauth2/authorize",
    token: "https://bitbucket.org/site/oauth2/access_token",
    scopes: ["account", "email"],
    secretIn: "header",
    requests: () => [
      { url: "https://api.bitbucket.org/2.0/user" },
      { url: "https://api.bitbucket.org/2.0/user/emails" },
    ],
    read(user, emails) {
      const primary = objectsOf(memberOf(emails, "values")).find((entry) => entry["is_primary"] === true);
      return {
        id: memberOf(user, "uuid"),
        email: primary?.["email"],
        name: memberOf(user, "display_name"),
        picture: memberOf(user, "links", "avatar", "href"),
      };
    },
  },
  dropbox: {
    authorize: "https://www.dropbox.com/oauth2/authorize",
    token: "https://api.dropboxapi.com/oauth2/token",
    offline: { parameters: { token_access_type: "offline" } },
    scopes: ["account_info.read"],
    requests: () => [{ url: "https://api.dropboxapi.com/2/users/get_current_account", method: "POST" }],
    read: (user) => ({
      id: memberOf(user, "account_id"),
      email: memberOf(user, "email"),
      name: memberOf(user, "name", "display_name"),
      picture: memberOf(user, "profile_photo_url"),
    }),
  },
  figma: {
    authorize: "https://www.figma.com/oauth",
    token: "https://api.figma.com/v1/oauth/token",
    refresh: "https://api.figma.com/v1/oauth/refresh",
    scopes: ["current_user:read"],
    secretIn: "header",
    requests: from("https://api.figma.com/v1/me"),
    read: (user) => ({
      id: memberOf(user, "id"),
      email: memberOf(user, "email"),
      name: memberOf(user, "handle"),
      picture: memberOf(user, "img_url"),
    }),
  },
  zoom: {
    authorize: "https://zoom.us/oauth/authorize",
    token: "https://zoom.us/oauth/token",
    scopes: ["user:read:user"],
    secretIn: "header",
    requests: from("https://api.zoom.us/v2/users/me"),
    read: (user) => ({
      id: memberOf(user, "id"),
      email: memberOf(user, "email"),
      name: memberOf(user, "display_name") ?? joinedName(memberOf(user, "first_name"), memberOf(user, "last_name")),
      picture: memberOf(user, "pic_url"),
    }),
  },
  reddit: {
    authorize: "https://www.reddit.com/api/v1/authorize",
    token: "https://www.reddit.com/api/v1/access_token",
    offline: { parameters: { duration: "permanent" } },
    scopes: ["identity"],
    secretIn: "header",
    hasPkce: false,
    requests: from("https://oauth.reddit.com/api/v1/me"),
    read: (user) => ({
      id: memberOf(user, "id"),
      name: memberOf(user, "name"),
      picture: memberOf(user, "snoovatar_img"),
    }),
  },
  tiktok: {
    authorize: "https://www.tiktok.com/v2/auth/authorize/",
    token: "https://open.tiktokapis.com/v2/oauth/token/",
    scopes: ["user.info.basic"],
    separator: ",",
    clientIdName: "client_key",
    hasPkce: false,
    requests: from("https://open.tiktokapis.com/v2/user/info/?fields=open_id,display_name,avatar_url"),
    read: (answer) => ({
      id: memberOf(answer, "data", "user", "open_id"),
      name: memberOf(answer, "data", "user", "display_name"),
      picture: memberOf(answer, "data", "user", "avatar_url"),
    }),
  },
  strava: {
    authorize: "https://www.strava.com/oauth/authorize",
    token: "https://www.strava.com/oauth/token",
    scopes: ["read"],
    separator: ",",
    hasPkce: false,
    requests: from("https://www.strava.com/api/v3/athlete"),
    read: (athlete) => ({
      id: memberOf(athlete, "id"),
      name: joinedName(memberOf(athlete, "firstname"), memberOf(athlete, "lastname")),
      picture: memberOf(athlete, "profile"),
    }),
  },
  vk: {
    authorize: "https://id.vk.com/authorize",
    token: "https://id.vk.com/oauth2/auth",
    scopes: ["vkid.personal_info", "email"],
    passedOn: ["device_id", "state"],
    refreshWith: ["device_id", "state"],
    requests: ({ accessToken, clientId }) => [
      {
        url: "https://id.vk.com/oauth2/user_info",
        method: "POST",
        form: { access_token: accessToken, client_id: clientId },
      },
    ],
    read: (answer) => ({
      id: memberOf(answer, "user", "user_id"),
      email: memberOf(answer, "user", "email"),
      name: joinedName(memberOf(answer, "user", "first_name"), memberOf(answer, "user", "last_name")),
      picture: memberOf(answer, "user", "avatar"),
    }),
  },
  yandex: {
    authorize: "https://oauth.yandex.com/authorize",
    token: "https://oauth.yandex.com/token",
    scopes: ["login:email", "login:info", "login:avatar"],
    requests: from("https://login.yandex.ru/info?format=json"),
    read(user) {
      const avatar = memberOf(user, "is_avatar_empty") === false ? memberOf(user, "default_avatar_id") : null;
      return {
        id: memberOf(user, "id"),
        email: memberOf(user, "default_email"),
        name: memberOf(user, "display_name") ?? memberOf(user, "login"),
        picture: typeof avatar === "string" ? `https://avatars.yandex.net/get-yapic/${avatar}/islands-200` : null,
      };
    },
  },
  atlassian: {
    authorize: "https://auth.atlassian.com/authorize",
    token: "https://auth.atlassian.com/oauth/token",
    offline: { scopes: ["offline_access"] },
    scopes: ["read:me"],
    parameters: { audience: "api.atlassian.com", prompt: "consent" },
    hasPkce: false,
    requests: from("https://api.atlassian.com/me"),
    read: (user) => ({
      id: memberOf(user, "account_id"),
      email: memberOf(user, "email"),
      name: memberOf(user, "name"),
      picture: memberOf(user, "picture"),
    }),
  },
  asana: {
    authorize: "https://app.asana.com/-/oauth_authorize",
    token: "https://app.asana.com/-/oauth_token",
    scopes: ["users:read"],
    requests: from("https://app.asana.com/api/1.0/users/me?opt_fields=name,email,photo.image_128x128"),
    read: (answer) => ({
      id: memberOf(answer, "data", "gid"),
      email: memberOf(answer, "data", "email"),
      name: memberOf(answer, "data", "name"),
      picture: memberOf(answer, "data", "photo", "image_128x128"),
    }),
  },
  box: {
    authorize: "https://account.box.com/api/oauth2/authorize",
    token: "https://api.box.com/oauth2/token",
    scopes: [],
    hasPkce: false,
    requests: from("https://api.box.com/2.0/users/me"),
    // The picture needs an access token.
    read: (user) => ({
      id: memberOf(user, "id"),
      email: memberOf(user, "login"),
      name: memberOf(user, "name"),
    }),
  },
  patreon: {
    authorize: "https://www.patreon.com/oauth2/authorize",
    token: "https://www.patreon.com/api/oauth2/token",
    scopes: ["identity", "identity[email]"],
    hasPkce: false,
    requests: from("https://www.patreon.com/api/oauth2/v2/identity?fields%5Buser%5D=email,full_name,image_url"),
    read: (answer) => ({
      id: memberOf(answer, "data", "id"),
      email: memberOf(answer, "data", "attributes", "email"),
      name: memberOf(answer, "data", "attributes", "full_name"),
      picture: memberOf(answer, "data", "attributes", "image_url"),
    }),
  },
} as const satisfies Partial<Record<KnownProvider, PlainRow>>;

/** GitHub's ids are numbers; a text would be the answer of something else. */
const numberOnly = (id: unknown): unknown => (typeof id === "number" ? id : null);

/** All providers that a config names without addresses. */
export const KNOWN: Readonly<Record<KnownProvider, { oidc: OidcRow } | { plain: PlainRow }>> = {
  ...mapped(OIDC, (oidc) => ({ oidc })),
  ...mapped(PLAIN, (plain) => ({ plain })),
};

function mapped<Name extends string, Row, Entry>(rows: Record<Name, Row>, entry: (row: Row) => Entry) {
  const entries = Object.entries<Row>(rows).map(([name, row]) => [name, entry(row)] as const);
  return Object.fromEntries(entries) as Record<Name, Entry>; // The same names.
}
