import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, exportPKCS8, generateKeyPair } from "jose";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OAuthWorld, type Sent, startOAuthWorld } from "../../support/oauth-world.ts";

// Each provider by its real addresses, in a world that answers as its documentation says.

interface Fake {
  /** Address to which the browser is sent, without query. */
  authorize: string;
  /** Parameters that it must have there. */
  query?: Record<string, string>;
  /** The token endpoint, as `host/path`. */
  token: string;
  /** Address at which tokens are refreshed, if that is another one. */
  refresh?: string;
  /** Parameters that ask for a refresh token, of the address to which the browser is sent; false: the provider has none. */
  offline?: Record<string, string> | false;
  /** Further members of the form that refreshes. */
  refreshForm?: Record<string, string>;
  /** Way in which the client proves itself there. */
  secret: "header" | "form";
  /** Further members of the form there. */
  form?: Record<string, string>;
  /** Whether PKCE is used. */
  pkce: boolean;
  /** Members of the token endpoint's answer beside an access token. */
  granted?: object;
  /** Claims of the ID token, for OpenID Connect; issuer, audience and nonce are added. */
  claims?: Record<string, unknown>;
  /** Whether the ID token has the nonce. */
  nonce?: boolean;
  issuer?: string;
  /** Address of the issuer's description, as `host/path`. */
  discovery?: string;
  /** Answers of the API, by method and address without query. */
  api?: Record<string, unknown>;
  /** Members of the callback beside code and state. */
  callback?: Record<string, string>;
  /** The account that comes of it; `verified` is of the address. */
  user: { email: string | null; verified: boolean; name: string | null; picture: string | null };
}

const oidc = (issuer: string, discovery: string, fields: Omit<Fake, "issuer" | "discovery">): Fake => ({
  issuer,
  discovery,
  ...fields,
});

