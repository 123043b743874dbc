import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { nextEmail, outbox, PASSWORD, signUp, type Tokens } from "./auth-support.ts";

/** Questions to the provider, and its answers. */
const questions: URLSearchParams[] = [];
let answer: () => Response | Promise<Response> = () => Response.json({ success: true });

let provider: Bun.Server<unknown>;
let platform: TestPlatform;

const config = (name: string, endpoint: string) => ({
  auth: {
    ...{ anonymous: true, magicLink: true, emailOtp: true, redirectUrls: ["https://app.example.com/*"] },
    captcha: { provider: name, siteKey: "site", secretKey: "captcha secret", endpoint },
  },
  rateLimits: { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } },
});

beforeAll(async () => {
  provider = Bun.serve({
    port: 0,
    async fetch(request) {
      questions.push(new URLSearchParams(await request.text()));
      return answer();
    },
  });
  platform = await testPlatform({ config: config("turnstile", `${provider.url}siteverify`) });
});
afterEach(() => {
  answer = () => Response.json({ success: true });
  questions.length = 0;
});
afterAll(async () => {
  await provider.stop(true);
  await platform.stop();
});

/** Every request that needs the CAPTCHA, by its body for an address. */
const GUARDED: [path: string, body: (email: string) => JsonObject][] = [
  ["signup", (email) => ({ email, password: PASSWORD })],
  ["signin/anonymous", () => ({})],
  ["signin/magic-link", (email) => ({ email })],
  ["signin/email-otp", (email) => ({ email })],
  ["request-password-reset", (email) => ({ email })],
];
const post = (path: string, body: JsonObject, client: Pick<TestPlatform, "post"> = platform) =>
  client.post<ErrorAnswer>(`/api/auth/${path}`, body);
const members = () => questions.map((question) => Object.fromEntries(question));

test.each([...GUARDED])(
  "[AU210] %s: 400 without captchaToken, and where the provider refuses it",
  async (path, bodyOf) => {
    const known = nextEmail();
    await signUp(platform.service as TestPlatform, known);
    const mails = existingMails();
    for (const email of [known, nextEmail()]) {
      for (const captchaToken of [undefined, "", null]) {
        const bare = await post(path, { ...bodyOf(email), ...(captchaToken === undefined ? {} : { captchaToken }) });
        expect([bare.status, bare.body.data?.["captchaToken"]?.code]).toEqual([400, "required"]);
      }
      for (const codes of [["invalid-input-response"], ["timeout-or-duplicate"], []]) {
        answer = () => Response.json({ success: false, "error-codes": codes });
        const refused = await post(path, { ...bodyOf(email), captchaToken: "solved before" });
        expect([refused.status, refused.body.data?.["captchaToken"]?.code]).toEqual([400, "invalid_value"]);
      }
      const form = await post(path, { ...bodyOf(email), captchaToken: 7 });
      expect([form.status, form.body.data?.["captchaToken"]?.code]).toEqual([400, "invalid_type"]);
    }
    expect(questions).toHaveLength(6);
    expect(members()[0]).toEqual({ secret: "captcha secret", response: "solved before", remoteip: "127.0.0.1" });
    expect(existingMails()).toBe(mails);
    answer = () => Response.json({ success: true, hostname: "app.example.com" });
    const fresh = nextEmail();
    expect((await post(path, { ...bodyOf(fresh), captchaToken: "solved" })).status).toBeLessThan(202);
  },
);

const existingMails = (): number => {
  try {
    return outbox(platform).length;
  } catch {
    return 0; // There is no outbox before the first mail.
  }
};

