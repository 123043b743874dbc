import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { lastMail, mailedToken, nextEmail, outbox, PASSWORD, signUp, type Tokens } from "./auth-support.ts";

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({
    config: {
      server: { publicUrl: "https://api.example.com" },
      auth: {
        ...{ magicLink: true, redirectUrls: ["https://app.example.com/*"] },
        mail: { templates: { invite: { subject: "Join us, {{email}}", text: "Come: {{link}}" } } },
      },
      rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
      serviceKeys: { reader: { key: "reader-key-0123456789", scopes: ["auth:admin:*:read"] } },
    },
  });
});
afterAll(() => platform.stop());

const INVITE = "/api/auth/admin/users/invite";
const NEW_PASSWORD = "words of the invited";

const invite = (body: JsonObject) => platform.service.post<{ user: JsonObject & { id: string } }>(INVITE, body);
const accept = (token: string, body: JsonObject = {}) =>
  platform.post<Tokens & ErrorAnswer>("/api/auth/accept-invite", { token, password: NEW_PASSWORD, ...body });
const passwordSignIn = (email: string, password: string) =>
  platform.post<Tokens>("/api/auth/signin", { email, password });

/** An invited address, and the token mailed to it. */
async function invited(body: JsonObject = {}): Promise<{ email: string; id: string; token: string }> {
  const email = nextEmail();
  const answer = await invite({ email, ...body });
  expect(answer.status).toBe(201);
  return { email, id: answer.body.user.id, token: mailedToken(platform, email) };
}

