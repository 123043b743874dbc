import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { createAuthenticator } from "../../support/authenticator.ts";
import { type ErrorAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, type OidcUser, startOidcProvider } from "../../support/oidc-provider.ts";
import { lastMail, mailedToken, nextEmail, outbox, PASSWORD, signUp, type Tokens } from "./auth-support.ts";

const ORIGIN = "https://app.example.com";

let provider: OidcProvider;
let platform: TestPlatform;

const config = (requireVerifiedEmail: boolean) => {
  const { issuer, clientId, clientSecret } = provider;
  return {
    server: { publicUrl: "https://api.example.com" },
    auth: {
      ...{ requireVerifiedEmail, anonymous: true, magicLink: true, emailOtp: true, mfa: { totp: true } },
      redirectUrls: ["https://app.example.com/*"],
      passkeys: { rpName: "Film Club", rpId: "app.example.com", origin: ORIGIN },
      oauth: { club: { clientId, clientSecret, issuer } },
    },
    rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
  };
};

beforeAll(async () => {
  provider = await startOidcProvider();
  platform = await testPlatform({ config: config(true) });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

interface Pending extends Tokens, ErrorAnswer {
  verificationRequired: true;
}
const NOT_VERIFIED = { code: 403, message: "Email not verified" };

const post = (path: string, body: JsonObject = {}) => platform.post<Pending>(`/api/auth/${path}`, body);
const signInWith = (email: string, password = PASSWORD) => post("signin", { email, password });
const verify = (email: string) => post("verify-email", { token: mailedToken(platform, email) });
const mailsTo = (email: string): number => outbox(platform).filter(({ to }) => to === email).length;

async function byProvider(user: OidcUser): Promise<{ status: number; body: unknown }> {
  const begun = await platform.fetch("/api/auth/oauth/club");
  const { pathname, search } = new URL(provider.approve(begun.headers.get("location") ?? "", user));
  const back = await platform.fetch(pathname + search);
  return { status: back.status, body: back.status === 302 ? null : await back.json() };
}

describe("with a password", () => {
  test("[AU204] sign-up gives no tokens and mails a link; after it the user signs in", async () => {
    const email = nextEmail();
    const redirectUrl = "https://app.example.com/verify";
    const { status, body } = await post("signup", { email, password: PASSWORD, redirectUrl });
    expect(status).toBe(201);
    expect(Object.keys(body).sort()).toEqual(["user", "verificationRequired"]);
    expect(body).toMatchObject({ verificationRequired: true, user: { email, emailVerified: false } });
    const mail = lastMail(platform, email);
    expect(mail.kind).toBe("verification");
    expect(mail.link).toStartWith(`${redirectUrl}?token=`);
    const early = await signInWith(email);
    expect([early.status, early.body as unknown]).toEqual([403, NOT_VERIFIED]);
    expect((await signInWith(email, "wrong password")).status).toBe(401);
    expect((await verify(email)).status).toBe(200);
    const signedIn = await signInWith(email);
    expect([signedIn.status, signedIn.body.user]).toMatchObject([200, { id: body.user.id, emailVerified: true }]);
    expect((await platform.as(signedIn.body.accessToken).get("/api/auth/me")).status).toBe(200);
  });

  test("[AU204] a redirectUrl that is not allowed is 400 at sign-up, sign-in and link", async () => {
    const guest = platform.as((await post("signin/anonymous")).body.accessToken);
    const body = { email: nextEmail(), password: PASSWORD, redirectUrl: "https://evil.example.com/" };
    const answers = [
      await post("signup", body),
      await post("signin", body),
      await guest.post<Pending>("/api/auth/link/email", body),
    ];
    for (const answer of answers) {
      expect([answer.status, answer.body.data?.["redirectUrl"]?.code]).toEqual([400, "invalid_value"]);
    }
  });

  test("[AU205] sign-ins within a minute of the mail send no other, whoever sends them, a restart included", async () => {
    const email = nextEmail();
    await post("signup", { email, password: PASSWORD });
    const answers = await Promise.all(Array.from({ length: 4 }, () => signInWith(email)));
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    expect(mailsTo(email)).toBe(1);
    await platform.kill();
    await platform.restart();
    expect((await signInWith(email)).status).toBe(403);
    expect(mailsTo(email)).toBe(1);
  });

  test("[AU204] a disabled user learns that, and not that the address is unverified", async () => {
    const email = nextEmail();
    const { body } = await post("signup", { email, password: PASSWORD });
    await platform.service.patch(`/api/auth/admin/users/${body.user.id}`, { disabled: true });
    expect((await signInWith(email)).body).toMatchObject({ code: 403, message: "Account is disabled" });
    expect((await verify(email)).status).toBe(403);
  });

  test("[AU24] the owner of an address that somebody else has signed up with gets it by link, code or reset", async () => {
    const email = nextEmail();
    await post("signup", { email, password: "of the squatter" });
    await post("signin/magic-link", { email });
    const owner = await post("verify-magic-link", { token: mailedToken(platform, email) });
    expect([owner.status, owner.body.user.emailVerified]).toEqual([200, true]);
    expect((await signInWith(email, "of the squatter")).status).toBe(401);
  });
});

describe("an anonymous user", () => {
  test("[AU206] signs in, and stays as it is until the linked address is verified", async () => {
    const { body } = await post("signin/anonymous");
    const guest = platform.as(body.accessToken);
    const email = nextEmail();
    const linked = await guest.post<Pending>("/api/auth/link/email", { email, password: PASSWORD });
    expect(linked.status).toBe(200);
    expect(Object.keys(linked.body).sort()).toEqual(["user", "verificationRequired"]);
    const me = async () => (await guest.get<{ user: Tokens["user"] }>("/api/auth/me")).body.user;
    expect(await me()).toMatchObject({ id: body.user.id, email: null, isAnonymous: true, emailVerified: false });
    expect((await post("refresh", { refreshToken: body.refreshToken })).status).toBe(200);
    expect((await signInWith(email)).status).toBe(401);
    expect((await verify(email)).status).toBe(200);
    expect(await me()).toMatchObject({ id: body.user.id, email, isAnonymous: false, emailVerified: true });
    expect((await signInWith(email)).body.user.id).toBe(body.user.id);
    expect((await verify(email)).status).toBe(400);
  });

  test("[AU206] only the last address that was asked for can be verified, and only while it is free", async () => {
    const guest = platform.as((await post("signin/anonymous")).body.accessToken);
    const [first, second] = [nextEmail(), nextEmail()];
    for (const email of [first, second]) await guest.post("/api/auth/link/email", { email, password: PASSWORD });
    expect((await verify(first)).status).toBe(400);
    const other = await post("signup", { email: second, password: "of another user" });
    expect(other.status).toBe(201);
    const mails = outbox(platform).filter(({ to }) => to === second);
    const link = new URL(mails[0]?.link ?? "").searchParams.get("token") ?? "";
    expect((await post("verify-email", { token: link })).status).toBe(409);
    expect((await verify(second)).status).toBe(200);
    expect((await signInWith(second, "of another user")).body.user.id).toBe(other.body.user.id);
    expect((await guest.post("/api/auth/link/email", { email: second, password: PASSWORD })).status).toBe(409);
  });
});

describe("OAuth", () => {
  test("[AU207] a verified address signs in; an unverified one is 403 and gets the mail", async () => {
    const verified = nextEmail();
    expect((await byProvider({ sub: verified, email: verified, email_verified: true })).status).toBe(302);
    const email = nextEmail();
    const user = { sub: email, email, email_verified: false };
    expect(await byProvider(user)).toEqual({ status: 403, body: NOT_VERIFIED });
    expect(await byProvider(user)).toEqual({ status: 403, body: NOT_VERIFIED });
    expect(mailsTo(email)).toBe(1);
    expect((await verify(email)).status).toBe(200);
    expect((await byProvider(user)).status).toBe(302);
  });

  test("[AU207] without an address it is 403 `Email required`, and makes no user", async () => {
    const count = async () =>
      (await platform.service.get<{ users: [] }>("/api/auth/admin/users?limit=1000")).body.users.length;
    const before = await count();
    const answer = await byProvider({ sub: "without an address" });
    expect(answer).toEqual({ status: 403, body: { code: 403, message: "Email required" } });
    expect(await count()).toBe(before);
  });
});

describe("no other way gives tokens", () => {
  test("[AU208] sessions, passkeys and changes of the password of before give none until the address is verified", async () => {
    await platform.restart({ config: config(false) });
    const email = nextEmail();
    const before = await signUp(platform, email);
    const caller = platform.as(before.accessToken);
    const authenticator = createAuthenticator({ rpId: "app.example.com", origin: ORIGIN });
    const options = await caller.post<{ challenge: string }>("/api/auth/passkeys/register-options");
    expect((await caller.post("/api/auth/passkeys/register", authenticator.register(options.body))).status).toBe(200);
    const nameless = await byProvider({ sub: "no address of before" });
    expect(nameless.status).toBe(302);
    await platform.restart({ config: config(true) });
    const byPasskey = async () => {
      const given = await platform.post<{ challenge: string }>("/api/auth/passkeys/auth-options");
      return platform.post<Tokens>("/api/auth/passkeys/authenticate", authenticator.authenticate(given.body));
    };
    const refresh = () => post("refresh", { refreshToken: before.refreshToken });
    const change = () =>
      caller.post("/api/auth/change-password", { currentPassword: PASSWORD, newPassword: "another one" });
    for (const attempt of [byPasskey, refresh, change]) {
      const answer = await attempt();
      expect([answer.status, answer.body as unknown]).toEqual([403, NOT_VERIFIED]);
    }
    expect(mailsTo(email)).toBe(1);
    expect(await byProvider({ sub: "no address of before" })).toMatchObject({ body: { message: "Email required" } });
    expect((await verify(email)).status).toBe(200);
    expect((await byPasskey()).status).toBe(200);
    expect((await refresh()).status).toBe(200);
  });

  test("[AU208] links, codes, resets and invitations prove the address; administrators' users must", async () => {
    const [link, code, reset, invited] = [nextEmail(), nextEmail(), nextEmail(), nextEmail()];
    await post("signin/magic-link", { email: link });
    expect((await post("verify-magic-link", { token: mailedToken(platform, link) })).status).toBe(200);
    await post("signin/email-otp", { email: code });
    const mailed = lastMail(platform, code).code ?? "";
    expect((await post("verify-email-otp", { email: code, code: mailed })).status).toBe(200);
    await platform.service.post("/api/auth/admin/users", { email: reset, password: PASSWORD });
    expect((await signInWith(reset)).status).toBe(403);
    await post("request-password-reset", { email: reset });
    const token = mailedToken(platform, reset);
    expect((await post("reset-password", { token, newPassword: "set by its owner" })).status).toBe(200);
    expect((await signInWith(reset, "set by its owner")).status).toBe(200);
    await platform.service.post("/api/auth/admin/users/invite", { email: invited });
    const accepted = await post("accept-invite", { token: mailedToken(platform, invited), password: PASSWORD });
    expect(accepted.status).toBe(200);
  });

  test("[AU222] a link mailed to who signed up before the invitation opens nothing, and neither does the password", async () => {
    const email = nextEmail();
    await post("signup", { email, password: "of the squatter" });
    const squatters = mailedToken(platform, email);
    await byProvider({ sub: `squatter of ${email}`, email, email_verified: false });
    const invited = await platform.service.post<{ user: JsonObject }>("/api/auth/admin/users/invite", {
      email,
      role: "admin",
    });
    expect([invited.status, invited.body.user["role"]]).toEqual([201, "admin"]);
    expect((await post("verify-email", { token: squatters })).status).toBe(400);
    expect((await signInWith(email, "of the squatter")).status).toBe(401);
    const accepted = await post("accept-invite", { token: mailedToken(platform, email), password: PASSWORD });
    expect([accepted.status, accepted.body.user.role]).toEqual([200, "admin"]);
    expect((await signInWith(email, "of the squatter")).status).toBe(401);
    expect((await byProvider({ sub: `squatter of ${email}`, email, email_verified: false })).status).toBe(409);
  });
});

describe("who got an address verified by its owner, by mistake", () => {
  test("[AU101] loses an identity that the provider had not verified when the owner resets the password", async () => {
    const email = nextEmail();
    const squatter = { sub: `squatter of ${email}`, email, email_verified: false };
    await byProvider(squatter);
    expect((await verify(email)).status).toBe(200);
    expect((await byProvider(squatter)).status).toBe(302);
    // An address that is verified at the provider, but is another one, proves nothing about the account's.
    expect((await byProvider({ ...squatter, email: nextEmail(), email_verified: true })).status).toBe(302);
    await post("request-password-reset", { email });
    const token = mailedToken(platform, email);
    expect((await post("reset-password", { token, newPassword: "set by its owner" })).status).toBe(200);
    expect((await byProvider(squatter)).status).toBe(409);
    expect((await signInWith(email, "set by its owner")).status).toBe(200);
  });

  test("[AU101] an identity that the provider verifies, then or later, stays", async () => {
    for (const verifiedAtFirst of [true, false]) {
      const email = nextEmail();
      const user = { sub: email, email, email_verified: verifiedAtFirst };
      await byProvider(user);
      if (!verifiedAtFirst) await verify(email);
      expect((await byProvider({ ...user, email_verified: true })).status).toBe(302);
      await post("request-password-reset", { email });
      await post("reset-password", { token: mailedToken(platform, email), newPassword: "set by its owner" });
      expect((await byProvider(user)).status).toBe(302);
    }
  });
});

test("[AU206] a link counts as a sign-up, so that one session cannot mail hundreds of strangers", async () => {
  const { rateLimits, ...rest } = config(true);
  await platform.restart({ config: { ...rest, rateLimits: { ...rateLimits, signup: { requests: 3, window: 60 } } } });
  const guest = platform.as((await post("signin/anonymous")).body.accessToken);
  const link = async () =>
    (await guest.post("/api/auth/link/email", { email: nextEmail(), password: PASSWORD })).status;
  expect([await link(), await link(), await link()]).toEqual([200, 200, 429]);
});

test("[AU204] without requireVerifiedEmail sign-up gives tokens as before", async () => {
  await platform.restart({ config: config(false) });
  const { user, accessToken } = await signUp(platform);
  expect(user.emailVerified).toBe(false);
  expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);
  expect((await signIn(platform)).token).not.toBe("");
});
