import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";
import { lastMail, mailedToken, nextEmail, outbox, PASSWORD, signUp, type Tokens } from "./auth-support.ts";

let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({
    config: {
      server: { publicUrl: "https://api.example.com/" },
      auth: {
        ...{
          magicLink: true,
          emailOtp: true,
          redirectUrls: ["https://app.example.com/done", "https://app.example.com/in/*"],
        },
        mail: {
          from: "Film Club <club@example.com>",
          templates: {
            verification: { subject: "Hello {{email}}", text: "Go to {{link}}", html: "<a href='{{link}}'>go</a>" },
          },
        },
      },
      rateLimits: {
        auth: { requests: 100_000, window: 60 },
        signup: { requests: 100_000, window: 60 },
        signin: { requests: 1_000, window: 60 },
      },
    },
  });
});
afterAll(() => platform.stop());

const post = <T = ErrorAnswer>(path: string, body: { [field: string]: string }) =>
  platform.post<T>(`/api/auth/${path}`, body);
const signIn = (email: string, password: string) => post<Tokens>("signin", { email, password });

describe("confirming an address", () => {
  test("[AU16] the mailed token verifies the address, once", async () => {
    const { user, accessToken } = await signUp(platform);
    const caller = platform.as(accessToken);
    expect((await caller.post("/api/auth/request-email-verification")).body).toEqual({ ok: true });
    const token = mailedToken(platform, String(user.email));
    expect((await post("verify-email", { token })).body as unknown).toEqual({ ok: true });
    const me = await caller.get<{ user: Tokens["user"] }>("/api/auth/me");
    expect(me.body.user.emailVerified).toBe(true);
    expect((await post("verify-email", { token })).status).toBe(400);
    const mails = outbox(platform).length;
    expect((await caller.post("/api/auth/request-email-verification")).status).toBe(200);
    expect(outbox(platform)).toHaveLength(mails);
    expect((await post("request-email-verification", {})).status).toBe(401);
  });

  test("[AU25] the config's templates and sender are used; values are escaped in HTML", async () => {
    const { user, accessToken } = await signUp(platform);
    const redirectUrl = "https://app.example.com/in/?a=1&b=2";
    await platform.as(accessToken).post("/api/auth/request-email-verification", { redirectUrl });
    const mail = lastMail(platform, String(user.email)) as ReturnType<typeof lastMail> & { html: string };
    expect(mail).toMatchObject({ subject: `Hello ${user.email}`, from: "Film Club <club@example.com>" });
    expect(mail.text).toBe(`Go to ${mail.link}`);
    expect(mail.html).toContain("?a=1&amp;b=2&amp;token=");
  });
});

describe("resetting a password", () => {
  test("[AU17] the mailed token sets a new password, once, and ends every session", async () => {
    const { user, accessToken, refreshToken } = await signUp(platform);
    const email = String(user.email);
    await post("request-password-reset", { email });
    const token = mailedToken(platform, email);
    expect((await post("reset-password", { token, newPassword: "short" })).status).toBe(400);
    expect((await post("reset-password", { token, newPassword: "a new password" })).status).toBe(200);
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(401);
    expect((await post("refresh", { refreshToken })).status).toBe(401);
    expect((await signIn(email, PASSWORD)).status).toBe(401);
    expect((await signIn(email, "a new password")).status).toBe(200);
    expect((await post("reset-password", { token, newPassword: "another password" })).status).toBe(400);
  });

  test("[AU17] the first reset link used ends the others", async () => {
    const { user } = await signUp(platform);
    const email = String(user.email);
    await post("request-password-reset", { email });
    const first = mailedToken(platform, email);
    await post("request-password-reset", { email });
    const second = mailedToken(platform, email);
    expect((await post("reset-password", { token: second, newPassword: "a new password" })).status).toBe(200);
    expect((await post("reset-password", { token: first, newPassword: "the attacker's" })).status).toBe(400);
  });

  test("[AU21] of two concurrent resets with one token, one succeeds", async () => {
    const { user } = await signUp(platform);
    const email = String(user.email);
    await post("request-password-reset", { email });
    const token = mailedToken(platform, email);
    const attempts = Array.from({ length: 6 }, (_, n) =>
      post("reset-password", { token, newPassword: `new password ${n}` }),
    );
    const statuses = (await Promise.all(attempts)).map((answer) => answer.status);
    expect(statuses.toSorted()).toEqual([200, 400, 400, 400, 400, 400]);
    expect((await signIn(email, `new password ${statuses.indexOf(200)}`)).status).toBe(200);
  });

  test("[AU23] the answer to a reset request does not reveal whether an account exists", async () => {
    const { user } = await signUp(platform);
    const mails = outbox(platform).length;
    const known = await post("request-password-reset", { email: String(user.email) });
    const unknown = await post("request-password-reset", { email: nextEmail() });
    expect([unknown.status, unknown.body]).toEqual([known.status, known.body]);
    expect(outbox(platform)).toHaveLength(mails + 1);
    const bad = { redirectUrl: "https://evil.example/" };
    const refused = [
      await post("request-password-reset", { email: String(user.email), ...bad }),
      await post("request-password-reset", { email: nextEmail(), ...bad }),
    ];
    expect(refused.map((answer) => answer.status)).toEqual([400, 400]);
    expect(refused[0]?.body).toEqual(refused[1]?.body as ErrorAnswer);
  });
});