const FAKES = {
  google: oidc("https://accounts.google.com", "accounts.google.com/.well-known/openid-configuration", {
    authorize: "https://accounts.google.com/o/oauth2/v2/auth",
    query: { scope: "openid email profile" },
    offline: { access_type: "offline", prompt: "consent" },
    token: "oauth2.googleapis.com/token",
    secret: "form",
    pkce: true,
    nonce: true,
    claims: {
      sub: "110",
      email: "google@example.com",
      email_verified: true,
      name: "Goo Gle",
      picture: "https://lh3/p",
    },
    user: { email: "google@example.com", verified: true, name: "Goo Gle", picture: "https://lh3/p" },
  }),
  gitlab: oidc("https://gitlab.com", "gitlab.com/.well-known/openid-configuration", {
    authorize: "https://gitlab.com/oauth/authorize",
    token: "gitlab.com/oauth/token",
    secret: "header",
    pkce: true,
    nonce: true,
    claims: { sub: "32", email: "gitlab@example.com", email_verified: false, name: "Git Lab" },
    user: { email: "gitlab@example.com", verified: false, name: "Git Lab", picture: null },
  }),
  apple: oidc("https://appleid.apple.com", "appleid.apple.com/.well-known/openid-configuration", {
    authorize: "https://appleid.apple.com/auth/authorize",
    query: { scope: "openid name email", response_mode: "form_post" },
    token: "appleid.apple.com/auth/token",
    secret: "form",
    pkce: true,
    nonce: true,
    claims: { sub: "001.a", email: "apple@example.com", email_verified: "true" },
    callback: { user: JSON.stringify({ name: { firstName: "App", lastName: "Le" }, email: "forged@example.com" }) },
    user: { email: "apple@example.com", verified: true, name: "App Le", picture: null },
  }),
  microsoft: oidc(
    "https://login.microsoftonline.com/{tenantid}/v2.0",
    "login.microsoftonline.com/common/v2.0/.well-known/openid-configuration",
    {
      authorize: "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
      offline: { scope: "openid email profile offline_access" },
      token: "login.microsoftonline.com/common/oauth2/v2.0/token",
      secret: "form",
      pkce: true,
      nonce: true,
      claims: {
        sub: "AAA",
        tid: "9188040d-6c67-4c5b-b112-36a304b66dad",
        email: "ms@example.com",
        name: "Micro Soft",
        iss: "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
        xms_edov: true,
      },
      user: { email: "ms@example.com", verified: true, name: "Micro Soft", picture: null },
    },
  ),
  linkedin: oidc("https://www.linkedin.com/oauth", "www.linkedin.com/oauth/.well-known/openid-configuration", {
    authorize: "https://www.linkedin.com/oauth/v2/authorization",
    offline: false,
    token: "www.linkedin.com/oauth/v2/accessToken",
    secret: "form",
    pkce: false,
    nonce: false,
    claims: { sub: "782", email: "in@example.com", email_verified: "true", name: "Linked In", picture: "https://m/p" },
    user: { email: "in@example.com", verified: true, name: "Linked In", picture: "https://m/p" },
  }),
  slack: oidc("https://slack.com", "slack.com/.well-known/openid-configuration", {
    authorize: "https://slack.com/openid/connect/authorize",
    offline: false,
    token: "slack.com/api/openid.connect.token",
    secret: "form",
    pkce: false,
    nonce: true,
    claims: { sub: "U0", email: "slack@example.com", email_verified: true, name: "Sla Ck", picture: "https://s/p" },
    user: { email: "slack@example.com", verified: true, name: "Sla Ck", picture: "https://s/p" },
  }),
  twitch: oidc("https://id.twitch.tv/oauth2", "id.twitch.tv/oauth2/.well-known/openid-configuration", {
    authorize: "https://id.twitch.tv/oauth2/authorize",
    query: {
      claims: '{"id_token":{"email":null,"email_verified":null,"picture":null,"preferred_username":null}}',
    },
    token: "id.twitch.tv/oauth2/token",
    secret: "form",
    pkce: false,
    nonce: true,
    // Its scopes are a list.
    granted: { scope: ["openid", "user:read:email"] },
    claims: {
      sub: "713",
      email: "tw@example.com",
      email_verified: true,
      preferred_username: "twi",
      picture: "https://t/p",
    },
    user: { email: "tw@example.com", verified: true, name: "twi", picture: "https://t/p" },
  }),
  salesforce: oidc("https://login.salesforce.com", "login.salesforce.com/.well-known/openid-configuration", {
    authorize: "https://login.salesforce.com/services/oauth2/authorize",
    offline: { scope: "openid email profile refresh_token" },
    token: "login.salesforce.com/services/oauth2/token",
    secret: "header",
    pkce: true,
    nonce: true,
    claims: { sub: "https://login.salesforce.com/id/1", email: "sf@example.com", email_verified: true, name: "Sales" },
    user: { email: "sf@example.com", verified: false, name: "Sales", picture: null },
  }),
  github: {
    authorize: "https://github.com/login/oauth/authorize",
    query: { scope: "read:user user:email" },
    offline: false,
    token: "github.com/login/oauth/access_token",
    secret: "form",
    pkce: true,
    api: {
      // The address is private: `user` has none.
      "GET api.github.com/user": { id: 583, login: "octocat", name: null, email: null, avatar_url: "https://a/583" },
      "GET api.github.com/user/emails": [
        { email: "583+octocat@users.noreply.github.com", primary: false, verified: true, visibility: null },
        { email: "GitHub@example.com", primary: true, verified: true, visibility: "private" },
      ],
    },
    user: { email: "github@example.com", verified: true, name: "octocat", picture: "https://a/583" },
  },
  discord: {
    authorize: "https://discord.com/oauth2/authorize",
    token: "discord.com/api/oauth2/token",
    secret: "form",
    pkce: true,
    api: {
      "GET discord.com/api/users/@me": {
        id: "80351",
        username: "nelly",
        global_name: "Nelly",
        avatar: "8342",
        email: "discord@example.com",
        verified: true,
      },
    },
    user: {
      email: "discord@example.com",
      verified: true,
      name: "Nelly",
      picture: "https://cdn.discordapp.com/avatars/80351/8342.png",
    },
  },
  facebook: {
    authorize: "https://www.facebook.com/v23.0/dialog/oauth",
    query: { scope: "email,public_profile" },
    offline: false,
    token: "graph.facebook.com/v23.0/oauth/access_token",
    secret: "form",
    pkce: true,
    api: {
      "GET graph.facebook.com/v23.0/me": {
        id: "102",
        name: "Face Book",
        email: "fb@example.com",
        picture: { data: { url: "https://f/p", is_silhouette: false } },
      },
    },
    user: { email: "fb@example.com", verified: false, name: "Face Book", picture: "https://f/p" },
  },
  x: {
    authorize: "https://x.com/i/oauth2/authorize",
    offline: { scope: "users.read tweet.read users.email offline.access" },
    token: "api.x.com/2/oauth2/token",
    secret: "header",
    pkce: true,
    api: {
      "GET api.x.com/2/users/me": {
        data: {
          id: "2244",
          name: "X Dev",
          username: "XDevelopers",
          profile_image_url: "https://x/p",
          confirmed_email: "x@example.com",
        },
      },
    },
    user: { email: "x@example.com", verified: true, name: "X Dev", picture: "https://x/p" },
  },
  spotify: {
    authorize: "https://accounts.spotify.com/authorize",
    token: "accounts.spotify.com/api/token",
    secret: "header",
    pkce: true,
    api: {
      "GET api.spotify.com/v1/me": {
        id: "smedjan",
        display_name: "Spo",
        email: "sp@example.com",
        images: [{ url: "https://i/p" }],
      },
    },
    user: { email: "sp@example.com", verified: false, name: "Spo", picture: "https://i/p" },
  },
  notion: {
    authorize: "https://api.notion.com/v1/oauth/authorize",
    query: { owner: "user" },
    token: "api.notion.com/v1/oauth/token",
    secret: "header",
    pkce: false,
    api: {
      "GET api.notion.com/v1/users/me": {
        object: "user",
        id: "the bot",
        type: "bot",
        bot: {
          owner: {
            type: "user",
            user: { id: "d40e", name: "No Tion", avatar_url: null, person: { email: "no@example.com" } },
          },
        },
      },
    },
    user: { email: "no@example.com", verified: false, name: "No Tion", picture: null },
  },
  kakao: {
    authorize: "https://kauth.kakao.com/oauth/authorize",
    token: "kauth.kakao.com/oauth/token",
    secret: "form",
    pkce: true,
    api: {
      "GET kapi.kakao.com/v2/user/me": {
        id: 123456789,
        kakao_account: {
          email: "kakao@example.com",
          is_email_valid: true,
          is_email_verified: true,
          profile: { nickname: "Ka", profile_image_url: "https://k/p" },
        },
      },
    },
    user: { email: "kakao@example.com", verified: true, name: "Ka", picture: "https://k/p" },
  },
  line: {
    authorize: "https://access.line.me/oauth2/v2.1/authorize",
    token: "api.line.me/oauth2/v2.1/token",
    secret: "form",
    pkce: true,
    granted: { id_token: "head.body.sign" },
    api: {
      "POST api.line.me/oauth2/v2.1/verify": {
        sub: "U1234",
        name: "Li Ne",
        picture: "https://l/p",
        email: "line@example.com",
      },
    },
    user: { email: "line@example.com", verified: false, name: "Li Ne", picture: "https://l/p" },
  },
  naver: {
    authorize: "https://nid.naver.com/oauth2.0/authorize",
    token: "nid.naver.com/oauth2.0/token",
    secret: "form",
    pkce: false,
    api: {
      "GET openapi.naver.com/v1/nid/me": {
        resultcode: "00",
        response: { id: "325", nickname: "Nav", email: "naver@example.com", profile_image: "https://n/p" },
      },
    },
    user: { email: "naver@example.com", verified: false, name: "Nav", picture: "https://n/p" },
  },
  bitbucket: {
    authorize: "https://bitbucket.org/site/oauth2/authorize",
    token: "bitbucket.org/site/oauth2/access_token",
    secret: "header",
    pkce: true,
    granted: { scopes: "account email" },
    api: {
      "GET api.bitbucket.org/2.0/user": {
        uuid: "{c788}",
        display_name: "Bit Bucket",
        links: { avatar: { href: "https://b/p" } },
      },
      "GET api.bitbucket.org/2.0/user/emails": {
        values: [
          { email: "other@example.com", is_primary: false, is_confirmed: true },
          { email: "bb@example.com", is_primary: true, is_confirmed: true },
        ],
      },
    },
    user: { email: "bb@example.com", verified: false, name: "Bit Bucket", picture: "https://b/p" },
  },
  dropbox: {
    authorize: "https://www.dropbox.com/oauth2/authorize",
    offline: { token_access_type: "offline" },
    token: "api.dropboxapi.com/oauth2/token",
    secret: "form",
    pkce: true,
    api: {
      "POST api.dropboxapi.com/2/users/get_current_account": {
        account_id: "dbid:1",
        email: "db@example.com",
        email_verified: true,
        name: { display_name: "Drop" },
        profile_photo_url: "https://d/p",
      },
    },
    user: { email: "db@example.com", verified: false, name: "Drop", picture: "https://d/p" },
  },
  figma: {
    authorize: "https://www.figma.com/oauth",
    token: "api.figma.com/v1/oauth/token",
    refresh: "api.figma.com/v1/oauth/refresh",
    secret: "header",
    pkce: true,
    api: { "GET api.figma.com/v1/me": { id: "2171", handle: "Fig", img_url: "https://f/p", email: "fig@example.com" } },
    user: { email: "fig@example.com", verified: false, name: "Fig", picture: "https://f/p" },
  },
  zoom: {
    authorize: "https://zoom.us/oauth/authorize",
    token: "zoom.us/oauth/token",
    secret: "header",
    pkce: true,
    api: {
      "GET api.zoom.us/v2/users/me": {
        id: "KDcu",
        first_name: "Zo",
        last_name: "Om",
        email: "zoom@example.com",
        pic_url: "https://z/p",
      },
    },
    user: { email: "zoom@example.com", verified: false, name: "Zo Om", picture: "https://z/p" },
  },
  reddit: {
    authorize: "https://www.reddit.com/api/v1/authorize",
    offline: { duration: "permanent" },
    token: "www.reddit.com/api/v1/access_token",
    secret: "header",
    pkce: false,
    api: { "GET oauth.reddit.com/api/v1/me": { id: "1w72", name: "spez", snoovatar_img: "https://r/p" } },
    user: { email: null, verified: false, name: "spez", picture: "https://r/p" },
  },
  tiktok: {
    authorize: "https://www.tiktok.com/v2/auth/authorize/",
    query: { client_key: "id of tiktok", scope: "user.info.basic" },
    token: "open.tiktokapis.com/v2/oauth/token/",
    secret: "form",
    form: { client_key: "id of tiktok" },
    pkce: false,
    api: {
      "GET open.tiktokapis.com/v2/user/info/": {
        data: { user: { open_id: "723f", display_name: "Tik", avatar_url: "https://t/p" } },
        error: { code: "ok" },
      },
    },
    user: { email: null, verified: false, name: "Tik", picture: "https://t/p" },
  },
  strava: {
    authorize: "https://www.strava.com/oauth/authorize",
    token: "www.strava.com/oauth/token",
    secret: "form",
    pkce: false,
    api: {
      "GET www.strava.com/api/v3/athlete": { id: 1234, firstname: "Stra", lastname: "Va", profile: "https://s/p" },
    },
    user: { email: null, verified: false, name: "Stra Va", picture: "https://s/p" },
  },
  vk: {
    authorize: "https://id.vk.com/authorize",
    token: "id.vk.com/oauth2/auth",
    refreshForm: { device_id: "the device" },
    secret: "form",
    pkce: true,
    callback: { device_id: "the device" },
    form: { device_id: "the device" },
    granted: { id_token: "head.body.sign", user_id: 1 },
    api: {
      "POST id.vk.com/oauth2/user_info": {
        user: { user_id: "1", first_name: "V", last_name: "K", avatar: "https://v/p", email: "vk@example.com" },
      },
    },
    user: { email: "vk@example.com", verified: false, name: "V K", picture: "https://v/p" },
  },
  yandex: {
    authorize: "https://oauth.yandex.com/authorize",
    token: "oauth.yandex.com/token",
    secret: "form",
    pkce: true,
    api: {
      "GET login.yandex.ru/info": {
        id: "1000034426",
        login: "ivan",
        display_name: "Yan",
        default_email: "ya@yandex.ru",
        default_avatar_id: "131652443",
        is_avatar_empty: false,
      },
    },
    user: {
      email: "ya@yandex.ru",
      verified: false,
      name: "Yan",
      picture: "https://avatars.yandex.net/get-yapic/131652443/islands-200",
    },
  },
  atlassian: {
    authorize: "https://auth.atlassian.com/authorize",
    query: { audience: "api.atlassian.com", scope: "read:me" },
    offline: { scope: "read:me offline_access" },
    token: "auth.atlassian.com/oauth/token",
    secret: "form",
    pkce: false,
    api: {
      "GET api.atlassian.com/me": { account_id: "112", email: "at@example.com", name: "Atl", picture: "https://a/p" },
    },
    user: { email: "at@example.com", verified: false, name: "Atl", picture: "https://a/p" },
  },
  asana: {
    authorize: "https://app.asana.com/-/oauth_authorize",
    token: "app.asana.com/-/oauth_token",
    secret: "form",
    pkce: true,
    api: {
      "GET app.asana.com/api/1.0/users/me": {
        data: { gid: "12345", name: "Asa", email: "as@example.com", photo: { image_128x128: "https://a/128" } },
      },
    },
    user: { email: "as@example.com", verified: false, name: "Asa", picture: "https://a/128" },
  },
  box: {
    authorize: "https://account.box.com/api/oauth2/authorize",
    token: "api.box.com/oauth2/token",
    secret: "form",
    pkce: false,
    api: { "GET api.box.com/2.0/users/me": { type: "user", id: "1169", name: "Bo X", login: "box@example.com" } },
    user: { email: "box@example.com", verified: false, name: "Bo X", picture: null },
  },
  patreon: {
    authorize: "https://www.patreon.com/oauth2/authorize",
    token: "www.patreon.com/api/oauth2/token",
    secret: "form",
    pkce: false,
    api: {
      "GET www.patreon.com/api/oauth2/v2/identity": {
        data: {
          id: "9",
          type: "user",
          attributes: { email: "pa@example.com", full_name: "Pat", image_url: "https://p/p" },
        },
      },
    },
    user: { email: "pa@example.com", verified: false, name: "Pat", picture: "https://p/p" },
  },
} satisfies Record<string, Fake>;
const NAMES = Object.keys(FAKES) as (keyof typeof FAKES)[]; // An object of this file.
const fakeOf = (name: keyof typeof FAKES): Fake => FAKES[name];

