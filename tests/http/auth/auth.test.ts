import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";
import { nextEmail, PASSWORD, signUp, type Tokens } from "./auth-support.ts";

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      auth: { anonymous: true },
      rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
      databases: { shared: { tables: { notes: { access: { read: (auth) => auth !== null && auth.role === "editor", insert: (auth) => auth !== null && auth.custom.plan === "pro" } } } } },
    }`,
  });
});
afterAll(() => platform.stop());

const signIn = (email: string, password: string) => platform.post<Tokens>("/api/auth/signin", { email, password });
const refresh = (refreshToken: string) => platform.post<Tokens>("/api/auth/refresh", { refreshToken });

describe("signing up and in", () => {
  test("[AU1] sign-up answers 201 with the user and tokens; the email is trimmed and lower-cased", async () => {
    const answer = await platform.post<Tokens>("/api/auth/signup", {
      email: "  Ada.Lovelace@Example.COM ",
      password: PASSWORD,
      displayName: "Ada",
      metadata: { likes: ["engines"] },
    });
    expect(answer.status).toBe(201);
    expect(answer.body.user).toMatchObject({
      email: "ada.lovelace@example.com",
      displayName: "Ada",
      avatarUrl: null,
      role: "user",
      emailVerified: false,
      isAnonymous: false,
      metadata: { likes: ["engines"] },
      customClaims: {},
    });
    expect(Object.keys(answer.body.user)).not.toContain("appMetadata");
    expect(JSON.stringify(answer.body)).not.toContain("argon2");
    const me = await platform.as(answer.body.accessToken).get<{ user: unknown }>("/api/auth/me");
    expect(me.body.user).toEqual(answer.body.user);
    expect((await signIn("ADA.lovelace@example.com", PASSWORD)).status).toBe(200);
  });

  test("[AU1] a known email is 409, and the account stays as it was", async () => {
    const { user } = await signUp(platform);
    const again = await platform.post<ErrorAnswer>("/api/auth/signup", {
      email: String(user.email).toUpperCase(),
      password: "another password",
    });
    expect(again.status).toBe(409);
    expect(again.body.data?.["email"]?.code).toBe("not_unique");
    expect((await signIn(String(user.email), PASSWORD)).status).toBe(200);
  });

  test("[AU1] two concurrent sign-ups with one email create one account", async () => {
    const email = nextEmail();
    const body = { email, password: PASSWORD };
    const answers = await Promise.all(Array.from({ length: 6 }, () => platform.post("/api/auth/signup", body)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409, 409, 409, 409, 409]);
  });

  test.each([
    "plain",
    "a@b",
    "@example.com",
    "a b@example.com",
    "a@example..com",
    "a@-x.com",
    "a,b@example.com",
    "a\n@example.com",
    `${"x".repeat(250)}@example.com`,
    "a@example.-com",
    "a@example.com-",
    "a@x-.com",
    "a@127.0.0.1",
    "a@example.123",
    ".a@example.com",
    "a.@example.com",
    "a..b@example.com",
    "a\u200b@example.com",
    "\u212Aim@example.com",
    "kim@\u212Aino.example",
    "a@exam\u00adple.com",
    "a\u2028b@example.com",
    "a\u00a0b@example.com",
    "a\u0085b@example.com",
    "a\ud800@example.com",
  ])("[AU1] %p is no email address: 400", async (email) => {
    const answer = await platform.post<ErrorAnswer>("/api/auth/signup", { email, password: PASSWORD });
    expect(answer.status).toBe(400);
    expect(answer.body.data?.["email"]).toBeDefined();
  });

  test.each([
    ["a+b.c@sub.example.co.uk", "a+b.c@sub.example.co.uk"],
    ["josé@exämple.com", "josé@xn--exmple-cua.com"],
    ["o'neil@x1.io", "o'neil@x1.io"],
  ])("[AU1] %p is one", async (email, one) => {
    expect((await signUp(platform, email)).user.email).toBe(one);
  });

  test("[AU2] names that every object inherits are unknown fields", async () => {
    const email = nextEmail();
    const names = ["constructor", "toString", "__proto__", "hasOwnProperty"];
    const rest = names.map((name) => `${JSON.stringify(name)}:1`).join(",");
    const response = await platform.fetch("/api/auth/signup", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: `{"email":"${email}","password":"${PASSWORD}",${rest}}`,
    });
    expect(response.status).toBe(400);
    const { data = {} } = (await response.json()) as ErrorAnswer;
    expect(Object.entries(data).map(([name, { code }]) => [name, code])).toEqual(
      names.map((name) => [name, "unknown_field"]),
    );
    expect((await signIn(email, PASSWORD)).status).toBe(401);
  });

  test("[AU45] unpaired surrogates are 400 in every text", async () => {
    const half = "x\ud800x";
    const { user, accessToken } = await signUp(platform);
    const email = String(user.email);
    const own = platform.as(accessToken);
    const attempts: [field: string, attempt: Promise<{ status: number; body: ErrorAnswer }>][] = [
      ["email", platform.post<ErrorAnswer>("/api/auth/signup", { email: `${half}@example.com`, password: PASSWORD })],
      ["password", platform.post<ErrorAnswer>("/api/auth/signup", { email: nextEmail(), password: half.repeat(4) })],
      ["password", platform.post<ErrorAnswer>("/api/auth/signin", { email, password: half.repeat(4) })],
      ["displayName", own.patch<ErrorAnswer>("/api/auth/me", { displayName: half })],
      ["avatarUrl", own.patch<ErrorAnswer>("/api/auth/me", { avatarUrl: `https://example.com/${half}` })],
      ["refreshToken", platform.post<ErrorAnswer>("/api/auth/refresh", { refreshToken: half })],
    ];
    for (const [field, attempt] of attempts) {
      const { status, body } = await attempt;
      expect([status, body.data?.[field]?.code]).toEqual([400, "invalid_value"]);
    }
  });

  test("[AU45] characters are counted as users see them", async () => {
    const own = platform.as((await signUp(platform)).accessToken);
    expect((await own.patch("/api/auth/me", { displayName: "🦊".repeat(256) })).status).toBe(200);
    const long = await own.patch<ErrorAnswer>("/api/auth/me", { displayName: "🦊".repeat(257) });
    expect([long.status, long.body.data?.["displayName"]?.code]).toEqual([400, "too_long"]);
    expect((await own.patch("/api/auth/me", { displayName: "x".repeat(257) })).status).toBe(400);
  });

  test("[AU2] sign-up, PATCH me and link refuse every field that is not the user's to set", async () => {
    const forbidden = {
      ...{ id: "chosen", role: "admin", disabled: false, emailVerified: true, isAnonymous: false },
      ...{ appMetadata: { a: 1 }, customClaims: { a: 1 }, claims: {}, passwordHash: "x", createdAt: "2020-01-01" },
    };
    const email = nextEmail();
    const user = await signUp(platform);
    const anonymous = await platform.post<Tokens>("/api/auth/signin/anonymous");
    for (const [field, value] of Object.entries(forbidden)) {
      const answers = [
        await platform.post<ErrorAnswer>("/api/auth/signup", { email, password: PASSWORD, [field]: value }),
        await platform.as(user.accessToken).patch<ErrorAnswer>("/api/auth/me", { [field]: value }),
        await platform
          .as(anonymous.body.accessToken)
          .post<ErrorAnswer>("/api/auth/link/email", { email, password: PASSWORD, [field]: value }),
      ];
      for (const answer of answers) {
        expect(answer.status).toBe(400);
        expect(answer.body.data?.[field]?.code).toBe("unknown_field");
      }
    }
    expect((await signIn(email, PASSWORD)).status).toBe(401);
    const me = await platform.as(user.accessToken).get<{ user: Tokens["user"] }>("/api/auth/me");
    expect(me.body.user).toEqual(user.user);
  });

  test("[AU3] a wrong password and an unknown email are answered alike, byte for byte", async () => {
    const { user } = await signUp(platform);
    const wrong = await signIn(String(user.email), "not the password");
    const unknown = await signIn("nobody-here@example.com", "not the password");
    expect(wrong.status).toBe(401);
    expect(wrong.body as unknown).toEqual({ code: 401, message: "Invalid email or password" });
    expect(unknown.body).toEqual(wrong.body);
    expect(unknown.status).toBe(wrong.status);
  });

  test("[AU3] an unknown email costs a password hash, as a wrong password does", async () => {
    const { user } = await signUp(platform);
    // Hashes take turns, and each answer has its least time from its own turn on: what a crowd takes longer is hashes.
    const crowd = 10 * Math.max(1, availableParallelism() - 1);
    const body = (email: string) => ({ email, password: "not the password" });
    const time = async (email: string) => {
      const startedAt = performance.now();
      const attempt = () => platform.service.post("/api/auth/signin", body(email));
      const answers = await Promise.all(Array.from({ length: crowd }, attempt));
      expect(answers.map(({ status }) => status)).toEqual(Array(crowd).fill(401));
      const tookMs = performance.now() - startedAt;
      expect(tookMs).toBeGreaterThan(290);
      return tookMs - 290;
    };
    let [known, unknown] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    // In turns, so that a busy machine slows both down.
    for (let run = 0; run < 3; run++) {
      known = Math.min(known, await time(String(user.email)));
      unknown = Math.min(unknown, await time("nobody-at-all@example.com"));
    }
    expect(unknown).toBeGreaterThan(known / 3);
    expect(known).toBeGreaterThan(unknown / 3);
  });

  test("[AU4] passwords: 8 characters at least, 1024 bytes at most, and every byte counts", async () => {
    const attempt = (password: string) =>
      platform.post<ErrorAnswer>("/api/auth/signup", { email: nextEmail(), password });
    expect((await attempt("seven77")).body.data?.["password"]?.code).toBe("too_short");
    expect((await attempt("x".repeat(1025))).body.data?.["password"]?.code).toBe("too_long");
    expect((await attempt("é".repeat(513))).body.data?.["password"]?.code).toBe("too_long");
    const email = nextEmail();
    const long = "x".repeat(1024);
    expect((await platform.post("/api/auth/signup", { email, password: long })).status).toBe(201);
    expect((await signIn(email, `${long.slice(0, -1)}y`)).status).toBe(401);
    expect((await signIn(email, long.slice(0, -1))).status).toBe(401);
    expect((await signIn(email, long)).status).toBe(200);
  });

  test("[AU5] an anonymous user gets an email and a password, and stays the same user", async () => {
    const anonymous = await platform.post<Tokens>("/api/auth/signin/anonymous");
    expect(anonymous.status).toBe(201);
    expect(anonymous.body.user).toMatchObject({ isAnonymous: true, email: null });
    const caller = platform.as(anonymous.body.accessToken);
    const email = nextEmail();
    const taken = await signUp(platform);
    const link = (address: string) =>
      caller.post<Tokens>("/api/auth/link/email", { email: address, password: PASSWORD });
    expect((await link(String(taken.user.email))).status).toBe(409);
    const linked = await link(email);
    expect(linked.status).toBe(200);
    expect(linked.body.user).toMatchObject({ id: anonymous.body.user.id, email, isAnonymous: false });
    expect((await link(nextEmail())).status).toBe(400);
    expect((await signIn(email, PASSWORD)).body.user.id).toBe(anonymous.body.user.id);
    expect((await platform.post("/api/auth/link/email", { email, password: PASSWORD })).status).toBe(401);
  });

  test("[AU6] PATCH me changes the profile; metadata is replaced whole, and 16 KB are its limit", async () => {
    const { accessToken } = await signUp(platform);
    const user = platform.as(accessToken);
    const changed = await user.patch<{ user: Tokens["user"] }>("/api/auth/me", {
      ...{ displayName: "Grace", avatarUrl: "https://example.com/g.png", emailVisibility: "public" },
      metadata: { a: 1, b: { c: true } },
    });
    expect(changed.status).toBe(200);
    expect(changed.body.user).toMatchObject({ displayName: "Grace", emailVisibility: "public" });
    await user.patch("/api/auth/me", { metadata: { d: 2 }, displayName: null });
    const me = await user.get<{ user: Tokens["user"] }>("/api/auth/me");
    expect(me.body.user).toMatchObject({ displayName: null, avatarUrl: "https://example.com/g.png" });
    expect(me.body.user["metadata"]).toEqual({ d: 2 });
    const filled = (bytes: number) => ({ metadata: { x: "y".repeat(bytes - '{"x":""}'.length) } });
    expect((await user.patch("/api/auth/me", filled(16_384))).status).toBe(200);
    expect((await user.patch("/api/auth/me", filled(16_385))).status).toBe(413);
    for (const bad of [{ avatarUrl: "javascript:alert(1)" }, { emailVisibility: "friends" }, { displayName: 5 }]) {
      expect((await user.patch("/api/auth/me", bad)).status).toBe(400);
    }
    expect((await platform.get("/api/auth/me")).body).toEqual({ code: 401, message: "Authentication required" });
  });
});