describe("signing in by mail", () => {
  test("[AU18] a magic link signs in once; an unknown address becomes a verified user", async () => {
    const email = nextEmail();
    expect((await post("signin/magic-link", { email: email.toUpperCase() })).body as unknown).toEqual({ ok: true });
    const token = mailedToken(platform, email);
    const signedIn = await post<Tokens>("verify-magic-link", { token });
    expect(signedIn.status).toBe(200);
    expect(signedIn.body.user).toMatchObject({ email, emailVerified: true });
    expect((await platform.as(signedIn.body.accessToken).get("/api/auth/me")).status).toBe(200);
    expect((await post("verify-magic-link", { token })).status).toBe(400);
    await post("signin/magic-link", { email });
    const again = await post<Tokens>("verify-magic-link", { token: mailedToken(platform, email) });
    expect(again.body.user.id).toBe(signedIn.body.user.id);
  });

  test("[AU21] a magic link opened twice concurrently signs in once", async () => {
    const email = nextEmail();
    await post("signin/magic-link", { email });
    const token = mailedToken(platform, email);
    const answers = await Promise.all(Array.from({ length: 6 }, () => post("verify-magic-link", { token })));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 400, 400, 400, 400, 400]);
  });

  test("[AU19] a mailed code signs in once, for its own address only", async () => {
    const [email, other] = [nextEmail(), nextEmail()];
    await post("signin/email-otp", { email });
    await post("signin/email-otp", { email: other });
    const code = lastMail(platform, email).code ?? "";
    expect(code).toMatch(/^\d{6}$/);
    if (code !== lastMail(platform, other).code) {
      expect((await post("verify-email-otp", { email: other, code })).status).toBe(400);
    }
    const signedIn = await post<Tokens>("verify-email-otp", { email, code });
    expect(signedIn.status).toBe(200);
    expect(signedIn.body.user).toMatchObject({ email, emailVerified: true });
    expect((await post("verify-email-otp", { email, code })).status).toBe(400);
  });

  test("[AU19] five wrong guesses invalidate the code, also when sent at once", async () => {
    const email = nextEmail();
    await post("signin/email-otp", { email });
    const code = lastMail(platform, email).code ?? "";
    const wrong = (n: number) => String((Number(code) + n + 1) % 1_000_000).padStart(6, "0");
    for (let n = 0; n < 4; n++) expect((await post("verify-email-otp", { email, code: wrong(n) })).status).toBe(400);
    await post("signin/email-otp", { email });
    const fresh = lastMail(platform, email).code ?? "";
    const attempts = Array.from({ length: 5 }, (_, n) =>
      post("verify-email-otp", { email, code: String((Number(fresh) + n + 1) % 1_000_000).padStart(6, "0") }),
    );
    await Promise.all(attempts);
    expect((await post("verify-email-otp", { email, code: fresh })).status).toBe(400);
  });

  test("[AU24] whoever registered another person's address loses it when the owner proves it", async () => {
    const email = nextEmail();
    const squatter = await signUp(platform, email);
    await post("signin/magic-link", { email });
    const owner = await post<Tokens>("verify-magic-link", { token: mailedToken(platform, email) });
    expect(owner.body.user).toMatchObject({ id: squatter.user.id, emailVerified: true });
    expect((await platform.as(squatter.accessToken).get("/api/auth/me")).status).toBe(401);
    expect((await post("refresh", { refreshToken: squatter.refreshToken })).status).toBe(401);
    expect((await signIn(email, PASSWORD)).status).toBe(401);
  });

  test("[AU18] a verified user who opens a magic link keeps password and sessions", async () => {
    const { user, accessToken } = await signUp(platform);
    const email = String(user.email);
    await platform.as(accessToken).post("/api/auth/request-email-verification");
    await post("verify-email", { token: mailedToken(platform, email) });
    await post("signin/magic-link", { email });
    expect((await post("verify-magic-link", { token: mailedToken(platform, email) })).status).toBe(200);
    expect((await signIn(email, PASSWORD)).status).toBe(200);
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);
  });

  test("[AU18] only the right link or code reveals that an account is disabled", async () => {
    const { user } = await signUp(platform);
    const email = String(user.email);
    await post("signin/magic-link", { email });
    await post("signin/email-otp", { email });
    await post("request-password-reset", { email });
    const mails = outbox(platform).filter((mail) => mail.to === email);
    const tokenOf = (kind: string) =>
      new URL(mails.find((mail) => mail.kind === kind)?.link ?? "").searchParams.get("token") ?? "";
    await platform.service.patch(`/api/auth/admin/users/${user.id}`, { disabled: true });
    expect((await post("signin/magic-link", { email })).status).toBe(200);
    const code = mails.find((mail) => mail.code !== undefined)?.code ?? "";
    const right = [
      await post("verify-magic-link", { token: tokenOf("magicLink") }),
      await post("verify-email-otp", { email, code }),
      await post("reset-password", { token: tokenOf("passwordReset"), newPassword: "a new password" }),
    ];
    for (const answer of right) expect([answer.status, answer.body.message]).toEqual([403, "Account is disabled"]);
    expect((await post("verify-magic-link", { token: "wrong" })).status).toBe(400);
  });
});

