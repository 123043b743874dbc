import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { createAuthenticator } from "../../support/authenticator.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, startOidcProvider } from "../../support/oidc-provider.ts";
import { lastMail, mailedToken, nextEmail, outbox, PASSWORD, signUp, type Tokens } from "../auth/auth-support.ts";

// What administrators change of a user's address and password, and accounts that come without a password.

setDefaultTimeout(60_000);

const ADMIN_KEY = "admin-key-0123456789abcdefghijklmnopqrstuvw";
const CREDENTIALS_KEY = "credentials-key-0123456789abcdefghijklmnop";
const ORIGIN = "https://app.example.com";
const NEW_PASSWORD = "set by an administrator";

let platform: TestPlatform;
let provider: OidcProvider;

beforeAll(async () => {
  provider = await startOidcProvider();
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    config: {
      auth: {
        ...{ magicLink: true, emailOtp: true, anonymous: true, redirectUrls: [`${ORIGIN}/*`] },
        passkeys: { rpName: "Film Club", rpId: "app.example.com", origin: ORIGIN },
        oauth: { club: { clientId, clientSecret, issuer } },
      },
      serviceKeys: {
        support: { key: ADMIN_KEY, scopes: ["auth:admin:*:read", "auth:admin:*:write"] },
        owners: {
          key: CREDENTIALS_KEY,
          scopes: ["auth:admin:*:read", "auth:admin:*:write", "auth:credentials:*:write"],
        },
      },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
    },
  });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

const post = <T = Tokens>(path: string, body: JsonObject) => platform.post<T>(`/api/auth/${path}`, body);
const pathOf = (id: string, action = ""): string => `/api/auth/admin/users/${id}${action}`;
const patch = (id: string, changes: JsonObject, key = CREDENTIALS_KEY) =>
  platform.withKey(key).patch<ErrorAnswer & { [member: string]: unknown }>(pathOf(id), changes);
const signIn = async (email: string, password = PASSWORD) => (await post("signin", { email, password })).status;

