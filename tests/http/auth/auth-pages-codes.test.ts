import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, startOidcProvider } from "../../support/oidc-provider.ts";
import { lastMail, nextEmail, PASSWORD, signUp, type Tokens, totpCode } from "./auth-support.ts";
import { alertOf, noticeOf, PageVisitor, pkce, type Shown } from "./pages-visitor.ts";

// Applications that sign in by the pages: codes, where they may lead to, tickets to the account page.

const APP = "https://app.example.com/back";
let platform: TestPlatform;
let provider: OidcProvider;
beforeAll(async () => {
  provider = await startOidcProvider();
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    config: `{
      auth: {
        anonymous: true, magicLink: true, mfa: { totp: true }, pages: { home: "https://app.example.com/home" },
        redirectUrls: ["https://app.example.com/*", "myapp://signed-in"],
        oauth: { club: ${JSON.stringify({ issuer, clientId, clientSecret })} },
      },
      rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
    }`,
  });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

const begin = (to: string, more: Record<string, string> = {}, page = "sign-in"): string =>
  `/auth/${page}?${new URLSearchParams({ return_to: to, code_challenge: pkce().challenge, ...more })}`;

const redeem = <T = Tokens>(code: string, codeVerifier = pkce().verifier) =>
  platform.post<T>("/api/auth/pages/redeem", { code, codeVerifier });

const codeOf = ({ left }: Shown): string => new URL(left ?? "").searchParams.get("code") ?? "";

/** A browser that an application has sent to sign in. */
async function sent(to = APP): Promise<PageVisitor> {
  const visitor = new PageVisitor(platform);
  expect((await visitor.open(begin(to))).path).toBe("/auth/sign-in");
  return visitor;
}

const sessionsOf = async (token: string): Promise<number> =>
  (await platform.as(token).get<{ sessions: unknown[] }>("/api/auth/sessions")).body.sessions.length;

test("[AU340] the browser comes back with a code, which begins the session; the pages keep none", async () => {
  const { user, accessToken } = await signUp(platform);
  const visitor = await sent(`${APP}?page=2#part`);
  const back = await visitor.send("/auth/sign-in", { email: user.email ?? "", password: PASSWORD });
  expect(back.left).toStartWith(`${APP}?page=2&code=`);
  expect(back.left).toEndWith("#part");
  expect(visitor.isSignedIn).toBe(false);
  expect(await sessionsOf(accessToken)).toBe(1);
  const answer = await redeem(codeOf(back));
  expect(answer.status).toBe(200);
  expect(answer.body.user.id).toBe(user.id);
  expect(await sessionsOf(answer.body.accessToken)).toBe(2);
  expect((await visitor.open("/auth")).path).toBe("/auth/sign-in");
  // It has just been proved who they are.
  expect((await platform.as(answer.body.accessToken).delete("/api/auth/me")).status).toBe(200);
});

test("[AU341] a code works once, with its verifier alone, and another verifier ends it", async () => {
  const { user } = await signUp(platform);
  const code = async (): Promise<string> =>
    codeOf(await (await sent()).send("/auth/sign-in", { email: user.email ?? "", password: PASSWORD }));
  const first = await code();
  const both = await Promise.all([redeem(first), redeem(first)]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 400]);
  const second = await code();
  expect((await redeem(second, "w".repeat(43))).status).toBe(400);
  expect((await redeem(second)).status).toBe(400);
  expect((await redeem("nonsense")).status).toBe(400);
  const third = await code();
  // It is no code of a provider, no ticket, and no token of a mail.
  expect((await platform.post("/api/auth/oauth/redeem", { code: third, codeVerifier: pkce().verifier })).status).toBe(
    400,
  );
  expect((await platform.post("/api/auth/mfa/verify", { mfaTicket: third, code: "123456" })).status).toBe(400);
  expect((await redeem(third)).status).toBe(200);
});

test("[AU341] a code begins no session of an account that has been disabled, revoked or deleted since", async () => {
  for (const change of ["disable", "revoke", "delete"] as const) {
    const { user } = await signUp(platform);
    const back = await (await sent()).send("/auth/sign-in", { email: user.email ?? "", password: PASSWORD });
    const path = `/api/auth/admin/users/${user.id}`;
    if (change === "disable") await platform.service.patch(path, { disabled: true });
    else if (change === "revoke") await platform.service.post(`${path}/revoke`);
    else await platform.service.delete(path);
    expect((await redeem(codeOf(back))).status).toBeGreaterThanOrEqual(400);
  }
});

