import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { type OidcProvider, type OidcUser, startOidcProvider } from "../../support/oidc-provider.ts";
import { enrol, mailedToken, nextEmail, signUp, type Tokens, totpCode } from "./auth-support.ts";

let provider: OidcProvider;
// Codes of one step are wanted, and its end may have to be waited for.
setDefaultTimeout(20_000);

let platform: TestPlatform;

beforeAll(async () => {
  provider = await startOidcProvider();
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    config: {
      auth: {
        ...{ mfa: { totp: true }, magicLink: true, redirectUrls: ["https://app.example.com/*"] },
        oauth: { club: { clientId, clientSecret, issuer }, other: { clientId, clientSecret, issuer } },
      },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
    },
  });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});
beforeEach(() => {
  provider.lies = {};
});

const REDIRECT = "https://app.example.com/welcome?from=club";
const BROWSER = { "sec-fetch-site": "cross-site" };

let subjects = 0;
const nextUser = (email = nextEmail()): OidcUser => ({
  ...{ sub: `subject-${++subjects}`, email, email_verified: true },
  ...{ name: "Some Body", picture: "https://example.com/p.png" },
});

async function begin(redirectUrl = REDIRECT, name = "club"): Promise<{ location: string; cookie: string }> {
  const response = await platform.fetch(`/api/auth/oauth/${name}?redirect_url=${encodeURIComponent(redirectUrl)}`);
  expect(response.status).toBe(302);
  const cookie = (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  return { location: response.headers.get("location") ?? "", cookie };
}

/** The browser arrives with the address that the provider sent it to. */
const arrive = (address: string, headers: Record<string, string> = {}) => {
  const { pathname, search } = new URL(address);
  return platform.fetch(pathname + search, { headers });
};

async function signIn(user: OidcUser): Promise<Response> {
  const { location, cookie } = await begin();
  return arrive(provider.approve(location, user), { ...BROWSER, cookie });
}

const fragmentOf = (response: Response) =>
  new URLSearchParams(new URL(response.headers.get("location") ?? "").hash.slice(1));

const meOf = async (response: Response) => {
  const me = await platform
    .as(fragmentOf(response).get("access_token") ?? "")
    .get<{ user: Tokens["user"] }>("/api/auth/me");
  expect(me.status).toBe(200);
  return me.body.user;
};

const verified = async (): Promise<Tokens> => {
  const tokens = await signUp(platform);
  await platform.as(tokens.accessToken).post("/api/auth/request-email-verification");
  await platform.post("/api/auth/verify-email", { token: mailedToken(platform, String(tokens.user.email)) });
  return tokens;
};

test("[AU32] the redirect has state, nonce and a PKCE challenge; the way back has the tokens in its fragment", async () => {
  const { location } = await begin();
  const query = new URL(location).searchParams;
  expect(location).toStartWith(`${provider.issuer}/authorize?`);
  expect(Object.fromEntries(query)).toMatchObject({
    ...{ response_type: "code", client_id: provider.clientId, code_challenge_method: "S256" },
    ...{ scope: "openid email profile", redirect_uri: `${platform.url}/api/auth/oauth/club/callback` },
  });
  for (const name of ["state", "nonce", "code_challenge"]) expect(query.get(name)).toMatch(/^[\w-]{43}$/);
  const user = nextUser();
  const response = await signIn(user);
  expect(response.status).toBe(302);
  const back = new URL(response.headers.get("location") ?? "");
  expect(back.href.split("#")[0]).toBe(REDIRECT);
  expect(await meOf(response)).toMatchObject({
    ...{ email: user.email, emailVerified: true, displayName: "Some Body", avatarUrl: "https://example.com/p.png" },
    ...{ role: "user" },
  });
  const refreshToken = fragmentOf(response).get("refresh_token") ?? "";
  expect((await platform.post("/api/auth/refresh", { refreshToken })).status).toBe(200);
});

test("[AU32] the same subject is the same user, also with another email", async () => {
  const user = nextUser();
  const first = await meOf(await signIn(user));
  const second = await meOf(await signIn({ ...user, email: nextEmail(), email_verified: false }));
  expect(second.id).toBe(first.id);
  expect(second.email).toBe(first.email);
});

test("[AU32] claims missing from the ID token are requested", async () => {
  provider.lies = { bare: true };
  const user = nextUser();
  expect(await meOf(await signIn(user))).toMatchObject({ email: user.email, emailVerified: true });
});

test("[AU33] a state is valid once, for its provider only; a made-up one is refused", async () => {
  const { location, cookie } = await begin();
  const back = provider.approve(location, nextUser());
  const wrongProvider = back.replace("/club/callback", "/other/callback");
  expect((await arrive(wrongProvider, { ...BROWSER, cookie })).status).toBe(400);
  expect((await arrive(back, { ...BROWSER, cookie })).status).toBe(302);
  const granted = provider.granted;
  expect((await arrive(back, { ...BROWSER, cookie })).status).toBe(400);
  const fresh = await begin();
  const forged = new URL(provider.approve(fresh.location, nextUser()));
  forged.searchParams.set("state", "A".repeat(43));
  expect((await arrive(forged.href, { ...BROWSER, cookie: fresh.cookie })).status).toBe(400);
  forged.searchParams.delete("state");
  expect((await arrive(forged.href, { ...BROWSER, cookie: fresh.cookie })).status).toBe(400);
  expect(provider.granted).toBe(granted);
});

test("[AU33] a state that arrives twice concurrently signs in once", async () => {
  const { location, cookie } = await begin();
  const back = provider.approve(location, nextUser());
  const answers = await Promise.all(Array.from({ length: 4 }, () => arrive(back, { ...BROWSER, cookie })));
  expect(answers.map((answer) => answer.status).sort()).toEqual([302, 400, 400, 400]);
});

test("[AU33] a code stolen from one sign-in is refused in another, by PKCE", async () => {
  const victim = await begin();
  const stolen = new URL(provider.approve(victim.location, nextUser())).searchParams.get("code") ?? "";
  const attacker = await begin();
  const back = new URL(provider.approve(attacker.location, nextUser()));
  back.searchParams.set("code", stolen);
  expect((await arrive(back.href, { ...BROWSER, cookie: attacker.cookie })).status).toBe(400);
});

test.each([
  ["nonce", { nonce: "replayed" }],
  ["issuer", { iss: "https://attacker.example" }],
  ["audience", { aud: "another client" }],
  ["expiry", { expiresInSeconds: -600 }],
  ["signature", { foreignKey: true }],
] as const)("[AU33] an ID token with the wrong %s is refused, and nobody is made", async (_, lies) => {
  provider.lies = lies;
  const user = nextUser();
  const response = await signIn(user);
  expect(response.status).toBe(400);
  expect(JSON.stringify(await response.json())).not.toContain("access");
  provider.lies = {};
  const before = await platform.service.get<{ users: { email: string }[] }>("/api/auth/admin/users", {
    query: { limit: 1000 },
  });
  expect(before.body.users.map((one) => one.email)).not.toContain(user.email ?? "");
});

test("[AU34] an unverified email at the provider opens no existing account", async () => {
  const { user, accessToken } = await verified();
  const response = await signIn({ ...nextUser(String(user.email)), email_verified: false });
  expect(response.status).toBe(409);
  const identities = await platform.as(accessToken).get("/api/auth/identities");
  expect(identities.body).toEqual({ identities: [] });
});

test("[AU34] a verified email at the provider does not open an account whose email is unverified here", async () => {
  const { user } = await signUp(platform);
  expect((await signIn(nextUser(String(user.email)))).status).toBe(409);
});

test("[AU34] an email verified on both sides links to the account", async () => {
  const { user, accessToken } = await verified();
  const identity = nextUser(String(user.email).toUpperCase());
  expect((await meOf(await signIn(identity))).id).toBe(user.id);
  const { identities } = (await platform.as(accessToken).get<{ identities: object[] }>("/api/auth/identities")).body;
  expect(identities).toMatchObject([{ provider: "club", email: user.email }]);
});

test("[AU1] [AU34] an address with a sign that lower-cases to a letter is not that of the letter", async () => {
  const email = `kim-${nextEmail()}`;
  const tokens = await signUp(platform, email);
  await platform.as(tokens.accessToken).post("/api/auth/request-email-verification");
  await platform.post("/api/auth/verify-email", { token: mailedToken(platform, email) });
  // KELVIN SIGN: a mailbox of somebody else.
  const me = await meOf(await signIn(nextUser(email.replace("k", "\u212A"))));
  expect(me.id).not.toBe(tokens.user.id);
  expect(me.email).toBe(null);
});

test("[AU33] the log says why a sign-in was refused, and nothing that the provider said of the user", async () => {
  const user = nextUser();
  const refusals = () => platform.stderr().split("An OAuth sign-in was refused").length;
  const before = refusals();
  for (const lies of [{ nonce: "another" }, { foreignKey: true }]) {
    provider.lies = lies;
    expect((await signIn(user)).status).toBe(400);
  }
  provider.lies = {};
  await until("both are in the log", () => refusals() === before + 2);
  await until("the log says so", () => platform.stderr().includes('unexpected ID Token \\"nonce\\" claim value'));
  expect(platform.stderr()).not.toContain(String(user.email));
});

test("[AU34] an unverified email without an account creates an unverified account", async () => {
  const user = { ...nextUser(), email_verified: false };
  expect(await meOf(await signIn(user))).toMatchObject({ email: user.email, emailVerified: false });
});

test("[AU35] a sign-in begun in another browser is refused", async () => {
  const attacker = await begin();
  const back = provider.approve(attacker.location, nextUser());
  expect((await arrive(back, BROWSER)).status).toBe(400);
  const second = await begin();
  const backAgain = provider.approve(second.location, nextUser());
  expect((await arrive(backAgain, { ...BROWSER, cookie: attacker.cookie })).status).toBe(400);
});

test("[AU35] sign-ins begun in two tabs are both finished, in either order", async () => {
  const [first, second] = [await begin(), await begin()];
  const cookie = `${first.cookie}; ${second.cookie}`;
  for (const tab of [second, first]) {
    const user = nextUser();
    expect(await meOf(await arrive(provider.approve(tab.location, user), { ...BROWSER, cookie }))).toMatchObject({
      email: user.email,
    });
  }
});

test("[AU35] a client without Sec-Fetch-Site is not treated as a browser, and needs no cookie", async () => {
  const { location } = await begin();
  expect((await arrive(provider.approve(location, nextUser()))).status).toBe(302);
});

test.each([
  "https://evil.example/",
  "https://app.example.com.evil.example/",
  "https://app.example.com@evil.example/",
  "//evil.example",
  "javascript:alert(1)",
])("[AU35] a redirect_url of %p is 400", async (redirectUrl) => {
  const response = await platform.fetch(`/api/auth/oauth/club?redirect_url=${encodeURIComponent(redirectUrl)}`);
  expect(response.status).toBe(400);
  expect(response.headers.get("location")).toBeNull();
});

test("[AU35] redirect_uri does not follow the Host header", async () => {
  const response = await platform.fetch("/api/auth/oauth/club", { headers: { host: "evil.example" } });
  const location = new URL(response.headers.get("location") ?? "");
  expect(location.searchParams.get("redirect_uri")).toBe(`${platform.url}/api/auth/oauth/club/callback`);
});

test("[AU35] where publicUrl has a path, browsers send the cookie to the callback below it", async () => {
  const { issuer, clientId, clientSecret } = provider;
  const auth = { oauth: { club: { clientId, clientSecret, issuer } } };
  const below = await testPlatform({ config: { server: { publicUrl: "https://example.com/base" }, auth } });
  const { headers } = await below.fetch("/api/auth/oauth/club");
  await below.stop();
  const callback = new URL(headers.get("location") ?? "").searchParams.get("redirect_uri");
  expect(callback).toBe("https://example.com/base/api/auth/oauth/club/callback");
  expect(headers.get("set-cookie")).toContain("; Path=/base/api/auth/oauth;");
});

test("[AU32] a user who declines comes back with the error", async () => {
  const { location, cookie } = await begin();
  const state = new URL(location).searchParams.get("state");
  const path = `/api/auth/oauth/club/callback?error=access_denied&state=${state}`;
  const response = await platform.fetch(path, { headers: { ...BROWSER, cookie } });
  expect(fragmentOf(response).get("error")).toBe("access_denied");
});

test("[AU32] an undeclared provider is 404; a disabled user 403", async () => {
  expect((await platform.fetch("/api/auth/oauth/unknown")).status).toBe(404);
  expect((await platform.fetch("/api/auth/oauth/unknown/callback?state=x&code=y")).status).toBe(404);
  const user = nextUser();
  const { id } = await meOf(await signIn(user));
  await platform.service.patch(`/api/auth/admin/users/${id}`, { disabled: true });
  const response = await signIn(user);
  expect([response.status, (await response.json()) as unknown]).toEqual([
    403,
    { code: 403, message: "Account is disabled" },
  ]);
});

test("[AU30] OAuth requires the factor too", async () => {
  const user = nextUser();
  const first = await signIn(user);
  const factor = await enrol(platform.as(fragmentOf(first).get("access_token") ?? ""));
  const fragment = fragmentOf(await signIn(user));
  expect(fragment.get("mfa_required")).toBe("true");
  expect(fragment.get("access_token")).toBeNull();
  const mfaTicket = fragment.get("mfa_ticket") ?? "";
  const answer = await platform.post("/api/auth/mfa/verify", { mfaTicket, code: totpCode(factor.secret) });
  expect(answer.status).toBe(200);
});

test("[AU36] users remove their own identities; the last way to sign in stays", async () => {
  const user = nextUser();
  const caller = platform.as(fragmentOf(await signIn(user)).get("access_token") ?? "");
  const { identities } = (await caller.get<{ identities: { id: string }[] }>("/api/auth/identities")).body;
  const path = `/api/auth/identities/${identities[0]?.id}`;
  const stranger = platform.as((await signUp(platform)).accessToken);
  expect((await stranger.delete(path)).status).toBe(404);
  expect((await caller.delete(path)).body).toEqual({ ok: true });
  expect((await caller.get("/api/auth/identities")).body).toEqual({ identities: [] });
  const withoutEmail = { sub: `subject-${++subjects}` };
  const lonely = platform.as(fragmentOf(await signIn(withoutEmail)).get("access_token") ?? "");
  const own = (await lonely.get<{ identities: { id: string }[] }>("/api/auth/identities")).body.identities;
  expect((await lonely.delete(`/api/auth/identities/${own[0]?.id}`)).status).toBe(409);
});

test("[HT145] a callback has each of its parameters once, by a query and by a form, which has at most 32 fields", async () => {
  const at = "/api/auth/oauth/club/callback";
  const post = (body: string) =>
    platform.fetch(at, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body,
      redirect: "manual",
    });
  const more = (count: number) => Array.from({ length: count }, (_, index) => `&n${index}=`).join("");
  expect((await post(`state=a&code=b${more(30)}`)).status).toBe(303);
  for (const form of ["state=a&code=b&code=c", "state=a&state=b", `state=a&code=b${more(31)}`, "state=%ff"]) {
    expect([form.slice(0, 40), (await post(form)).status]).toEqual([form.slice(0, 40), 400]);
  }
  for (const name of ["state", "code", "error"]) {
    const answer = await platform.get<{ data: object }>(`${at}?state=a&${name}=b&${name}=c&scope=x&scope=y`);
    expect([name, answer.status, Object.keys(answer.body.data)]).toEqual([name, 400, [name]]);
  }
});