describe("an administrator", () => {
  test("[US370] sets address, verification and password with a scope of its own, and nothing of it without", async () => {
    const { user } = await signUp(platform);
    for (const changes of [{ email: nextEmail() }, { emailVerified: true }, { password: NEW_PASSWORD }]) {
      expect((await patch(user.id, changes, ADMIN_KEY)).status).toBe(403);
      expect((await patch(user.id, { displayName: "x", ...changes }, ADMIN_KEY)).status).toBe(403);
    }
    const { body } = await platform.service.get(pathOf(user.id));
    expect(body).toMatchObject({ email: user.email, emailVerified: false, displayName: null });
    expect((await patch(user.id, { displayName: "Ann" }, ADMIN_KEY)).status).toBe(200);
    expect((await patch(user.id, { emailVerified: true })).body).toMatchObject({ emailVerified: true });
  });

  test("[US371] gives a user another address: sessions and mailed links end, and it is unverified", async () => {
    const { user, accessToken } = await signUp(platform);
    const former = String(user.email);
    await patch(user.id, { emailVerified: true });
    await post("request-password-reset", { email: former });
    const token = mailedToken(platform, former);
    const email = nextEmail();
    const changed = await patch(user.id, { email: ` ${email.toUpperCase()} ` });
    expect(changed.body).toMatchObject({ email, emailVerified: false });
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(401);
    expect((await post("reset-password", { token, newPassword: NEW_PASSWORD })).status).toBe(400);
    expect([await signIn(former), await signIn(email)]).toEqual([401, 200]);
    expect(lastMail(platform, former)).toMatchObject({ kind: "emailChanged", text: expect.stringContaining(former) });
    expect(lastMail(platform, former).text).not.toContain(email);
    const verified = await patch(user.id, { email: nextEmail(), emailVerified: true });
    expect(verified.body).toMatchObject({ emailVerified: true });
    // The same address again ends nothing.
    const again = await post("signin", { email: String(verified.body["email"]), password: PASSWORD });
    expect((await patch(user.id, { email: String(verified.body["email"]) })).body).toMatchObject({
      emailVerified: true,
    });
    expect((await platform.as(again.body.accessToken).get("/api/auth/me")).status).toBe(200);
    expect(outbox(platform).some(({ to }) => to === verified.body["email"])).toBe(false);
  });

  test("[US371] is refused an address that another account has, or that is none", async () => {
    const [one, other] = [await signUp(platform), await signUp(platform)];
    const taken = await patch(one.user.id, { email: String(other.user.email) });
    expect([taken.status, Object.keys(taken.body.data ?? {})]).toEqual([409, ["email"]]);
    expect((await patch(one.user.id, { email: "nobody" })).status).toBe(400);
    expect((await patch("nobody", { email: nextEmail() })).status).toBe(404);
  });

  test("[US372] sets a password: sessions end and passkeys go, unless they are to stay", async () => {
    for (const keepPasskeys of [false, true]) {
      const { user, accessToken } = await signUp(platform);
      const email = String(user.email);
      const caller = platform.as(accessToken);
      const options = await caller.post<{ challenge: string }>("/api/auth/passkeys/register-options");
      const response = createAuthenticator({ rpId: "app.example.com", origin: ORIGIN }).register(options.body);
      expect((await caller.post("/api/auth/passkeys/register", response)).status).toBe(200);
      const changes = keepPasskeys ? { password: NEW_PASSWORD, keepPasskeys } : { password: NEW_PASSWORD };
      expect((await patch(user.id, changes)).status).toBe(200);
      expect((await caller.get("/api/auth/me")).status).toBe(401);
      expect([await signIn(email), await signIn(email, NEW_PASSWORD)]).toEqual([401, 200]);
      const means = await platform.service.get<{ passkeys: unknown[] }>(pathOf(user.id, "/means"));
      expect(means.body.passkeys).toHaveLength(keepPasskeys ? 1 : 0);
    }
    const { user } = (await post("signin/anonymous", {})).body;
    for (const changes of [{ password: NEW_PASSWORD }, { emailVerified: true }]) {
      const answer = await patch(user.id, changes);
      expect([answer.status, Object.keys(answer.body.data ?? {})]).toEqual([400, Object.keys(changes)]);
    }
    expect((await patch(user.id, { password: "short" })).status).toBe(400);
  });

  test("[US373] sends a reset and a verification, to the page that is named", async () => {
    const { user } = await signUp(platform);
    const email = String(user.email);
    const support = platform.withKey(ADMIN_KEY);
    const redirectUrl = `${ORIGIN}/reset`;
    expect((await support.post(pathOf(user.id, "/send-reset"), { redirectUrl })).body).toEqual({ ok: true });
    expect(lastMail(platform, email)).toMatchObject({ kind: "passwordReset" });
    expect(lastMail(platform, email).link).toStartWith(`${redirectUrl}?token=`);
    expect((await support.post(pathOf(user.id, "/send-verification"))).status).toBe(200);
    expect((await post("verify-email", { token: mailedToken(platform, email) })).status).toBe(200);
    expect((await support.post(pathOf(user.id, "/send-verification"))).status).toBe(409);
    expect((await support.post(pathOf(user.id, "/send-reset"), { redirectUrl: "https://evil.example/" })).status).toBe(
      400,
    );
    await support.patch(pathOf(user.id), { disabled: true });
    expect((await support.post(pathOf(user.id, "/send-reset"))).status).toBe(409);
    const anonymous = (await post("signin/anonymous", {})).body.user;
    for (const action of ["/send-reset", "/send-verification"]) {
      expect((await support.post(pathOf(anonymous.id, action))).status).toBe(400);
      expect((await support.post(pathOf("nobody", action))).status).toBe(404);
      expect((await platform.post(pathOf(user.id, action))).status).toBe(401);
    }
  });

  test("[US374] is in the audit log with all of it, and without the password", async () => {
    const { user } = await signUp(platform);
    const email = nextEmail();
    await patch(user.id, { email });
    await patch(user.id, { password: NEW_PASSWORD });
    await platform.withKey(ADMIN_KEY).post(pathOf(user.id, "/send-reset"));
    const path = `/api/admin/audit?target=users/${user.id}`;
    const { body } = await platform.service.get<{
      entries: { action: string; actor: JsonObject; after: JsonObject }[];
    }>(path);
    const shown = body.entries.map(({ action, after }) => ({ action, after }));
    expect(shown).toContainEqual({ action: "user.update", after: expect.objectContaining({ email }) });
    expect(shown).toContainEqual({ action: "user.update", after: expect.objectContaining({ password: "[hidden]" }) });
    expect(shown).toContainEqual({ action: "user.mail", after: { mail: "passwordReset" } });
    expect(JSON.stringify(body)).not.toContain(NEW_PASSWORD);
    expect(JSON.stringify(body)).not.toContain("argon2");
  });
});

