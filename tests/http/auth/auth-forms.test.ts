import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, startOidcProvider } from "../../support/oidc-provider.ts";
import { lastMail, mailedToken, nextEmail, outbox, type Tokens } from "./auth-support.ts";

// Keyboards and mail programs write the same password and the same address in several ways.

setDefaultTimeout(60_000);

let platform: TestPlatform;
let provider: OidcProvider;

beforeAll(async () => {
  provider = await startOidcProvider();
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    config: {
      auth: { magicLink: true, emailOtp: true, anonymous: true, oauth: { club: { clientId, clientSecret, issuer } } },
      rateLimits: {
        auth: { requests: 100_000, window: 60 },
        signup: { requests: 100_000, window: 60 },
        signin: { requests: 100_000, window: 60 },
      },
    },
  });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

const post = <T = Tokens>(path: string, body: { [field: string]: string | boolean | object }) =>
  platform.post<T>(`/api/auth/${path}`, body as never);
const admin = "/api/auth/admin/users";

describe("a password", () => {
  const NFC = "Schl\u00fcssel f\u00fcr Amelie";
  const NFD = NFC.normalize("NFD");
  const SPACED = NFC.replaceAll(" ", "\u00a0");
  const FORMS = [NFC, NFD, SPACED, SPACED.normalize("NFD")];

  /** Every way to set a password for an address. */
  const WAYS: [name: string, set: (email: string, password: string) => Promise<{ status: number }>][] = [
    ["sign-up", (email, password) => post("signup", { email, password })],
    [
      "change",
      async (email, newPassword) => {
        const { body } = await post("signup", { email, password: "the first password" });
        const change = { currentPassword: "the first password", newPassword };
        return platform.as(body.accessToken).post("/api/auth/change-password", change);
      },
    ],
    [
      "reset",
      async (email, newPassword) => {
        await post("signup", { email, password: "the first password" });
        await post("request-password-reset", { email });
        return post("reset-password", { token: mailedToken(platform, email), newPassword });
      },
    ],
    [
      "link",
      async (email, password) => {
        const { body } = await post("signin/anonymous", {});
        return platform.as(body.accessToken).post("/api/auth/link/email", { email, password });
      },
    ],
    [
      "invitation",
      async (email, password) => {
        await platform.service.post(`${admin}/invite`, { email });
        return post("accept-invite", { token: mailedToken(platform, email), password });
      },
    ],
    ["administration", (email, password) => platform.service.post(admin, { email, password })],
    [
      "administrator's change",
      async (email, password) => {
        const { body } = await post("signup", { email, password: "the first password" });
        return platform.service.patch(`${admin}/${body.user.id}`, { password });
      },
    ],
    [
      "import",
      (email, password) => platform.service.post("/api/admin/auth/users/import", { users: [{ email, password }] }),
    ],
  ];

  test.each([...WAYS])("[AU283] set by %s in one form signs in in every other", async (name, set) => {
    const form = name.length % 2 === 0 ? NFC : NFD;
    const email = nextEmail();
    expect((await set(email, form)).status).toBeLessThan(300);
    for (const password of FORMS) expect((await post("signin", { email, password })).status).toBe(200);
    expect((await post("signin", { email, password: NFC.replace("\u00fc", "u") })).status).toBe(401);
  });

  test("[AU283] is confirmed in every form", async () => {
    const email = nextEmail();
    const { body } = await post("signup", { email, password: NFC });
    const user = platform.as(body.accessToken);
    const confirmed = await user.post("/api/auth/change-email", { newEmail: nextEmail(), password: NFD });
    expect(confirmed.status).toBe(200);
  });

  test("[AU283] has its length in the form that is kept", async () => {
    // Eight characters as typed, four as kept.
    const short = await post("signup", { email: nextEmail(), password: "u\u0308".repeat(4) });
    expect(short.status).toBe(400);
    expect((await post("signup", { email: nextEmail(), password: "u\u0308".repeat(8) })).status).toBe(201);
    // 1,500 bytes as typed, 1,000 as kept; then 1,800 and 1,200.
    expect((await post("signup", { email: nextEmail(), password: "u\u0308".repeat(500) })).status).toBe(201);
    expect((await post("signup", { email: nextEmail(), password: "u\u0308".repeat(600) })).status).toBe(400);
  });

  test("[AU283] whose hash is of another form signs in as before, and in every form from then on", async () => {
    const email = nextEmail();
    const passwordHash = await Bun.password.hash(NFD, { algorithm: "bcrypt", cost: 4 });
    await platform.service.post("/api/admin/auth/users/import", { users: [{ email, passwordHash }] });
    expect((await post("signin", { email, password: NFC })).status).toBe(401);
    expect((await post("signin", { email, password: NFD })).status).toBe(200);
    for (const password of FORMS) expect((await post("signin", { email, password })).status).toBe(200);
  });
});