test("[AU342] where no application may be led to is ignored, and said so", async () => {
  const refused = [
    "https://evil.example/back",
    "https://app.example.com.evil.example/back",
    "https://user@app.example.com/back",
    "//evil.example",
    "/\\evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "https:evil.example",
    `https://app.example.com/${"x".repeat(2_000)}`,
    "",
  ];
  for (const to of refused) {
    const { user } = await signUp(platform);
    const visitor = new PageVisitor(platform);
    const opened = await visitor.open(begin(to));
    expect(opened.path).toBe("/auth/sign-in");
    expect(noticeOf(opened)).toContain("is not known");
    const done = await visitor.send("/auth/sign-in", { email: user.email ?? "", password: PASSWORD });
    expect(done.left).toBe("https://app.example.com/home");
    expect(visitor.isSignedIn).toBe(true);
  }
  const visitor = new PageVisitor(platform);
  expect(noticeOf(await visitor.open(`/auth/sign-in?return_to=${encodeURIComponent(APP)}`))).toContain("is not known");
  expect((await visitor.open(begin(APP, { code_challenge: "short" }))).text).toContain("is not known");
});

test("[AU342] an address of the pages' own origin, and a scheme of redirectUrls, may be led to; forms may lead there", async () => {
  for (const to of [`${platform.url}/app`, "myapp://signed-in"]) {
    const { user } = await signUp(platform);
    const visitor = new PageVisitor(platform);
    const { headers } = await visitor.open(begin(to));
    const source = to.startsWith("myapp") ? "myapp:" : platform.url;
    expect(headers.get("content-security-policy")).toContain(`form-action 'self' ${source}`);
    const answer = await platform.fetch("/auth/sign-in", {
      method: "POST",
      redirect: "manual",
      headers: { cookie: visitor.cookieHeader("/auth/sign-in"), "sec-fetch-site": "same-origin" },
      body: new URLSearchParams({ email: user.email ?? "", password: PASSWORD }),
    });
    expect(answer.headers.get("location")).toStartWith(`${to}?code=`);
  }
});

test("[AU343] who is signed in at the pages presses Continue, and proves nothing anew by it", async () => {
  const { user } = await signUp(platform, nextEmail());
  const visitor = new PageVisitor(platform);
  await visitor.send("/auth/sign-in", { email: user.email ?? "", password: PASSWORD });
  const asked = await visitor.open(begin(APP));
  expect(asked.text).toContain(`Continue as ${user.email}`);
  const back = await visitor.send("/auth/continue", {});
  expect(back.left).toStartWith(`${APP}?code=`);
  const { body } = await redeem(codeOf(back));
  expect(body.user.id).toBe(user.id);
  // Only a press: not by being opened, and not from another site.
  await visitor.open(begin(APP));
  expect((await visitor.open("/auth/continue")).left).toBeNull();
  expect((await visitor.send("/auth/continue", {}, { "sec-fetch-site": "cross-site" })).status).toBe(403);
});

test("[AU344] it lasts through a mail, a second factor and a reset in that browser; elsewhere a link sends no code", async () => {
  const email = nextEmail();
  const visitor = await sent();
  await visitor.send("/auth/magic-link", { email });
  const link = new URL(lastMail(platform, email).link ?? "");
  await visitor.open(link.pathname + link.search);
  const back = await visitor.send("/auth/magic-link", {});
  const { body } = await redeem(codeOf(back));
  expect(body.user.email).toBe(email);

  const { factorId, secret } = (
    await platform.as(body.accessToken).post<{ factorId: string; secret: string }>("/api/auth/mfa/totp/enroll")
  ).body;
  await platform.as(body.accessToken).post("/api/auth/mfa/totp/verify", { factorId, code: totpCode(secret) });
  const second = await sent();
  await second.send("/auth/forgot-password", { email });
  const reset = new URL(lastMail(platform, email).link ?? "");
  await second.open(reset.pathname + reset.search);
  await second.send("/auth/reset-password", { password: PASSWORD });
  expect((await second.send("/auth/sign-in", { email, password: PASSWORD })).path).toBe("/auth/factor");
  const done = await second.send("/auth/factor", { code: totpCode(secret, 1) });
  expect((await redeem(codeOf(done))).body.user.email).toBe(email);

  const other = nextEmail();
  await (await sent()).send("/auth/magic-link", { email: other });
  const opened = new URL(lastMail(platform, other).link ?? "");
  const elsewhere = new PageVisitor(platform);
  await elsewhere.open(opened.pathname + opened.search);
  const home = await elsewhere.send("/auth/magic-link", {});
  expect(home.left).toBe("https://app.example.com/home");
  expect(elsewhere.isSignedIn).toBe(true);
});

