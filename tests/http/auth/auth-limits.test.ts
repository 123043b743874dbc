import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { nextEmail, PASSWORD, signUp, type Tokens } from "./auth-support.ts";

let platform: TestPlatform;
let defaults: TestPlatform;

beforeAll(async () => {
  const rateLimits = {
    auth: { requests: 100_000, window: 60 },
    signup: { requests: 100_000, window: 60 },
    signin: { requests: 4, window: 60 },
  };
  [platform, defaults] = await Promise.all([
    testPlatform({ config: { auth: { anonymous: true, emailOtp: true }, rateLimits, server: { trustProxy: true } } }),
    testPlatform({ config: { auth: { anonymous: true } } }),
  ]);
});
afterAll(() => Promise.all([platform.stop(), defaults.stop()]));

let lastByte = 0;
/** A client at an address of its own. */
const from = (address = `10.0.0.${++lastByte}`) => ({
  signIn: (email: string, password: string) =>
    platform.post<Tokens>("/api/auth/signin", { email, password }, { headers: { "x-forwarded-for": address } }),
});

test("[AU38] after the allowed failures for an email, every attempt is 429 with Retry-After, from any address, even with the right password", async () => {
  const { user } = await signUp(platform);
  const email = String(user.email);
  for (let count = 0; count < 4; count++) expect((await from().signIn(email, "wrong wrong")).status).toBe(401);
  const refused = await from().signIn(email, PASSWORD);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  const other = await signUp(platform);
  expect((await from().signIn(String(other.user.email), PASSWORD)).status).toBe(200);
});

test("[AU38] concurrent guesses are limited like successive ones", async () => {
  const { user } = await signUp(platform);
  const email = String(user.email);
  const answers = await Promise.all(Array.from({ length: 24 }, (_, n) => from().signIn(email, `wrong guess ${n}`)));
  const statuses = answers.map((answer) => answer.status).sort();
  expect(statuses).toEqual([...Array(4).fill(401), ...Array(20).fill(429)]);
});

test("[AU38] right passwords do not count, however many arrive at once", async () => {
  const { user } = await signUp(platform);
  const client = from();
  const answers = await Promise.all(Array.from({ length: 12 }, () => client.signIn(String(user.email), PASSWORD)));
  expect(answers.map((answer) => answer.status)).toEqual(Array(12).fill(200));
});

test("[AU38] an address has three times as many failures over all emails", async () => {
  const client = from();
  const wrong = await Promise.all(Array.from({ length: 12 }, () => client.signIn(nextEmail(), "wrong wrong")));
  expect(wrong.map(({ status }) => status)).toEqual(Array(12).fill(401));
  const { user } = await signUp(platform);
  expect((await client.signIn(String(user.email), PASSWORD)).status).toBe(429);
  expect((await from().signIn(String(user.email), PASSWORD)).status).toBe(200);
});

test("[AU38] an unknown email is limited like a known one", async () => {
  const email = nextEmail();
  for (let count = 0; count < 4; count++) await from().signIn(email, "wrong wrong");
  expect((await from().signIn(email, "wrong wrong")).status).toBe(429);
});

test("[AU38] confirming a password counts as an attempt", async () => {
  const { accessToken } = await signUp(platform);
  const caller = platform.as(accessToken);
  const change = (currentPassword: string) =>
    caller.post("/api/auth/change-password", { currentPassword, newPassword: "a new password" });
  for (let count = 0; count < 4; count++) expect((await change("wrong wrong")).status).toBe(401);
  expect((await change(PASSWORD)).status).toBe(429);
});

test("[AU39] a service key is not limited", async () => {
  const { user } = await signUp(platform);
  const email = String(user.email);
  const wrong = () => platform.service.post("/api/auth/signin", { email, password: "wrong wrong" });
  const answers = await Promise.all(Array.from({ length: 6 }, wrong));
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(401));
  expect((await from().signIn(email, PASSWORD)).status).toBe(200);
});

test("[AU40] 30 sign-ups a minute from one address, anonymous ones included", async () => {
  const statuses: number[] = [];
  for (let count = 0; count < 31; count++) statuses.push((await defaults.post("/api/auth/signin/anonymous")).status);
  expect(statuses).toEqual([...Array(30).fill(201), 429]);
  expect((await defaults.post("/api/auth/signup", { email: nextEmail(), password: PASSWORD })).status).toBe(429);
  const asService = await defaults.service.post("/api/auth/signup", { email: nextEmail(), password: PASSWORD });
  expect(asService.status).toBe(201);
});

test("[AU41] ways of signing in that the config does not enable are 404", async () => {
  const email = nextEmail();
  const calls: [string, { [field: string]: string }][] = [
    ["signin/magic-link", { email }],
    ["verify-magic-link", { token: "x" }],
    ["signin/email-otp", { email }],
    ["verify-email-otp", { email, code: "123456" }],
    ["passkeys/auth-options", {}],
    ["passkeys/authenticate", {}],
  ];
  for (const [path, body] of calls)
    expect([path, (await defaults.post(`/api/auth/${path}`, body)).status]).toEqual([path, 404]);
  expect((await defaults.get("/api/auth/oauth/google")).status).toBe(404);
});

test("[AU38] the addresses of one IPv6 network count as one", async () => {
  const host = (n: number) => from(`2001:db8:1:2::${n}`);
  const wrong = await Promise.all(Array.from({ length: 12 }, (_, n) => host(n).signIn(nextEmail(), "wrong wrong")));
  expect(wrong.map(({ status }) => status)).toEqual(Array(12).fill(401));
  const { user } = await signUp(platform);
  expect((await host(99).signIn(String(user.email), PASSWORD)).status).toBe(429);
  expect((await from("2001:db8:1:3::1").signIn(String(user.email), PASSWORD)).status).toBe(200);
});

test("[AU107] a flood of sign-ups from one address does not delay others", async () => {
  const { user } = await signUp(platform);
  const headers = { "x-forwarded-for": "10.9.9.9" };
  let floodCount = 0;
  const flood = Array.from({ length: 100 }, () =>
    platform.post("/api/auth/signup", { email: nextEmail(), password: PASSWORD }, { headers }).then(({ status }) => {
      floodCount++;
      return status;
    }),
  );
  expect((await from().signIn(String(user.email), PASSWORD)).status).toBe(200);
  // Behind all of them it would have come last.
  expect(floodCount).toBeLessThan(90);
  expect(new Set(await Promise.all(flood))).toEqual(new Set([201]));
});