describe("an address", () => {
  let count = 0;
  /** Returns the forms of another address. */
  const nextForms = () => {
    const local = `jos\u00e9-${++count}`;
    return ["m\u00fcnchen.example", "xn--mnchen-3ya.example", "Mu\u0308nchen.EXAMPLE"].flatMap((domain) =>
      [local, local.normalize("NFD"), local.toUpperCase()].map((one) => ` ${one}@${domain} `),
    );
  };
  const oneOf = (forms: readonly string[]): string => forms[3]?.trim().toLowerCase() ?? "";

  test("[AU284] is one account in every form: sign-up, sign-in, administration, lists", async () => {
    const forms = nextForms();
    const password = "correct horse battery";
    const signedUp = await post("signup", { email: forms[2] ?? "", password });
    expect(signedUp.body.user.email).toBe(oneOf(forms));
    const { id } = signedUp.body.user;
    for (const email of forms) {
      expect((await post("signup", { email, password })).status).toBe(409);
      expect((await platform.service.post(admin, { email, password })).status).toBe(409);
      expect((await platform.service.post(`${admin}/invite`, { email })).status).toBe(409);
      expect((await post("signin", { email, password })).body.user.id).toBe(id);
      for (const query of [{ email }, { q: email }]) {
        const found = await platform.service.get<{ users: { id: string }[] }>(admin, { query });
        expect(found.body.users.map((user) => user.id)).toEqual([id]);
      }
    }
    const users = forms.map((email) => ({ email, password }));
    expect((await platform.service.post("/api/admin/auth/users/import", { users })).status).toBe(409);
  });

  test("[AU284] is one account by link, code, reset and provider", async () => {
    const forms = nextForms();
    const [first = "", second = "", third = "", fourth = ""] = forms;
    const one = oneOf(forms);
    await post("signin/magic-link", { email: first });
    const linked = await post("verify-magic-link", { token: mailedToken(platform, one) });
    const { id } = linked.body.user;
    await post("signin/email-otp", { email: second });
    const { code = "" } = lastMail(platform, one);
    expect((await post("verify-email-otp", { email: third, code })).body.user.id).toBe(id);
    await post("request-password-reset", { email: fourth });
    const reset = { token: mailedToken(platform, one), newPassword: "correct horse battery" };
    expect((await post("reset-password", reset)).status).toBe(200);
    const begun = await platform.fetch("/api/auth/oauth/club");
    const user = { sub: `user ${one}`, email: third.trim(), email_verified: true };
    const back = provider.approve(begun.headers.get("location") ?? "", user);
    const { pathname, search } = new URL(back);
    const finished = await platform.fetch(pathname + search);
    const fragment = new URLSearchParams(new URL(finished.headers.get("location") ?? "").hash.slice(1));
    const me = await platform.as(fragment.get("access_token") ?? "").get<Tokens>("/api/auth/me");
    expect(me.body.user.id).toBe(id);
    expect(new Set(outbox(platform).flatMap(({ to }) => (to.startsWith("jos") ? [to] : []))).size).toBe(count - 1);
  });

  test("[AU284] with a domain that is none, or that is an address of IP, is 400", async () => {
    const domains = [
      "\uff11\uff12\uff17.0.0.\uff11",
      "m\u00fcn_chen.example",
      `${"\u00fc".repeat(63)}.example`,
      // DNS drops the soft hyphen: two addresses would look alike.
      "m\u00fcn\u00adchen.example",
    ];
    for (const domain of domains) {
      const answer = await post("signup", { email: `ann@${domain}`, password: "correct horse battery" });
      expect([domain, answer.status]).toEqual([domain, 400]);
    }
  });

  test("[AU285] stored in another form by an earlier release: one account gets the one form, two of one address stay", async () => {
    const own = await testPlatform({
      config: { auth: { magicLink: true }, rateLimits: { auth: { requests: 100_000, window: 60 } } },
    });
    const password = "correct horse battery";
    const call = <T = Tokens>(path: string, body: { [field: string]: string }) =>
      own.post<T>(`/api/auth/${path}`, body);
    const made = async (email: string) => (await call("signup", { email, password })).body.user.id;
    const alone = await made("alone@example.com");
    const [older, newer] = [await made("older@example.com"), await made("newer@example.com")];
    const [unproved, proved] = [await made("unproved@example.com"), await made("proved@example.com")];
    await call("request-password-reset", { email: "alone@example.com" });
    const reset = mailedToken(own, "alone@example.com");
    await own.kill("SIGTERM");
    const renamed = {
      [alone]: "alone@m\u00fcnchen.example",
      [older]: "pair@m\u00fcnchen.example",
      [newer]: "pair@xn--mnchen-3ya.example",
      // In the order in which a start finds them.
      [unproved]: "jose\u0301@m\u00fcnchen.example",
      [proved]: "jos\u00e9@m\u00fcnchen.example",
    };
    const file = new Database(join(own.dataDirectory, "system.db"));
    for (const [id, email] of Object.entries(renamed)) {
      file.run('UPDATE "users" SET "email" = ? WHERE "id" = ?', [email, id]);
    }
    file.run('UPDATE "users" SET "emailVerified" = 1 WHERE "id" = ?', [proved]);
    file.run(`UPDATE "one_time_secrets" SET "payload" = replace("payload", 'example.com', 'm\u00fcnchen.example')`);
    file.close();
    await own.restart();
    const signIn = async (email: string) => (await call("signin", { email, password })).body.user?.id;
    const upgraded = async () => {
      expect(await signIn("alone@m\u00fcnchen.example")).toBe(alone);
      expect(await signIn("alone@xn--mnchen-3ya.example")).toBe(alone);
      // Each by what was typed before.
      expect(await signIn("pair@m\u00fcnchen.example")).toBe(older);
      expect(await signIn("pair@xn--mnchen-3ya.example")).toBe(newer);
      // Of two that would get the one form, the one whose address is verified.
      expect(await signIn("jos\u00e9@xn--mnchen-3ya.example")).toBe(proved);
      expect(await signIn("jose\u0301@m\u00fcnchen.example")).toBe(unproved);
      for (const email of Object.values(renamed)) expect((await call("signup", { email, password })).status).toBe(409);
    };
    await upgraded();
    // What was mailed before the start is of the same address.
    expect((await call("reset-password", { token: reset, newPassword: password })).status).toBe(200);
    expect(own.stderr()).toContain("another account has in another form");
    expect(own.stderr()).toContain(older);
    await own.restart();
    await upgraded();
    await call("signin/magic-link", { email: "pair@m\u00fcnchen.example" });
    const linked = await call("verify-magic-link", { token: mailedToken(own, "pair@m\u00fcnchen.example") });
    expect(linked.body.user.id).toBe(older);
    // An administrator ends the pair.
    await own.service.delete(`${admin}/${newer}`);
    await own.restart();
    await call("signin/magic-link", { email: "pair@xn--mnchen-3ya.example" });
    const token = mailedToken(own, "pair@xn--mnchen-3ya.example");
    expect((await call("verify-magic-link", { token })).body.user.id).toBe(older);
    await own.stop();
  });
});