test.each([...GUARDED])(
  "[AU211] %s: 503 where the provider cannot be asked, whoever the address belongs to",
  async (path, bodyOf) => {
    const known = nextEmail();
    await signUp(platform.service as TestPlatform, known);
    const broken: (() => Response)[] = [
      () => new Response("", { status: 500 }),
      () => Response.json({ success: true }, { status: 502 }),
      () => new Response("<html>", { status: 200 }),
      () => Response.json({ success: "yes" }),
      () => Response.json({ success: false, "error-codes": ["invalid-input-secret"] }),
      () => Response.json({ success: false, "error-codes": ["internal-error"] }),
      () => new Response(" ".repeat(100_000) + JSON.stringify({ success: true })),
      () => Response.redirect(`${provider.url}elsewhere`, 307),
    ];
    for (const email of [known, nextEmail()]) {
      for (const broke of broken) {
        answer = broke;
        const refused = await post(path, { ...bodyOf(email), captchaToken: "solved" });
        expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
      }
    }
    // A redirect is not followed: the secret goes to the configured address only.
    expect(questions).toHaveLength(2 * broken.length);
  },
);

test("[AU210] a request that is refused for its form does not use up the token", async () => {
  const email = nextEmail();
  const captchaToken = "solved";
  const refused = [
    await post("signup", { email, password: "short", captchaToken }),
    await post("signin/magic-link", { email, captchaToken, redirectUrl: "https://evil.example.com/" }),
    await post("request-password-reset", { email: "no address", captchaToken }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([400, 400, 400]);
  expect(questions).toEqual([]);
});

test("[AU210] a key without scopes needs no CAPTCHA, signing in neither", async () => {
  const { user } = await signUp(platform.service as TestPlatform);
  const signedIn = await platform.post<Tokens>("/api/auth/signin", { email: String(user.email), password: PASSWORD });
  expect(signedIn.status).toBe(200);
  expect(questions).toEqual([]);
});

test("[AU211] the provider that does not listen is 503; hCaptcha is told the site", async () => {
  await platform.restart({ config: config("turnstile", "http://127.0.0.1:1/siteverify") });
  const closed = await post("signin/anonymous", { captchaToken: "solved" });
  expect(closed.status).toBe(503);
  expect(platform.stderr() + platform.stdout()).toContain("A CAPTCHA could not be checked");
  expect(platform.stderr() + platform.stdout()).not.toContain("captcha secret");
  await platform.restart({ config: config("hcaptcha", `${provider.url}siteverify`) });
  expect((await post("signin/anonymous", { captchaToken: "solved" })).status).toBe(201);
  expect(members()).toEqual([{ secret: "captcha secret", response: "solved", remoteip: "127.0.0.1", sitekey: "site" }]);
});

test("[AU210] without auth.captcha a token is ignored", async () => {
  await platform.restart({ config: { auth: { anonymous: true } } });
  expect((await post("signin/anonymous", { captchaToken: "solved" })).status).toBe(201);
  expect(questions).toEqual([]);
});

test("[AU210] [AU370] a code that is sent to a phone needs it too", async () => {
  const texts: unknown[] = [];
  const receiver = Bun.serve({
    port: 0,
    async fetch(request) {
      texts.push(await request.json());
      return new Response("ok");
    },
  });
  const phones = await testPlatform({
    config: `import { defineConfig, webhookSender } from "platform";
export default defineConfig({ auth: {
  captcha: { provider: "turnstile", siteKey: "site", secretKey: "captcha secret", endpoint: "${provider.url}siteverify" },
  phones: { send: webhookSender({ url: "${receiver.url}", secret: "${btoa("the secret of the texts, 32 bytes")}" }), countries: ["AT"] },
} });
`,
  });
  try {
    const ask = (more: JsonObject) => post("signin/phone", { phone: "+436601234567", ...more }, phones);
    const bare = await ask({});
    expect([bare.status, bare.body.data?.["captchaToken"]?.code]).toEqual([400, "required"]);
    answer = () => Response.json({ success: false, "error-codes": ["timeout-or-duplicate"] });
    expect((await ask({ captchaToken: "solved before" })).status).toBe(400);
    answer = () => Response.json({ success: true });
    expect(texts).toEqual([]);
    expect((await ask({ captchaToken: "solved" })).status).toBe(200);
    await until("the text is sent", () => texts.length === 1);
  } finally {
    await phones.stop();
    await receiver.stop(true);
  }
});
