import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, type OidcUser, startOidcProvider } from "../../support/oidc-provider.ts";
import { lastMail, mailedToken, nextEmail, outbox, PASSWORD, type Tokens } from "./auth-support.ts";

// Addresses that begin with "closed" may not become users, nor may guests while `guests` is closed. What the rule was asked is
// read by an insert into `asked`.

let provider: OidcProvider;
let platform: TestPlatform;

const config = (signup: string): string => `{
  auth: {
    anonymous: true, magicLink: true, emailOtp: true, redirectUrls: ["https://app.example.com/*"],
    oauth: { club: ${JSON.stringify({
      issuer: provider.issuer,
      clientId: provider.clientId,
      clientSecret: provider.clientSecret,
    })} },
    signup: ${signup},
  },
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 }, signin: { requests: 1000, window: 60 } },
  databases: { shared: { tables: {
    asked: { schema: { facts: { type: "json" } }, access: { insert: true, read: true }, hooks: {
      beforeInsert: () => ({ facts: (globalThis.asked ?? []).splice(0) }),
    } },
  } } },
}`;
const RULE = `async (facts) => {
  (globalThis.asked ??= []).push(structuredClone(facts));
  await Bun.sleep(1);
  facts.metadata.role = "spoilt";
  if (facts.email?.startsWith("throws")) throw new Error("the rule is broken");
  if (facts.email?.startsWith("number")) return 1;
  return facts.method !== "anonymous" && !facts.email?.startsWith("closed");
}`;