/** Sends the browser to the provider and back, as somebody. */
async function throughProvider(
  visitor: PageVisitor,
  person: { sub: string; email: string; email_verified: boolean },
): Promise<Shown> {
  const away = await visitor.open("/auth/oauth/club");
  const back = new URL(await provider.approve(away.left ?? "", person));
  return visitor.open(back.pathname + back.search, { "sec-fetch-site": "cross-site" });
}

test("[AU344] it lasts through a provider, whose code only the browser that began can use", async () => {
  const visitor = await sent();
  const person = { sub: "pages-1", email: nextEmail(), email_verified: true };
  const back = await throughProvider(visitor, person);
  expect((await redeem(codeOf(back))).body.user.email).toBe(person.email);

  // Without an application, the pages' own session begins.
  const own = new PageVisitor(platform);
  expect((await throughProvider(own, person)).left).toBe("https://app.example.com/home");
  expect(own.isSignedIn).toBe(true);

  // An attacker's sign-in at the provider does not complete in another browser.
  const attacker = new PageVisitor(platform);
  const away = await attacker.open("/auth/oauth/club");
  const callback = new URL(await provider.approve(away.left ?? "", { ...person, sub: "pages-2", email: nextEmail() }));
  const at = await platform.fetch(callback.pathname + callback.search, {
    redirect: "manual",
    headers: { cookie: attacker.cookieHeader(callback.pathname), "sec-fetch-site": "cross-site" },
  });
  const code = new URL(at.headers.get("location") ?? "").search;
  const victim = new PageVisitor(platform);
  const shown = await victim.open(`/auth/oauth${code}`, { "sec-fetch-site": "cross-site" });
  expect(shown.status).toBe(400);
  expect(victim.isSignedIn).toBe(false);
});

test("[AU344] what a provider refuses is said, and so is an address that has an account already", async () => {
  const visitor = new PageVisitor(platform);
  const away = await visitor.open("/auth/oauth/club");
  const state = new URL(away.left ?? "").searchParams.get("state") ?? "";
  const declined = await visitor.open(
    `/api/auth/oauth/club/callback?${new URLSearchParams({ state, error: "access_denied" })}`,
    { "sec-fetch-site": "cross-site" },
  );
  expect(declined).toMatchObject({ status: 400 });
  expect(alertOf(declined)).toBe("The provider did not sign you in.");
  const { user } = await signUp(platform);
  const taken = await throughProvider(new PageVisitor(platform), {
    sub: "pages-3",
    email: user.email ?? "",
    email_verified: false,
  });
  expect(taken.status).toBe(409);
  expect(alertOf(taken)).toBe("This address has an account already.");
});

test("[AU345] an anonymous user who signs up by the pages keeps the account, and one session", async () => {
  const guest = (await platform.post<Tokens>("/api/auth/signin/anonymous")).body;
  const { url } = (await platform.as(guest.accessToken).post<{ url: string }>("/api/auth/pages/ticket")).body;
  const ticket = new URL(url).searchParams.get("ticket") ?? "";
  const visitor = new PageVisitor(platform);
  await visitor.open(begin(APP, { ticket }, "sign-up"));
  const email = nextEmail();
  const back = await visitor.send("/auth/sign-up", { email, name: "Gus", password: PASSWORD });
  const { body } = await redeem(codeOf(back));
  expect(body.user).toMatchObject({ id: guest.user.id, email, isAnonymous: false, displayName: "Gus" });
  expect(await sessionsOf(body.accessToken)).toBe(1);
  expect((await platform.as(guest.accessToken).get("/api/auth/me")).status).toBe(401);
  // Who signs in instead has another account, and the guest goes on.
  const other = (await platform.post<Tokens>("/api/auth/signin/anonymous")).body;
  const second = (await platform.as(other.accessToken).post<{ url: string }>("/api/auth/pages/ticket")).body;
  const known = new PageVisitor(platform);
  await known.open(begin(APP, { ticket: new URL(second.url).searchParams.get("ticket") ?? "" }));
  const signedIn = await known.send("/auth/sign-in", { email, password: PASSWORD });
  expect((await redeem(codeOf(signedIn))).body.user.id).toBe(guest.user.id);
  expect((await platform.as(other.accessToken).get("/api/auth/me")).status).toBe(200);
});

async function ticketed(accessToken: string): Promise<string> {
  const { status, body } = await platform.as(accessToken).post<{ url: string }>("/api/auth/pages/ticket");
  expect(status).toBe(200);
  const url = new URL(body.url);
  expect(url.origin).toBe(platform.url);
  return url.pathname + url.search;
}