describe("sessions", () => {
  test("[AU7] each refresh replaces the token, and the old one gives the same new one for a while", async () => {
    const first = await signUp(platform);
    const second = await refresh(first.refreshToken);
    expect(second.status).toBe(200);
    expect(second.body.refreshToken).not.toBe(first.refreshToken);
    const otherTab = await refresh(first.refreshToken);
    expect(otherTab.status).toBe(200);
    expect(otherTab.body.refreshToken).toBe(second.body.refreshToken);
    expect((await platform.as(otherTab.body.accessToken).get("/api/auth/me")).status).toBe(200);
  });

  test("[AU7] tabs that refresh at the same time all get a working token", async () => {
    const first = await signUp(platform);
    const answers = await Promise.all(Array.from({ length: 8 }, () => refresh(first.refreshToken)));
    expect(answers.map((answer) => answer.status)).toEqual(Array(8).fill(200));
    for (const answer of answers) expect((await refresh(answer.body.refreshToken)).status).toBe(200);
  });

  test("[AU8] a made-up refresh token is 401 and ends no session", async () => {
    const { refreshToken, accessToken } = await signUp(platform);
    const [session, generation, mac = ""] = refreshToken.split(".");
    const forged = [
      `${session}.${generation}.${"A".repeat(43)}`,
      `${session}.7.${mac}`,
      `${session}.${generation}.${mac.slice(0, -2)}`,
      `x${refreshToken}`,
      accessToken,
      "garbage",
    ];
    for (const token of forged) expect((await refresh(token)).status).toBe(401);
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);
    expect((await refresh(refreshToken)).status).toBe(200);
  });

  test("[AU9] signing out with a refresh token or an access token ends the session at once", async () => {
    const { user } = await signUp(platform);
    const one = (await signIn(String(user.email), PASSWORD)).body;
    const two = (await signIn(String(user.email), PASSWORD)).body;
    expect((await platform.post("/api/auth/signout", { refreshToken: one.refreshToken })).body).toEqual({ ok: true });
    expect((await platform.as(one.accessToken).get("/api/auth/me")).body).toEqual({
      code: 401,
      message: "Invalid token",
    });
    expect((await refresh(one.refreshToken)).status).toBe(401);
    expect((await platform.as(two.accessToken).post("/api/auth/signout")).status).toBe(200);
    expect((await platform.as(two.accessToken).get("/api/auth/me")).status).toBe(401);
    expect((await refresh(two.refreshToken)).status).toBe(401);
    expect((await platform.post("/api/auth/signout")).status).toBe(401);
  });

  test("[AU10] users list and end their own sessions only, one at a time", async () => {
    const { user, accessToken } = await signUp(platform);
    const other = await signIn(String(user.email), PASSWORD);
    const caller = platform.as(accessToken);
    const { body } = await caller.get<{ sessions: { id: string; current: boolean }[] }>("/api/auth/sessions");
    expect(body.sessions.map((session) => session.current)).toEqual([false, true]);
    expect(Object.keys(body.sessions[0] ?? {}).sort()).toEqual([
      "createdAt",
      "current",
      "id",
      "ip",
      "lastUsedAt",
      "userAgent",
    ]);
    const otherId = body.sessions.find((session) => !session.current)?.id ?? "";
    const stranger = await signUp(platform);
    expect((await platform.as(stranger.accessToken).delete(`/api/auth/sessions/${otherId}`)).status).toBe(404);
    expect((await platform.as(other.body.accessToken).get("/api/auth/me")).status).toBe(200);
    expect((await caller.delete(`/api/auth/sessions/${otherId}`)).status).toBe(200);
    expect((await platform.as(other.body.accessToken).get("/api/auth/me")).status).toBe(401);
    expect((await caller.delete(`/api/auth/sessions/${otherId}`)).status).toBe(404);
    expect((await caller.get("/api/auth/me")).status).toBe(200);
  });

  test("[AU11] a changed password ends every other session, and the old password no longer works", async () => {
    const { user, accessToken } = await signUp(platform);
    const other = await signIn(String(user.email), PASSWORD);
    const caller = platform.as(accessToken);
    const change = (currentPassword: string, newPassword: string) =>
      caller.post<Tokens>("/api/auth/change-password", { currentPassword, newPassword });
    expect((await change("not the password", "a new password")).status).toBe(401);
    expect((await change(PASSWORD, "short")).status).toBe(400);
    const changed = await change(PASSWORD, "a new password");
    expect(changed.status).toBe(200);
    expect((await caller.get("/api/auth/me")).status).toBe(401);
    expect((await platform.as(changed.body.accessToken).get("/api/auth/me")).status).toBe(200);
    expect((await refresh(changed.body.refreshToken)).status).toBe(200);
    expect((await platform.as(other.body.accessToken).get("/api/auth/me")).status).toBe(401);
    expect((await refresh(other.body.refreshToken)).status).toBe(401);
    expect((await signIn(String(user.email), PASSWORD)).status).toBe(401);
    expect((await signIn(String(user.email), "a new password")).status).toBe(200);
  });

  test("[AU13] a role takes effect at once, claims with the next token", async () => {
    const { user, accessToken, refreshToken } = await signUp(platform);
    const caller = platform.as(accessToken);
    const path = "/api/db/shared/tables/notes";
    expect((await caller.get(path)).status).toBe(403);
    await platform.service.patch(`/api/auth/admin/users/${user.id}`, { role: "editor" });
    expect((await caller.get(path)).status).toBe(200);
    await platform.service.patch(`/api/auth/admin/users/${user.id}`, { role: "user" });
    expect((await caller.get(path)).status).toBe(403);
    await platform.service.put(`/api/auth/admin/users/${user.id}/claims`, { plan: "pro" });
    expect((await caller.post(path, { text: "a" })).status).toBe(403);
    const renewed = await refresh(refreshToken);
    expect(renewed.body.user["customClaims"]).toEqual({ plan: "pro" });
    expect((await platform.as(renewed.body.accessToken).post(path, { text: "a" })).status).toBe(201);
  });

  test("[AU14] sessions and revocations survive a killed server", async () => {
    const kept = await signUp(platform);
    const ended = await signUp(platform);
    await platform.post("/api/auth/signout", { refreshToken: ended.refreshToken });
    await platform.kill("SIGKILL");
    await platform.restart();
    expect((await platform.as(kept.accessToken).get("/api/auth/me")).status).toBe(200);
    expect((await refresh(kept.refreshToken)).status).toBe(200);
    expect((await platform.as(ended.accessToken).get("/api/auth/me")).status).toBe(401);
    expect((await refresh(ended.refreshToken)).status).toBe(401);
  });
});