describe("what was mailed", () => {
  const ENDS: [name: string, end: (id: string) => Promise<unknown>][] = [
    ["revocation", (id) => platform.service.post(pathOf(id, "/revoke"))],
    [
      "disabling",
      async (id) => {
        await platform.service.patch(pathOf(id), { disabled: true });
        await platform.service.patch(pathOf(id), { disabled: false });
      },
    ],
  ];
  test.each([...ENDS])(
    "[US375] before a %s opens nothing after it: reset, link, code, verification",
    async (_, end) => {
      const { user, accessToken } = await signUp(platform);
      const email = String(user.email);
      await post("request-password-reset", { email });
      const reset = mailedToken(platform, email);
      await platform.as(accessToken).post("/api/auth/request-email-verification");
      const verification = mailedToken(platform, email);
      await post("signin/magic-link", { email });
      const link = mailedToken(platform, email);
      await post("signin/email-otp", { email });
      const { code = "" } = lastMail(platform, email);
      await end(user.id);
      expect((await post("reset-password", { token: reset, newPassword: NEW_PASSWORD })).status).toBe(400);
      expect((await post("verify-email", { token: verification })).status).toBe(400);
      expect((await post("verify-magic-link", { token: link })).status).toBe(400);
      expect((await post("verify-email-otp", { email, code })).status).toBe(400);
    },
  );

  test("[AU286] a change of the address tells of no account, and mails few strangers", async () => {
    const known = String((await signUp(platform)).user.email);
    const { accessToken } = await signUp(platform);
    const caller = platform.as(accessToken);
    const ask = (newEmail: string) => caller.post("/api/auth/change-email", { newEmail, password: PASSWORD });
    const [ofKnown, ofStranger] = [await ask(known), await ask(nextEmail())];
    expect([ofKnown.status, ofKnown.body]).toEqual([ofStranger.status, ofStranger.body]);
    expect(outbox(platform).filter(({ to, kind }) => to === known && kind === "emailChange")).toEqual([]);
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(nextEmail())));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(17);
  });
});