const hostOf = (address: string) => address.replace(/^(GET|POST) |^https:\/\//, "").split("/")[0] ?? "";
const HOSTS = new Set(
  Object.values<Fake>(FAKES).flatMap(({ token, discovery = token, api = {} }) =>
    [token, discovery, ...Object.keys(api)].map(hostOf),
  ),
);
HOSTS.add("accounts.own.example");

const apple = await generateKeyPair("ES256", { extractable: true });
const APPLE = {
  clientId: "id of apple",
  teamId: "TEAM",
  keyId: "KEY",
  privateKey: await exportPKCS8(apple.privateKey),
};
const OWN_CONFIG = `{ clientId: "id of own", clientSecret: "secret of own",
  authorizationUrl: "https://accounts.own.example/authorize", tokenUrl: "https://accounts.own.example/token",
  userInfoUrl: "https://accounts.own.example/me", scopes: ["who"],
  profile: (raw) => ({ id: String(raw.number ?? ""), email: raw.mail, emailVerified: raw.sure, name: raw.call }) }`;

const configOf = (name: string) =>
  name === "apple" ? APPLE : { clientId: `id of ${name}`, clientSecret: `secret of ${name}` };

let world: OAuthWorld;
let platform: TestPlatform;
beforeAll(async () => {
  world = await startOAuthWorld([...HOSTS]);
  const declared = NAMES.map((name) => `${name}: ${JSON.stringify(configOf(name))}`);
  platform = await testPlatform({
    env: world.env,
    config: `{
      auth: { redirectUrls: ["https://app.example.com/*"], oauth: { ${declared.join(", ")}, own: ${OWN_CONFIG} } },
      rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
    }`,
  });
});
afterAll(async () => {
  await platform.stop();
  world.stop();
});

/** Answers of the world for one provider; what comes back at the callback is `code=right`. `refresh` answers another grant. */
function play(
  name: string,
  fake: Fake,
  nonce: () => string | null,
  refresh: (sent: Sent) => unknown = () => null,
): void {
  const clientId = `id of ${name}`;
  const token = async (sent: Sent) => {
    if (sent.form.get("grant_type") !== "authorization_code") return refresh(sent);
    const { iss = fake.issuer, ...claims } = fake.claims ?? {};
    const now = Math.floor(Date.now() / 1000);
    const nonceOf = nonce();
    const idToken =
      fake.claims === undefined
        ? {}
        : {
            id_token: await world.idToken({
              ...claims,
              iss: String(iss),
              aud: clientId,
              iat: now,
              exp: now + 300,
              ...(fake.nonce === true && nonceOf !== null ? { nonce: nonceOf } : {}),
            }),
          };
    if (sent.form.get("code") !== "right") return { error: "invalid_grant" };
    return { access_token: "granted", expires_in: 300, ...idToken, ...fake.granted };
  };
  const api = Object.entries(fake.api ?? {}).map(([address, answer]) => [address, () => answer] as const);
  const issuer = fake.issuer ?? "";
  const methods =
    fake.secret === "header" ? undefined : { token_endpoint_auth_methods_supported: ["client_secret_post"] };
  const metadata = {
    issuer,
    authorization_endpoint: fake.authorize,
    token_endpoint: `https://${fake.token}`,
    jwks_uri: `https://${hostOf(fake.token)}/test-keys`,
    ...methods,
  };
  world.answers({
    [`POST ${fake.token}`]: token,
    ...(fake.refresh === undefined ? {} : { [`POST ${fake.refresh}`]: refresh }),
    ...(fake.discovery === undefined ? {} : { [`GET ${fake.discovery}`]: () => metadata }),
    [`GET ${hostOf(fake.token)}/test-keys`]: () => world.keys,
    ...Object.fromEntries(api),
  });
}

/** Begins a sign-in. Returns the address of the provider. */
async function begin(name: string, query = "", at = platform): Promise<URL> {
  const redirect = encodeURIComponent("https://app.example.com/welcome");
  const response = await at.fetch(`/api/auth/oauth/${name}?redirect_url=${redirect}${query}`);
  expect(response.status).toBe(302);
  return new URL(response.headers.get("location") ?? "");
}

/** Comes back from a provider, by a form where it posts. */
async function comeBack(
  name: string,
  at: URL,
  further: Record<string, string> = {},
  server = platform,
): Promise<Response> {
  const query = new URLSearchParams({ code: "right", state: at.searchParams.get("state") ?? "", ...further });
  const callback = `/api/auth/oauth/${name}/callback`;
  if (at.searchParams.get("response_mode") !== "form_post") return server.fetch(`${callback}?${query}`);
  const posted = await server.fetch(callback, { method: "POST", body: query });
  expect(posted.status).toBe(303);
  const { pathname, search } = new URL(posted.headers.get("location") ?? "");
  return server.fetch(pathname + search);
}

const fragmentOf = (response: Response) =>
  new URLSearchParams(new URL(response.headers.get("location") ?? "").hash.slice(1));

async function meOf(accessToken: string | null, at = platform) {
  const me = await at.as(accessToken ?? "").get<{ user: Record<string, unknown> }>("/api/auth/me");
  expect(me.status).toBe(200);
  return me.body.user;
}

test.each(NAMES)("[AU300] %s is configured by its name and signs in", async (name) => {
  const fake = fakeOf(name);
  let nonce: string | null = null;
  play(name, fake, () => nonce);
  const at = await begin(name);
  nonce = at.searchParams.get("nonce");
  expect(at.origin + at.pathname).toBe(fake.authorize);
  const expected = {
    response_type: "code",
    redirect_uri: `${platform.url}/api/auth/oauth/${name}/callback`,
    ...(name === "tiktok" ? {} : { client_id: `id of ${name}` }),
    ...fake.query,
  };
  expect(Object.fromEntries(at.searchParams)).toMatchObject(expected);
  expect(at.searchParams.has("code_challenge")).toBe(fake.pkce);

  const response = await comeBack(name, at, fake.callback);
  expect(response.status).toBe(302);
  const { email, verified, name: displayName, picture: avatarUrl } = fake.user;
  const user = await meOf(fragmentOf(response).get("access_token"));
  expect(user).toMatchObject({ email, emailVerified: verified, displayName, avatarUrl });

  const asked = world.sent.find(({ method, url }) => method === "POST" && url === fake.token);
  const { authorization } = Object.fromEntries(asked?.headers ?? new Headers());
  const form = Object.fromEntries(asked?.form ?? []);
  expect(form).toMatchObject({ grant_type: "authorization_code", code: "right", ...fake.form });
  if (fake.secret === "header") {
    const encoded = [`id of ${name}`, `secret of ${name}`].map((part) =>
      encodeURIComponent(part).replaceAll("%20", "+"),
    );
    expect(authorization).toBe(`Basic ${Buffer.from(encoded.join(":")).toString("base64")}`);
  } else if (name !== "apple") expect(form["client_secret"]).toBe(`secret of ${name}`);
  expect(form["code_verifier"] !== undefined).toBe(fake.pkce);
  for (const { method, url, headers, form: body } of world.sent) {
    if (fake.api?.[`${method} ${url.split("?")[0]}`] === undefined) continue;
    expect(headers.get("authorization")).toBe("Bearer granted");
    if (name === "line") expect(body.get("id_token")).toBe("head.body.sign");
  }
  // The same user at the next visit.
  const again = await begin(name);
  nonce = again.searchParams.get("nonce");
  const second = await meOf(fragmentOf(await comeBack(name, again, fake.callback)).get("access_token"));
  expect(second["id"]).toBe(user["id"]);
});

test("[AU301] a posted callback needs a state, and has at most 64 KiB", async () => {
  const callback = "/api/auth/oauth/apple/callback";
  const post = async (body?: string) => {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    return (await platform.fetch(callback, { method: "POST", headers, ...(body === undefined ? {} : { body }) }))
      .status;
  };
  expect([await post(), await post("code=right"), await post("state="), await post("state=x")]).toEqual([
    400, 400, 400, 303,
  ]);
  expect(await post(`state=x&user=${"x".repeat(70_000)}`)).toBe(413);
});

test("[AU301] Apple's secret is a token that the key of the config signs", () => {
  // The last sign-in at Apple was that of the test above.
  const secrets: string[] = [];
  return (async () => {
    const fake = fakeOf("apple");
    let nonce: string | null = null;
    play("apple", fake, () => nonce);
    const at = await begin("apple");
    nonce = at.searchParams.get("nonce");
    await comeBack("apple", at);
    for (const { url, form } of world.sent) if (url === fake.token) secrets.push(form.get("client_secret") ?? "");
    const [secret = ""] = secrets;
    expect(decodeProtectedHeader(secret)).toMatchObject({ alg: "ES256", kid: "KEY" });
    expect(decodeJwt(secret)).toMatchObject({ iss: "TEAM", sub: "id of apple", aud: "https://appleid.apple.com" });
  })();
});

test.each([
  ["microsoft", { xms_edov: undefined }],
  ["microsoft", { xms_edov: false, email_verified: true }],
  ["linkedin", { email_verified: false }],
] as const)("[AU302] %s: an address that it does not call verified is not", async (name, claims) => {
  const fake = fakeOf(name);
  const changed = { ...fake.claims, ...claims, sub: crypto.randomUUID(), email: `${crypto.randomUUID()}@example.com` };
  let nonce: string | null = null;
  play(name, { ...fake, claims: changed }, () => nonce);
  const at = await begin(name);
  nonce = at.searchParams.get("nonce");
  const user = await meOf(fragmentOf(await comeBack(name, at)).get("access_token"));
  expect(user).toMatchObject({ email: changed.email, emailVerified: false });
});

test("[AU302] Kakao: an address that is no longer valid is not verified", async () => {
  const email = `${crypto.randomUUID()}@example.com`;
  const kakao = { id: 77, kakao_account: { email, is_email_valid: false, is_email_verified: true } };
  play("kakao", { ...FAKES.kakao, api: { "GET kapi.kakao.com/v2/user/me": kakao } }, () => null);
  const response = await comeBack("kakao", await begin("kakao"));
  expect(await meOf(fragmentOf(response).get("access_token"))).toMatchObject({ email, emailVerified: false });
});

test("[AU300] Microsoft: a token of a tenant other than its issuer is refused", async () => {
  const fake = fakeOf("microsoft");
  let nonce: string | null = null;
  play("microsoft", { ...fake, claims: { ...fake.claims, tid: "another" } }, () => nonce);
  const at = await begin("microsoft");
  nonce = at.searchParams.get("nonce");
  expect((await comeBack("microsoft", at)).status).toBe(400);
});

const OWN: Fake = {
  authorize: "https://accounts.own.example/authorize",
  token: "accounts.own.example/token",
  secret: "form",
  pkce: true,
  user: { email: null, verified: false, name: null, picture: null },
};
const playOwn = (me: object) => play("own", { ...OWN, api: { "GET accounts.own.example/me": me } }, () => null);

test("[AU303] a provider with addresses of its own is read by `profile`", async () => {
  playOwn({ number: 5, mail: "Own@example.com", sure: true, call: "Ow N" });
  const at = await begin("own");
  expect(Object.fromEntries(at.searchParams)).toMatchObject({ scope: "who", code_challenge_method: "S256" });
  const response = await comeBack("own", at);
  const user = await meOf(fragmentOf(response).get("access_token"));
  expect(user).toMatchObject({ email: "own@example.com", emailVerified: true, displayName: "Ow N" });
});

test.each([[{}], [{ number: "" }], [null]])("[AU303] a profile %p without an id is refused", async (me) => {
  playOwn(me as object);
  expect((await comeBack("own", await begin("own"))).status).toBe(400);
});

const pkce = () => {
  const verifier = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
};

test("[AU304] an app that begins with a challenge gets a code, which its verifier redeems once", async () => {
  playOwn({ number: 6, call: "App" });
  const { verifier, challenge } = pkce();
  const query = `&code_challenge=${challenge}&code_challenge_method=S256`;
  const arrive = async () => {
    const back = new URL((await comeBack("own", await begin("own", query))).headers.get("location") ?? "");
    expect(back.hash).toBe("");
    return back.searchParams.get("code") ?? "";
  };
  const redeem = (code: string, codeVerifier: string) =>
    platform.post<{ accessToken: string }>("/api/auth/oauth/redeem", { code, codeVerifier });
  const code = await arrive();
  const answer = await redeem(code, verifier);
  expect(answer.status).toBe(200);
  expect(await meOf(answer.body.accessToken)).toMatchObject({ displayName: "App" });
  expect((await redeem(code, verifier)).status).toBe(400);
  // Another verifier ends the code.
  const stolen = await arrive();
  expect((await redeem(stolen, pkce().verifier)).status).toBe(400);
  expect((await redeem(stolen, verifier)).status).toBe(400);
});

/** Parameters that are other ones each time, and those of the callback. */
const CHANGING = ["state", "nonce", "code_challenge", "redirect_uri"];
const steady = ({ searchParams }: URL) =>
  Object.fromEntries([...searchParams].filter(([name]) => !CHANGING.includes(name)));

test("[AU446] [AU447] each provider is asked for a refresh token as it documents, and refreshes where it does", async () => {
  const declared = NAMES.map((name) => `${name}: ${JSON.stringify({ ...configOf(name), keepTokens: true })}`);
  const keeping = await testPlatform({
    env: world.env,
    config: `import { defineConfig } from "platform";
export default defineConfig({
  auth: { redirectUrls: ["https://app.example.com/*"], oauth: { ${declared.join(", ")} } },
  routes: (api) => api.get("/token/:id/:provider", async ({ params, app }) => ({ token: await app.users.providerToken(params.id, params.provider) })),
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
});
`,
  });
  try {
    for (const name of NAMES) {
      const fake = fakeOf(name);
      const { offline = {} } = fake;
      let nonce: string | null = null;
      const refresh = ({ form }: Sent) =>
        form.get("refresh_token") === "again"
          ? { access_token: "fresh", expires_in: 3_600, token_type: "bearer" }
          : { error: "invalid_grant" };
      const granted = { expires_in: 30, ...fake.granted, ...(offline === false ? {} : { refresh_token: "again" }) };
      play(name, { ...fake, granted }, () => nonce, refresh);
      const at = await begin(name, "", keeping);
      nonce = at.searchParams.get("nonce");
      // Nothing but that: a provider may refuse a scope that it does not know.
      expect([name, steady(at)]).toEqual([name, { ...steady(await begin(name)), ...offline }]);
      const back = await comeBack(name, at, fake.callback, keeping);
      const { id } = await meOf(fragmentOf(back).get("access_token"), keeping);
      const { body } = await keeping.service.get(`/api/functions/token/${id}/${name}`);
      const token = offline === false ? null : { accessToken: "fresh", expiresAt: expect.any(String) };
      expect([name, body]).toEqual([name, { token }]);
      const asked = world.sent.filter(({ form }) => form.get("grant_type") === "refresh_token");
      expect([name, asked.map(({ url }) => url)]).toEqual([
        name,
        offline === false ? [] : [fake.refresh ?? fake.token],
      ]);
      for (const { headers, form } of asked) {
        expect(Object.fromEntries(form)).toMatchObject({ refresh_token: "again", ...fake.refreshForm });
        expect([name, headers.get("authorization") !== null]).toEqual([name, fake.secret === "header"]);
      }
    }
  } finally {
    await keeping.stop();
  }
}, 60_000);

test("[AU301] Apple gives the name at the first sign-in alone, and a later one changes nothing", async () => {
  const fake = fakeOf("apple");
  const email = `${crypto.randomUUID()}@privaterelay.appleid.com`;
  const claims = { ...fake.claims, sub: crypto.randomUUID(), email, is_private_email: "true" };
  const visit = async (callback?: Record<string, string>) => {
    let nonce: string | null = null;
    play("apple", { ...fake, claims }, () => nonce);
    const at = await begin("apple");
    nonce = at.searchParams.get("nonce");
    const { id, displayName } = await meOf(fragmentOf(await comeBack("apple", at, callback)).get("access_token"));
    return { id, displayName };
  };
  const named = (firstName: string) => ({ user: JSON.stringify({ name: { firstName, lastName: "Le" } }) });
  const first = await visit(named("Ap"));
  expect(first.displayName).toBe("Ap Le");
  expect(await visit()).toEqual(first);
  expect(await visit(named("Forged"))).toEqual(first);
});

test("[AU300] GitHub answers a refused code with 200: there is no sign-in, and no account", async () => {
  const error = { error: "bad_verification_code", error_description: "The code passed is incorrect or expired." };
  play("github", FAKES.github, () => null);
  const at = await begin("github");
  world.answers({ [`POST ${FAKES.github.token}`]: () => error });
  expect((await comeBack("github", at)).status).toBe(400);
  expect(world.sent.map(({ url }) => url)).toEqual([FAKES.github.token]);
});

test("[AU302] GitHub: a private address that is primary and not verified is none", async () => {
  const user = { id: 777, login: "other", name: null, email: null, avatar_url: null };
  const emails = [
    { email: `${crypto.randomUUID()}@example.com`, primary: true, verified: false, visibility: "private" },
  ];
  const api = { "GET api.github.com/user": user, "GET api.github.com/user/emails": emails };
  play("github", { ...FAKES.github, api }, () => null);
  const response = await comeBack("github", await begin("github"));
  expect(await meOf(fragmentOf(response).get("access_token"))).toMatchObject({ email: null, displayName: "other" });
});

const TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47";
test.each([
  ["organizations", "{tenantid}"],
  ["consumers", "9188040d-6c67-4c5b-b112-36a304b66dad"],
  ["contoso.onmicrosoft.com", TENANT],
  [TENANT, TENANT],
])("[AU300] Microsoft: the tenant %s, whose metadata name the issuer %s", async (tenant, named) => {
  const fake = fakeOf("microsoft");
  const id = named === "{tenantid}" ? TENANT : named;
  const issuerOf = (part: string) => `https://login.microsoftonline.com/${part}/v2.0`;
  const at = (part: string) => part.replace("/common/", `/${tenant}/`);
  const ofTenant = (part: string): Fake => ({
    ...fake,
    issuer: issuerOf(named),
    authorize: at(fake.authorize),
    token: at(fake.token),
    discovery: at(fake.discovery ?? ""),
    claims: { ...fake.claims, sub: `of ${tenant}`, email: "t@example.com", tid: part, iss: issuerOf(part) },
  });
  const one = await testPlatform({
    env: world.env,
    config: {
      auth: { redirectUrls: ["https://app.example.com/*"], oauth: { microsoft: { ...configOf("microsoft"), tenant } } },
    },
  });
  try {
    const visit = async (part: string) => {
      let nonce: string | null = null;
      play("microsoft", ofTenant(part), () => nonce);
      const begun = await begin("microsoft", "", one);
      nonce = begun.searchParams.get("nonce");
      expect(begun.origin + begun.pathname).toBe(at(fake.authorize));
      return comeBack("microsoft", begun, {}, one);
    };
    const back = await visit(id);
    expect(await meOf(fragmentOf(back).get("access_token"), one)).toMatchObject({ email: "t@example.com" });
    // A token of another tenant is taken where any may sign in, and nowhere else.
    expect((await visit("11111111-1111-1111-1111-111111111111")).status).toBe(named === "{tenantid}" ? 302 : 400);
  } finally {
    await one.stop();
  }
});