beforeAll(async () => {
  provider = await startOidcProvider();
  platform = await testPlatform({ config: config(RULE) });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

const CLOSED = { code: 403, message: "Sign-up is closed" };
const closedEmail = () => `closed-${nextEmail()}`;

const post = <T = Tokens & ErrorAnswer>(path: string, body: JsonObject = {}) =>
  platform.post<T>(`/api/auth/${path}`, body);
async function asked(): Promise<JsonObject[]> {
  return (await platform.post<{ facts: JsonObject[] }>("/api/db/shared/tables/asked", {})).body.facts;
}
async function isKnown(email: string): Promise<boolean> {
  const found = await platform.service.get<{ users: unknown[] }>(`/api/auth/admin/users?email=${email}`);
  return found.body.users.length === 1;
}
const mailsTo = (email: string): number => outbox(platform).filter(({ to }) => to === email).length;

async function byProvider(user: OidcUser): Promise<{ status: number; body: unknown }> {
  const begun = await platform.fetch("/api/auth/oauth/club");
  const { pathname, search } = new URL(provider.approve(begun.headers.get("location") ?? "", user));
  const back = await platform.fetch(pathname + search);
  return { status: back.status, body: back.status === 302 ? null : await back.json() };
}

/** Every way in which a visitor becomes a user with this address. Gives the last answer. */
const WAYS: [name: string, become: (email: string) => Promise<{ status: number; body: unknown }>][] = [
  [
    "password",
    (email) => post("signup", { email, password: PASSWORD, displayName: "Ada", metadata: { plan: "free" } }),
  ],
  [
    "magicLink",
    async (email) => {
      await post("signin/magic-link", { email });
      return post("verify-magic-link", { token: mailedToken(platform, email) });
    },
  ],
  [
    "emailOtp",
    async (email) => {
      await post("signin/email-otp", { email });
      return post("verify-email-otp", { email, code: lastMail(platform, email).code ?? "" });
    },
  ],
  ["oauth", (email) => byProvider({ sub: email, email, email_verified: true, name: "Ada" })],
];

describe("a rule", () => {
  test.each([...WAYS])(
    "[AU201] %s: is asked with the facts, and who it allows becomes a user as they said",
    async (method, become) => {
      await asked();
      const email = nextEmail();
      expect((await become(email)).status).toBeLessThan(303);
      expect(await isKnown(email)).toBe(true);
      const [facts] = (await asked()).slice(-1);
      expect(facts).toEqual({
        method,
        ...(method === "oauth" ? { provider: "club" } : {}),
        email,
        emailVerified: method !== "password",
        displayName: method === "password" || method === "oauth" ? "Ada" : null,
        metadata: method === "password" ? { plan: "free" } : {},
      });
      const found = await platform.service.get<{ users: { id: string }[] }>(`/api/auth/admin/users?email=${email}`);
      const detail = await platform.service.get(`/api/auth/admin/users/${found.body.users[0]?.id}`);
      expect(detail.body["metadata"]).toEqual(facts?.["metadata"]);
      // Signing in again asks nothing of what is used to sign in.
      if (method === "oauth") {
        expect((await become(email)).status).toBe(302);
        expect(await asked()).toEqual([]);
      }
    },
  );

  test("[AU201] whom it denies gets 403, and no account: by password, OAuth, anonymously, by link of an anonymous user", async () => {
    const email = closedEmail();
    const signUp = await post("signup", { email, password: PASSWORD });
    expect([signUp.status, signUp.body as unknown]).toEqual([403, CLOSED]);
    expect(await byProvider({ sub: email, email, email_verified: true })).toEqual({ status: 403, body: CLOSED });
    expect(await byProvider({ sub: `${email}-2`, email, email_verified: false })).toEqual({
      status: 403,
      body: CLOSED,
    });
    expect((await post("signin/anonymous")).body as unknown).toEqual(CLOSED);
    expect(await isKnown(email)).toBe(false);
  });

  test("[AU201] an anonymous user cannot get past the rule by linking an address", async () => {
    await platform.restart({
      config: config(`(facts) => facts.method === "anonymous" || facts.email === "in@example.com"`),
    });
    const { body } = await post("signin/anonymous");
    const guest = platform.as(body.accessToken);
    const denied = await guest.post("/api/auth/link/email", { email: closedEmail(), password: PASSWORD });
    expect([denied.status, denied.body as unknown]).toEqual([403, CLOSED]);
    expect((await guest.get<{ user: Tokens["user"] }>("/api/auth/me")).body.user.isAnonymous).toBe(true);
    const allowed = await guest.post("/api/auth/link/email", { email: "in@example.com", password: PASSWORD });
    expect(allowed.status).toBe(200);
    await platform.restart({ config: config(RULE) });
  });

  test("[AU201] one that throws, or answers anything but true, denies", async () => {
    for (const email of [`throws-${nextEmail()}`, `number-${nextEmail()}`]) {
      expect((await post("signup", { email, password: PASSWORD })).body as unknown).toEqual(CLOSED);
      expect(await isKnown(email)).toBe(false);
    }
    expect(platform.stdout() + platform.stderr()).toContain("auth.signup");
  });

  test("[AU201] administrators, imports and invitations are not asked; users who are there sign in", async () => {
    await asked();
    const created = closedEmail();
    await signIn(platform, { email: created });
    const imported = closedEmail();
    const users = [{ email: imported, password: PASSWORD, verified: true }];
    expect((await platform.service.post("/api/admin/auth/users/import", { users })).status).toBe(200);
    const invited = closedEmail();
    expect((await platform.service.post("/api/auth/admin/users/invite", { email: invited })).status).toBe(201);
    const token = mailedToken(platform, invited);
    expect((await post("accept-invite", { token, password: PASSWORD })).status).toBe(200);
    expect(await asked()).toEqual([]);
    for (const email of [created, imported, invited]) {
      expect((await post("signin", { email, password: PASSWORD })).status).toBe(200);
      await post("signin/magic-link", { email });
      expect((await post("verify-magic-link", { token: mailedToken(platform, email) })).status).toBe(200);
    }
  });

  test("[AU201] a rule that has no answer after five seconds denies", async () => {
    await platform.restart({ config: config("() => new Promise(() => {})") });
    const email = nextEmail();
    expect((await post("signup", { email, password: PASSWORD })).body as unknown).toEqual(CLOSED);
    expect(await isKnown(email)).toBe(false);
    await platform.restart({ config: config(RULE) });
  });
});

describe("the context of a rule", () => {
  const tables = `{ allowed: { schema: { domain: { type: "string", unique: true }, note: { type: "string" } } } }`;
  const withTables = (rule: string) =>
    config(rule).replace(
      "databases: {",
      `databases: { lists: { tables: ${tables} }, rooms: { instance: true, tables: ${tables} },`,
    );

  test("[AU201] has lookups in every file: a table lists the domains that may sign up", async () => {
    await platform.restart({
      config: withTables(`(facts, { namespace, instanceId, db }) => namespace === null && instanceId === null &&
        (db("lists").table("allowed").exists([["domain", "==", facts.email.split("@")[1]]]) || db("rooms", "one").table("allowed").exists([["domain", "==", facts.email.split("@")[1]]]))`),
    });
    const signUp = async (domain: string) =>
      (await post("signup", { email: nextEmail().replace("example.com", domain), password: PASSWORD })).status;
    expect(await signUp("members.example")).toBe(403);
    expect((await platform.service.post("/api/db/lists/tables/allowed", { domain: "members.example" })).status).toBe(
      201,
    );
    expect((await platform.service.post("/api/db/rooms/one/tables/allowed", { domain: "guests.example" })).status).toBe(
      201,
    );
    expect([await signUp("members.example"), await signUp("guests.example"), await signUp("other.example")]).toEqual([
      201, 201, 403,
    ]);
  });

  test("[AU201] a lookup that no index answers denies; too many lookups are 503", async () => {
    await platform.restart({
      config: withTables(`(_facts, { db }) => !db("lists").table("allowed").exists([["note", "==", "x"]])`),
    });
    expect((await post("signup", { email: nextEmail(), password: PASSWORD })).body as unknown).toEqual(CLOSED);
    await platform.restart({
      config: withTables(
        `(_facts, { db }) => { try { for (let n = 0; n < 10_001; n++) db("lists").table("allowed").get("id-" + n); } catch {} return true; }`,
      ),
    });
    const email = nextEmail();
    expect((await post("signup", { email, password: PASSWORD })).status).toBe(503);
    expect(await isKnown(email)).toBe(false);
    await platform.restart({ config: config(RULE) });
  });
});

describe("requests for a link or a code", () => {
  const REQUESTS = ["signin/magic-link", "signin/email-otp"];

  test.each([...REQUESTS])(
    "[AU202] %s answers the same for everybody, and mails nobody whom the rule would refuse",
    async (path) => {
      const known = closedEmail();
      await signIn(platform, { email: known });
      const [unknown, open] = [closedEmail(), nextEmail()];
      await asked();
      for (const email of [known, unknown, open]) {
        const answer = await post(path, { email });
        expect([answer.status, answer.body as unknown]).toEqual([200, { ok: true }]);
        // The rule is asked about all of them, so that no time tells who has an account.
        expect(await asked()).toMatchObject([{ email, emailVerified: true }]);
      }
      expect([mailsTo(known), mailsTo(unknown), mailsTo(open)]).toEqual([1, 0, 1]);
    },
  );

  test("[AU202] a code is asked about when it is right, and is used up by then; a wrong one says nothing", async () => {
    await platform.restart({ config: config("true") });
    const emails = [nextEmail(), nextEmail()] as const;
    for (const email of emails) await post("signin/email-otp", { email });
    await post("signin/magic-link", { email: emails[1] });
    const token = mailedToken(platform, emails[1]);
    await platform.restart({ config: config("false") });
    const [email] = emails;
    const code = lastMail(platform, email).code ?? "";
    const wrong = await post("verify-email-otp", { email, code: code === "000000" ? "000001" : "000000" });
    expect([wrong.status, wrong.body.data?.["code"]?.code]).toEqual([400, "invalid_value"]);
    expect((await post("verify-email-otp", { email, code })).body as unknown).toEqual(CLOSED);
    expect((await post("verify-email-otp", { email, code })).status).toBe(400);
    expect((await post("verify-magic-link", { token })).body as unknown).toEqual(CLOSED);
    expect((await post("verify-magic-link", { token })).status).toBe(400);
    expect([await isKnown(emails[0]), await isKnown(emails[1])]).toEqual([false, false]);
  });
});

describe("auth.signup: false", () => {
  test("[AU203] no visitor becomes a user, and its answer does not tell who is one", async () => {
    await platform.restart({ config: config("false") });
    const known = nextEmail();
    const user = await signIn(platform, { email: known });
    for (const email of [known, nextEmail()]) {
      const answer = await post("signup", { email, password: PASSWORD });
      expect([answer.status, answer.body as unknown]).toEqual([403, CLOSED]);
    }
    expect((await post("signup", { email: "no address", password: PASSWORD })).status).toBe(400);
    expect((await post("signin/anonymous")).status).toBe(403);
    const stranger = nextEmail();
    await post("signin/magic-link", { email: stranger });
    await post("signin/magic-link", { email: known });
    expect([mailsTo(stranger), mailsTo(known)]).toEqual([0, 1]);
    expect(await byProvider({ sub: stranger, email: stranger, email_verified: true })).toEqual({
      status: 403,
      body: CLOSED,
    });
    expect((await user.post("/api/auth/refresh", { refreshToken: user.refreshToken })).status).toBe(200);
    expect((await post("signin", { email: known, password: PASSWORD })).status).toBe(200);
  });

  test("[AU201] a sign-up that races with others makes one account", async () => {
    await platform.restart({ config: config(RULE) });
    const email = nextEmail();
    const answers = await Promise.all(Array.from({ length: 4 }, () => post("signup", { email, password: PASSWORD })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
    const first = nextEmail();
    const profile = { sub: first, email: first, email_verified: true };
    const visits = await Promise.all(Array.from({ length: 4 }, () => byProvider(profile)));
    expect(visits.map(({ status }) => status)).toEqual([302, 302, 302, 302]);
  });
});