describe("an import", () => {
  const importUsers = (users: JsonObject[]) =>
    platform.service.post<ErrorAnswer & { [member: string]: unknown }>("/api/admin/auth/users/import", {
      users,
    } as never);

  test("[US376] takes accounts without a password, with the time of their creation", async () => {
    const email = nextEmail();
    const createdAt = "2019-05-04T10:00:00.000Z";
    expect((await importUsers([{ email, createdAt, verified: true }])).status).toBe(200);
    const { body } = await platform.service.get<{ users: JsonObject[] }>("/api/auth/admin/users", { query: { email } });
    expect(body.users).toMatchObject([{ email, createdAt }]);
    expect(await signIn(email)).toBe(401);
    await post("signin/magic-link", { email });
    expect((await post("verify-magic-link", { token: mailedToken(platform, email) })).status).toBe(200);
  });

  test("[US385] takes users who are disabled, or whose address is public", async () => {
    const users = [
      { email: "kept-out@example.com", password: "correct horse battery", disabled: true, emailVisibility: "public" },
      { email: "let-in@example.com", password: "correct horse battery" },
    ];
    const { status } = await platform.service.post("/api/admin/auth/users/import", { users });
    expect(status).toBe(200);
    const signIn = ({ email, password }: { email: string; password: string }) =>
      platform.post("/api/auth/signin", { email, password });
    const [keptOut, letIn] = await Promise.all(users.map(signIn));
    expect(keptOut).toMatchObject({ status: 403, body: { message: "Account is disabled" } });
    expect(letIn).toMatchObject({ status: 200, body: { user: { emailVisibility: "private" } } });
    const { body } = await platform.service.get<{ users: { id: string }[] }>(
      "/api/auth/admin/users?email=kept-out@example.com",
    );
    const account = await platform.service.get(`/api/auth/admin/users/${body.users[0]?.id}`);
    expect(account.body).toMatchObject({ disabled: true, emailVisibility: "public" });
    const wrong = [{ email: "x@example.com", emailVisibility: "hidden" }];
    expect((await platform.service.post("/api/admin/auth/users/import", { users: wrong })).status).toBe(400);
  });

  test("[US376] takes identities at providers, which sign in", async () => {
    const [email, id] = [nextEmail(), "from-elsewhere"];
    const identities = [{ provider: "club", subject: "subject of elsewhere", email, emailVerified: true }];
    expect((await importUsers([{ id, email, identities }])).status).toBe(200);
    const begun = await platform.fetch("/api/auth/oauth/club");
    const user = { sub: "subject of elsewhere", email: nextEmail(), email_verified: false };
    const { pathname, search } = new URL(provider.approve(begun.headers.get("location") ?? "", user));
    const back = await platform.fetch(pathname + search);
    const token = new URLSearchParams(new URL(back.headers.get("location") ?? "").hash.slice(1)).get("access_token");
    expect((await platform.as(token ?? "").get<Tokens>("/api/auth/me")).body.user.id).toBe(id);
  });

  test("[US376] is refused as a whole for what does not fit, with the field", async () => {
    const identity = { provider: "club", subject: "subject of two" };
    const WRONG: [fields: JsonObject, name: string, status: number][] = [
      [{ createdAt: "yesterday" }, "createdAt", 400],
      [{ identities: [{ ...identity, provider: "nobody" }] }, "identities", 400],
      [{ identities: [{ ...identity, subject: " " }] }, "identities.0.subject", 400],
      [{ identities: Array.from({ length: 11 }, (_, n) => ({ ...identity, subject: `s${n}` })) }, "identities", 400],
      [{ identities: [identity, identity] }, "identities", 409],
      [{ identities: [{ provider: "club", subject: "subject of elsewhere" }] }, "identities", 409],
      [{ id: "anonymous" }, "id", 400],
      [{ password: "correct horse battery", passwordHash: "x" }, "password", 400],
    ];
    for (const [fields, name, status] of WRONG) {
      const good = nextEmail();
      const answer = await importUsers([{ email: good }, { email: nextEmail(), ...fields }]);
      expect([name, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([name, status, [`users.1.${name}`]]);
      const { body } = await platform.service.get("/api/auth/admin/users", { query: { email: good } });
      expect(body).toMatchObject({ users: [] });
    }
  });
});

test("[US377] whoever acts as a user ends no session, by a refresh token neither", async () => {
  const { user, refreshToken, accessToken } = await signUp(platform);
  const headers = { "x-platform-act-as": user.id, "content-type": "application/json" };
  for (const body of [JSON.stringify({ refreshToken }), "{}"]) {
    const answer = await platform.service.fetch("/api/auth/signout", { method: "POST", headers, body });
    expect(answer.status).toBe(403);
  }
  expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);
});