describe("changing the address", () => {
  test("[AU20] the mailed token changes the address and ends every session", async () => {
    const { user, accessToken } = await signUp(platform);
    const newEmail = nextEmail();
    const caller = platform.as(accessToken);
    const change = (password: string, address = newEmail) =>
      caller.post("/api/auth/change-email", { newEmail: address, password });
    expect((await change("not the password")).status).toBe(401);
    const taken = await signUp(platform);
    expect((await change(PASSWORD, String(taken.user.email))).status).toBe(200);
    expect((await change(PASSWORD)).status).toBe(200);
    expect((await caller.get<{ user: Tokens["user"] }>("/api/auth/me")).body.user.email).toBe(user.email);
    const token = mailedToken(platform, newEmail);
    expect((await post("verify-email-change", { token })).body as unknown).toEqual({ ok: true });
    expect((await caller.get("/api/auth/me")).status).toBe(401);
    expect(lastMail(platform, String(user.email))).toMatchObject({ kind: "emailChanged" });
    expect((await signIn(String(user.email), PASSWORD)).status).toBe(401);
    expect((await signIn(newEmail, PASSWORD)).body.user).toMatchObject({
      id: user.id,
      email: newEmail,
      emailVerified: true,
    });
    expect((await post("verify-email-change", { token })).status).toBe(400);
  });

  test("[AU20] an address that another user has taken meanwhile is 409, and nothing changes", async () => {
    const { user, accessToken } = await signUp(platform);
    const newEmail = nextEmail();
    await platform.as(accessToken).post("/api/auth/change-email", { newEmail, password: PASSWORD });
    await signUp(platform, newEmail);
    expect((await post("verify-email-change", { token: mailedToken(platform, newEmail) })).status).toBe(409);
    expect((await signIn(String(user.email), PASSWORD)).status).toBe(200);
  });
});

