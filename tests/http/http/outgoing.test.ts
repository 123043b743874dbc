import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { startFcmServer } from "../../support/fcm-server.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, startOidcProvider } from "../../support/oidc-provider.ts";
import { nextEmail, PASSWORD } from "../auth/auth-support.ts";
import { fcmConfig, TITLED } from "../push/push-support.ts";

// Servers that the config names, and that answer too much, or send the request on to another one.

const PADDING = " ".repeat(4 * 1024 * 1024);

/** Change of an answer. */
type Alteration = (answer: Response) => Response | Promise<Response>;

const withBody = (
  answer: Response,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Response =>
  new Response(body, { status: answer.status, headers: { "content-type": "application/json", ...headers } });

let redirects = 0;
let elsewhere: Bun.Server<unknown>;

const REFUSED: Readonly<Record<string, Alteration>> = {
  "is too long": async (answer) => withBody(answer, (await answer.text()) + PADDING),
  "is too long without its gzip": async (answer) =>
    withBody(answer, gzipSync((await answer.text()) + PADDING), { "content-encoding": "gzip" }),
  "nests too deep": async (answer) =>
    withBody(answer, (await answer.text()).replace("{", `{"more":${"[".repeat(70)}${"]".repeat(70)},`)),
  "is in an unknown coding": async (answer) =>
    withBody(answer, gzipSync(await answer.text()), { "content-encoding": "gzip, gzip" }),
  "does not end": () => {
    const piece = new TextEncoder().encode(PADDING);
    return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(piece) }), {
      headers: { "content-type": "application/json" },
    });
  },
  "is a redirect": async (answer) =>
    new Response(null, {
      status: 307,
      headers: { location: `${elsewhere.url}?answer=${encodeURIComponent(await answer.text())}` },
    }),
};
const ACCEPTED: Readonly<Record<string, Alteration>> = {
  "is as usual": (answer) => answer,
  "is in gzip that nobody asked for": async (answer) =>
    withBody(answer, gzipSync(await answer.text()), { "content-encoding": "gzip" }),
};

let provider: OidcProvider;
let oauth: TestPlatform;
let captcha: Bun.Server<unknown>;
let captchaAnswer: Alteration = (answer) => answer;
const platforms: TestPlatform[] = [];

beforeAll(async () => {
  provider = await startOidcProvider();
  elsewhere = Bun.serve({
    port: 0,
    fetch(request) {
      redirects++;
      return new Response(new URL(request.url).searchParams.get("answer"), {
        headers: { "content-type": "application/json" },
      });
    },
  });
  captcha = Bun.serve({ port: 0, fetch: () => captchaAnswer(Response.json({ success: true })) });
});
afterEach(() => {
  redirects = 0;
  captchaAnswer = (answer) => answer;
  provider.altered = (_, answer) => answer;
  provider.lies = {};
});
afterAll(async () => {
  provider.stop();
  await Promise.all([...platforms.map((one) => one.stop()), captcha.stop(true), elsewhere.stop(true)]);
});

async function start(auth: object): Promise<TestPlatform> {
  const platform = await testPlatform({ config: { auth: { ...auth }, rateLimits: RATE_LIMITS } });
  platforms.push(platform);
  return platform;
}

/** Signs in with a provider; the status is that of the first answer that is no redirect, or of the callback. */
async function signIn(club: string): Promise<number> {
  const begun = await oauth.fetch(`/api/auth/oauth/${club}`);
  if (begun.status !== 302) return begun.status;
  const email = nextEmail();
  const back = provider.approve(begun.headers.get("location") ?? "", { sub: email, email, email_verified: true });
  const { pathname, search } = new URL(back);
  return (await oauth.fetch(pathname + search)).status;
}

const RATE_LIMITS = { auth: { requests: 100_000, window: 60 } };
const PATHS = ["/.well-known/openid-configuration", "/token", "/keys", "/userinfo"];

const CASES = Object.entries({ ...REFUSED, ...ACCEPTED });

beforeAll(async () => {
  const { issuer, clientId, clientSecret } = provider;
  // One for each case: what a provider says of itself, and its keys, are kept.
  const names = PATHS.flatMap((_, path) => CASES.map((_, index) => `club-${path}-${index}`));
  oauth = await start({
    oauth: Object.fromEntries(names.map((name) => [name, { issuer, clientId, clientSecret }])),
  });
});

test.each(PATHS)("[HT320] an answer of a sign-in provider at %s is read within its bounds", async (path) => {
  for (const [index, [name, alter]] of CASES.entries()) {
    const club = `club-${PATHS.indexOf(path)}-${index}`;
    provider.lies = { bare: path === "/userinfo" };
    provider.altered = (at, answer) => (at === path ? alter(answer) : answer);
    const refusal = path === PATHS[0] ? 502 : 400;
    expect([name, await signIn(club)]).toEqual([name, name in REFUSED ? refusal : 302]);
    // It serves on, and has asked nobody else.
    provider.altered = (_, answer) => answer;
    expect([name, await signIn(club), redirects]).toEqual([name, 302, 0]);
  }
});

test("[HT320] an answer of a CAPTCHA provider is read within its bounds", async () => {
  const endpoint = `${captcha.url}siteverify`;
  const platform = await start({ captcha: { provider: "turnstile", siteKey: "k", secretKey: "s", endpoint } });
  for (const [name, alter] of CASES) {
    captchaAnswer = alter;
    const body = { email: nextEmail(), password: PASSWORD, captchaToken: "token" };
    const { status } = await platform.post("/api/auth/signup", body);
    expect([name, status, redirects]).toEqual([name, name in REFUSED ? 503 : 201, 0]);
  }
});

test("[HT320] an answer of FCM's token endpoint is read within its bounds", async () => {
  const fcm = await startFcmServer();
  // Each message asks for a new one.
  fcm.tokenLifeSeconds = 0;
  const platform = await testPlatform({ config: { push: { fcm: fcmConfig(fcm) } } });
  platforms.push(platform);
  for (const [name, altered] of CASES) {
    fcm.alterToken = altered;
    const { body } = await platform.service.post("/api/push/send-to-token", { token: "phone", payload: TITLED });
    expect([name, body, redirects]).toEqual([
      name,
      name in REFUSED ? { sent: 0, failed: 1 } : { sent: 1, failed: 0 },
      0,
    ]);
  }
  await fcm.stop();
});