describe("inviting", () => {
  test("[US203] answers the new user and mails a link, which leads to redirectUrl", async () => {
    const email = nextEmail();
    const redirectUrl = "https://app.example.com/welcome?from=mail";
    const metadata = { team: "blue" };
    const { status, body } = await invite({ email: email.toUpperCase(), role: "editor", metadata, redirectUrl });
    expect(status).toBe(201);
    expect(body.user).toMatchObject({ email, role: "editor", metadata, emailVerified: false, disabled: false });
    expect((await platform.service.get(`/api/auth/admin/users/${body.user.id}`)).body).toMatchObject(body.user);
    const mail = lastMail(platform, email);
    expect(mail).toMatchObject({ kind: "invite", to: email, subject: `Join us, ${email}`, text: `Come: ${mail.link}` });
    expect(mail.link).toStartWith(`${redirectUrl}&token=`);
    const plain = await invited();
    expect(lastMail(platform, plain.email).link).toStartWith("https://api.example.com/auth/accept-invite?token=");
  });

  test("[US203] needs the right to write; its faults are named", async () => {
    const email = nextEmail();
    const { accessToken } = await signUp(platform);
    expect((await platform.post(INVITE, { email })).status).toBe(401);
    expect((await platform.as(accessToken).post(INVITE, { email })).status).toBe(401);
    expect((await platform.withKey("reader-key-0123456789").post(INVITE, { email })).status).toBe(403);
    const faults: [body: JsonObject, status: number, field: string][] = [
      [{}, 400, "email"],
      [{ email: "no address" }, 400, "email"],
      [{ email, role: "" }, 400, "role"],
      [{ email, password: PASSWORD }, 400, "password"],
      [{ email, redirectUrl: "https://evil.example.com/" }, 400, "redirectUrl"],
      [{ email, metadata: { text: "x".repeat(17_000) } }, 413, "metadata"],
    ];
    for (const [body, status, field] of faults) {
      const answer = await platform.service.post<ErrorAnswer>(INVITE, body);
      expect([field, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([field, status, [field]]);
    }
    const found = await platform.service.get<{ users: JsonObject[] }>(`/api/auth/admin/users?email=${email}`);
    expect(found.body.users).toEqual([]);
  });

  test("[US204] again mails a new link, and the old one ends; absent members stay", async () => {
    const { email, id, token } = await invited({ role: "editor", metadata: { n: 1 } });
    const again = await invite({ email, metadata: { n: 2 } });
    expect([again.status, again.body.user]).toMatchObject([201, { id, role: "editor", metadata: { n: 2 } }]);
    const fresh = mailedToken(platform, email);
    expect(fresh).not.toBe(token);
    expect((await accept(token)).status).toBe(400);
    expect((await accept(fresh)).status).toBe(200);
  });

  test("[US204] many at once leave one link that works", async () => {
    const email = nextEmail();
    const answers = await Promise.all(Array.from({ length: 5 }, () => invite({ email })));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
    expect(new Set(answers.map(({ body }) => body.user.id)).size).toBe(1);
    const tokens = outbox(platform)
      .filter(({ to }) => to === email)
      .map(({ link }) => new URL(link ?? "").searchParams.get("token") ?? "");
    const accepted = [];
    for (const token of tokens) accepted.push((await accept(token)).status);
    expect(accepted.sort()).toEqual([200, 400, 400, 400, 400]);
  });

  test("[US204] 409 for a user who has signed in, and for a disabled one; users without a session may be invited", async () => {
    const { user } = await signUp(platform);
    const signedIn = await platform.service.post<ErrorAnswer>(INVITE, { email: String(user.email), role: "admin" });
    expect([signedIn.status, signedIn.body.data?.["email"]?.code]).toEqual([409, "not_unique"]);
    expect((await platform.service.get(`/api/auth/admin/users/${user.id}`)).body["role"]).toBe("user");
    const byAdministrator = await signIn(platform);
    expect((await invite({ email: byAdministrator.email })).status).toBe(409);
    const disabled = await invited();
    await platform.service.patch(`/api/auth/admin/users/${disabled.id}`, { disabled: true });
    expect((await invite({ email: disabled.email })).status).toBe(409);
    const email = nextEmail();
    const imported = { users: [{ id: `id-${email}`, email, password: PASSWORD, verified: true, role: "editor" }] };
    expect((await platform.service.post("/api/admin/auth/users/import", imported)).status).toBe(200);
    expect((await invite({ email })).body.user).toMatchObject({
      id: `id-${email}`,
      role: "editor",
      emailVerified: true,
    });
    expect((await accept(mailedToken(platform, email))).status).toBe(200);
    expect((await passwordSignIn(email, PASSWORD)).status).toBe(401);
  });
});

describe("accepting", () => {
  test("[AU220] sets password and name, verifies the address and signs in, once", async () => {
    const { email, id, token } = await invited({ role: "editor" });
    const short = await accept(token, { password: "short" });
    expect([short.status, short.body.data?.["password"]?.code]).toEqual([400, "too_short"]);
    expect((await accept(token, { role: "admin" })).body.data?.["role"]?.code).toBe("unknown_field");
    const { status, body } = await accept(token, { displayName: "Ada" });
    expect([status, body.user]).toMatchObject([
      200,
      { id, email, displayName: "Ada", role: "editor", emailVerified: true, isAnonymous: false },
    ]);
    expect((await platform.as(body.accessToken).get("/api/auth/me")).status).toBe(200);
    expect((await platform.post("/api/auth/refresh", { refreshToken: body.refreshToken })).status).toBe(200);
    expect((await passwordSignIn(email, NEW_PASSWORD)).status).toBe(200);
    const again = await accept(token, { password: "another password" });
    expect([again.status, again.body.data?.["token"]?.code]).toEqual([400, "invalid_value"]);
    expect((await passwordSignIn(email, NEW_PASSWORD)).status).toBe(200);
  });

  test("[AU220] the token is good for nothing else, no other is good for it, and two at once accept once", async () => {
    const { email, token } = await invited();
    for (const path of ["verify-email", "verify-magic-link", "verify-email-change"]) {
      expect((await platform.post(`/api/auth/${path}`, { token })).status).toBe(400);
    }
    expect((await platform.post("/api/auth/reset-password", { token, newPassword: NEW_PASSWORD })).status).toBe(400);
    await platform.post("/api/auth/signin/magic-link", { email });
    expect((await accept(mailedToken(platform, email))).status).toBe(400);
    const racing = await Promise.all([accept(token), accept(token, { password: "another password" })]);
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 400]);
  });

  test("[AU221] a link ends when its user signs in otherwise, is disabled, revoked or deleted", async () => {
    const ends: [name: string, end: (user: { email: string; id: string }) => Promise<unknown>][] = [
      ["disabled", ({ id }) => platform.service.patch(`/api/auth/admin/users/${id}`, { disabled: true })],
      ["revoked", ({ id }) => platform.service.post(`/api/auth/admin/users/${id}/revoke`)],
      ["deleted", ({ id }) => platform.service.delete(`/api/auth/admin/users/${id}`)],
      [
        "magic link",
        async ({ email }) => {
          await platform.post("/api/auth/signin/magic-link", { email });
          const signedIn = await platform.post("/api/auth/verify-magic-link", { token: mailedToken(platform, email) });
          expect(signedIn.status).toBe(200);
        },
      ],
      [
        "password reset",
        async ({ email }) => {
          await platform.post("/api/auth/request-password-reset", { email });
          const token = mailedToken(platform, email);
          const reset = await platform.post("/api/auth/reset-password", { token, newPassword: PASSWORD });
          expect(reset.status).toBe(200);
        },
      ],
    ];
    for (const [name, end] of ends) {
      const user = await invited();
      await end(user);
      expect([name, (await accept(user.token)).status]).toEqual([name, 400]);
    }
  });

  test("[AU221] a user of an import who signs in with the old password ends the invitation", async () => {
    const email = nextEmail();
    const imported = { users: [{ email, password: PASSWORD, verified: true }] };
    expect((await platform.service.post("/api/admin/auth/users/import", imported)).status).toBe(200);
    expect((await invite({ email })).status).toBe(201);
    const token = mailedToken(platform, email);
    expect((await passwordSignIn(email, PASSWORD)).status).toBe(200);
    expect((await accept(token)).status).toBe(400);
    expect((await invite({ email })).status).toBe(409);
  });

  test("[AU222] what was set on an unverified account before the invitation opens nothing", async () => {
    const email = nextEmail();
    const created = await platform.service.post("/api/auth/admin/users", { email, password: PASSWORD });
    expect(created.status).toBe(201);
    await platform.post("/api/auth/request-password-reset", { email });
    const reset = mailedToken(platform, email);
    expect((await invite({ email, role: "admin" })).status).toBe(201);
    const token = mailedToken(platform, email);
    expect((await passwordSignIn(email, PASSWORD)).status).toBe(401);
    const old = await platform.post("/api/auth/reset-password", { token: reset, newPassword: "of the squatter" });
    expect(old.status).toBe(400);
    expect((await platform.post("/api/auth/signup", { email, password: PASSWORD })).status).toBe(409);
    expect((await accept(token)).status).toBe(200);
    expect((await passwordSignIn(email, PASSWORD)).status).toBe(401);
  });

  test("[AU220] an invitation outlives a killed server; without passwords none is needed", async () => {
    const { token, email } = await invited();
    await platform.kill();
    await platform.restart({ config: { auth: { emailPassword: false, magicLink: true } } });
    const { status, body } = await platform.post<Tokens>("/api/auth/accept-invite", { token });
    expect([status, body.user]).toMatchObject([200, { email, emailVerified: true }]);
  });
});