describe("links", () => {
  test("[AU21] a token is valid for its own purpose only", async () => {
    const { user, accessToken } = await signUp(platform);
    const email = String(user.email);
    await platform.as(accessToken).post("/api/auth/request-email-verification");
    const token = mailedToken(platform, email);
    expect((await post("reset-password", { token, newPassword: "a new password" })).status).toBe(400);
    expect((await post("verify-magic-link", { token })).status).toBe(400);
    expect((await post("verify-email-change", { token })).status).toBe(400);
    expect((await post("verify-email", { token })).status).toBe(200);
  });

  test("[AU42] no mailed token is stored readable in the database", async () => {
    const [email, other] = [nextEmail(), nextEmail()];
    await post("signin/magic-link", { email });
    await post("signin/email-otp", { email: other });
    const names = ["system.db", "system.db-wal"].map((name) => join(platform.dataDirectory, name));
    const stored = names.filter((path) => existsSync(path)).map((path) => readFileSync(path).toString("latin1"));
    expect(stored.join("")).toContain("one_time_secrets");
    expect(stored.join("")).not.toContain(mailedToken(platform, email));
    // Six digits may occur by chance; what would hold the code would name it.
    expect(stored.join("")).not.toContain(`"code":"${lastMail(platform, other).code}"`);
    expect(stored.join("")).not.toContain(PASSWORD);
  });

  test("[AU22] links lead to publicUrl, whatever the Host header says", async () => {
    const email = nextEmail();
    const headers = { host: "evil.example", "x-forwarded-host": "evil.example", origin: "https://evil.example" };
    await platform.post("/api/auth/signin/magic-link", { email }, { headers });
    const mail = lastMail(platform, email);
    expect(mail.link).toStartWith("https://api.example.com/auth/magic-link?token=");
    expect(JSON.stringify(mail)).not.toContain("evil");
  });

  test.each([
    "https://evil.example/",
    "https://app.example.com.evil.example/in/",
    "https://app.example.com@evil.example/in/",
    "https://app.example.com/in/../../out",
    "https://app.example.com/done?next=https://evil.example",
    "https://user:pass@app.example.com/done",
    "http://app.example.com/done",
    "https://app.example.com:8443/done",
    "//evil.example/in/",
    "javascript:alert(1)",
    "https://app.example.com\\@evil.example/in/",
    "/done",
  ])("[AU22] a redirectUrl of %p is 400", async (redirectUrl) => {
    const mails = outbox(platform).length;
    for (const path of ["signin/magic-link", "request-password-reset"]) {
      const answer = await post(path, { email: nextEmail(), redirectUrl });
      expect(answer.status).toBe(400);
      expect(answer.body.data?.["redirectUrl"]?.code).toBe("invalid_value");
    }
    expect(outbox(platform)).toHaveLength(mails);
  });

  test("[AU22] the redirectUrl of a code is checked too, and not used", async () => {
    const email = nextEmail();
    const evil = await post("signin/email-otp", { email, redirectUrl: "https://evil.example/" });
    expect([evil.status, Object.keys(evil.body.data ?? {})]).toEqual([400, ["redirectUrl"]]);
    expect((await post("signin/email-otp", { email, redirectUrl: "https://app.example.com/done" })).status).toBe(200);
    const mail = lastMail(platform, email);
    expect(mail.code).toMatch(/^\d{6}$/);
    expect(JSON.stringify(mail)).not.toContain("app.example.com");
  });

  test("[AU22] an allowed redirectUrl keeps its query and gets the token", async () => {
    for (const redirectUrl of ["https://app.example.com/done", "https://app.example.com/in/deep?x=1#part"]) {
      const email = nextEmail();
      await post("signin/magic-link", { email, redirectUrl });
      const link = new URL(lastMail(platform, email).link ?? "");
      expect(link.searchParams.get("token")).toMatch(/^[\w-]{43}$/);
      link.searchParams.delete("token");
      expect(link.href).toBe(redirectUrl);
    }
  });

  test("[AU23] mails to one address are limited, whether or not it has an account", async () => {
    const [known, unknown] = [String((await signUp(platform)).user.email), nextEmail()];
    for (const email of [known, unknown]) {
      const statuses: number[] = [];
      for (let n = 0; n < 31; n++) statuses.push((await post("request-password-reset", { email })).status);
      expect(statuses).toEqual([...Array(30).fill(200), 429]);
    }
  });
});

test.each([
  ["the name of auth.appName", 'appName: "Film Club <3"', "Film Club <3"],
  [
    "the rpName of passkeys",
    'passkeys: { rpName: "Films", rpId: "example.com", origin: "https://example.com" }',
    "Films",
  ],
  ["the host of the public address", "", "films.example.com"],
])(
  "[AU290] the built-in texts of mails name the product by %s, and templates have {{appName}}",
  async (_, auth, name) => {
    const named = await testPlatform({
      config: `{ server: { publicUrl: "https://films.example.com" }, auth: { magicLink: true, emailOtp: true, ${auth} } }`,
    });
    const email = "ann@example.com";
    await named.post("/api/auth/signin/magic-link", { email });
    expect(lastMail(named, email)).toMatchObject({ subject: `Your sign-in link to ${name}` });
    expect(lastMail(named, email).text).toContain(`To sign in to ${name} as ${email}, open`);
    await named.service.post("/api/auth/admin/users/invite", { email: "bob@example.com" });
    expect(lastMail(named, "bob@example.com")).toMatchObject({ subject: `You are invited to ${name}` });
    const html = "<b>{{appName}}</b>";
    await named.restart({
      config: `{ server: { publicUrl: "https://films.example.com" }, auth: { ${auth === "" ? "" : `${auth},`}
      mail: { templates: { invite: { subject: "{{appName}}", text: "{{appName}} {{link}}", html: "${html}" } } } } }`,
    });
    await named.service.post("/api/auth/admin/users/invite", { email: "eve@example.com" });
    expect(lastMail(named, "eve@example.com")).toMatchObject({
      subject: name,
      html: `<b>${name.replace("<", "&lt;")}</b>`,
    });
    await named.stop();
  },
);