test("[AU346] a ticket opens the account page in the caller's session, once, after a press", async () => {
  const { user, accessToken } = await signUp(platform);
  const path = await ticketed(accessToken);
  const visitor = new PageVisitor(platform);
  const opened = await visitor.open(path);
  expect(opened.path).toBe("/auth/open");
  expect(opened.text).toContain(`This is the account of ${user.email}.`);
  expect(visitor.isSignedIn).toBe(false);
  const again = new PageVisitor(platform);
  expect((await again.open(path)).status).toBe(400);
  const account = await visitor.send("/auth/open", {});
  expect(account.path).toBe("/auth/account");
  expect(await sessionsOf(accessToken)).toBe(1);
  await visitor.send("/auth/account", { action: "sign-out" });
  expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(401);
});

test("[AU346] a ticket gives nothing lasting: no code, and a session as short as an access token", async () => {
  const { accessToken } = await signUp(platform);
  const visitor = new PageVisitor(platform);
  await visitor.open(await ticketed(accessToken));
  const answer = await platform.fetch("/auth/open", {
    method: "POST",
    redirect: "manual",
    headers: {
      cookie: visitor.cookieHeader("/auth/open"),
      "sec-fetch-site": "same-origin",
      "content-type": "application/x-www-form-urlencoded",
    },
    body: "",
  });
  const cookie = answer.headers.getSetCookie().find((one) => one.includes("platform_session")) ?? "";
  expect(cookie).toContain("Max-Age=900");
  expect(cookie).toContain("HttpOnly; SameSite=Lax");
  await visitor.send("/auth/open", {});
  await visitor.open(await ticketed(accessToken));
  await visitor.send("/auth/open", {});
  const asked = await visitor.open(begin(APP));
  expect(asked.text).not.toContain("Continue as");
  expect((await visitor.send("/auth/continue", {})).left).toBeNull();
});

test("[AU346] a ticket is nobody's without a session, and a forged one nothing", async () => {
  expect((await platform.post("/api/auth/pages/ticket")).status).toBe(401);
  expect((await new PageVisitor(platform).open("/auth/account?ticket=forged")).status).toBe(400);
  const { accessToken } = await signUp(platform);
  const path = await ticketed(accessToken);
  await platform.as(accessToken).post("/api/auth/signout");
  expect((await new PageVisitor(platform).open(path)).status).toBe(400);
});

test("[AU351] begin answers an address and its verifier; an anonymous caller's account goes on", async () => {
  const begun = await platform.post<{ url: string; codeVerifier: string }>("/api/auth/pages/begin", { returnTo: APP });
  const url = new URL(begun.body.url);
  expect([url.origin, url.searchParams.has("ticket")]).toEqual([platform.url, false]);
  const { user } = await signUp(platform);
  const visitor = new PageVisitor(platform);
  await visitor.open(url.pathname + url.search);
  const back = await visitor.send("/auth/sign-in", { email: user.email ?? "", password: PASSWORD });
  expect((await redeem(codeOf(back), begun.body.codeVerifier)).body.user.id).toBe(user.id);

  const guest = (await platform.post<Tokens>("/api/auth/signin/anonymous")).body;
  const ofGuest = await platform
    .as(guest.accessToken)
    .post<{ url: string }>("/api/auth/pages/begin", { returnTo: APP });
  expect(new URL(ofGuest.body.url).searchParams.get("ticket")).toBeString();
  expect((await platform.post("/api/auth/pages/begin", {})).status).toBe(400);
  expect(
    (await platform.post("/api/auth/pages/begin", { returnTo: `https://a.example/${"x".repeat(1_100)}` })).status,
  ).toBe(400);
});

test("[AU345] who is lured into signing up as somebody else's guest shares nothing with them", async () => {
  const attacker = (await platform.post<Tokens>("/api/auth/signin/anonymous")).body;
  const { url } = (await platform.as(attacker.accessToken).post<{ url: string }>("/api/auth/pages/ticket")).body;
  const victim = new PageVisitor(platform);
  await victim.open(begin(APP, { ticket: new URL(url).searchParams.get("ticket") ?? "" }, "sign-up"));
  const email = nextEmail();
  const back = await victim.send("/auth/sign-up", { email, password: PASSWORD });
  expect(back.left).toStartWith(`${APP}?code=`);
  const me = (await platform.as(attacker.accessToken).get<{ user: Tokens["user"] }>("/api/auth/me")).body.user;
  expect(me).toMatchObject({ email: null, isAnonymous: true });
  // Once the address has an account, the code makes none of the guest.
  const own = await signUp(platform, email);
  expect((await redeem(codeOf(back))).status).toBe(409);
  expect(own.user.id).not.toBe(attacker.user.id);
});
