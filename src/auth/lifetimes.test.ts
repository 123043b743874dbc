import { afterEach, expect, test } from "bun:test";
import {
  type Enrolment,
  lastMail,
  mailedToken,
  nextEmail,
  PASSWORD,
  type Ticket,
  type Tokens,
  totpCode,
} from "../../tests/http/auth-support.ts";
import { createHttpClient, type HttpClient } from "../../tests/support/http-client.ts";
import { JWT_SECRET, SERVICE_KEY, type TestClock, temporaryDirectory, testClock } from "../../tests/support/index.ts";
import type { PlatformConfig } from "../config/types.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../kernel/duration.ts";
import { createPlatform, type Platform } from "../platform.ts";

interface Timed extends HttpClient {
  clock: TestClock;
  dataDirectory: string;
  as(token: string): HttpClient;
}

let running: { platform: Platform; clock: TestClock } | null = null;

/** A platform whose time goes on only when told to. */
async function platformAt(auth: PlatformConfig["auth"] = {}): Promise<Timed> {
  const clock = testClock();
  const dataDirectory = temporaryDirectory();
  const secrets = { serviceKey: SERVICE_KEY, jwtSecret: JWT_SECRET };
  const rateLimits = { auth: { requests: 100_000, window: 60 }, signup: { requests: 100_000, window: 60 } };
  const platform = await createPlatform({ auth, rateLimits }, { dataDirectory, secrets, clock });
  running = { platform, clock };
  const { url } = await platform.listen({ port: 0 });
  const client = (headers: Record<string, string> = {}) => createHttpClient(() => url, headers);
  return { ...client(), clock, dataDirectory, as: (token) => client({ authorization: `Bearer ${token}` }) };
}

/** What a platform waits for while it stops, it waits for by its clock. */
async function stop(): Promise<void> {
  if (running === null) return;
  const { platform, clock } = running;
  running = null;
  let isStopped = false;
  const stopped = platform.stop().finally(() => {
    isStopped = true;
  });
  for (let round = 0; !isStopped && round < 1_000; round++) {
    await Bun.sleep(1);
    clock.advance(SECOND_MS);
  }
  await stopped;
}
afterEach(stop);

const signUp = async (platform: Timed): Promise<Tokens> => {
  const answer = await platform.post<Tokens>("/api/auth/signup", { email: nextEmail(), password: PASSWORD });
  expect(answer.status).toBe(201);
  return answer.body;
};
const refresh = (platform: Timed, refreshToken: string) => platform.post<Tokens>("/api/auth/refresh", { refreshToken });

test("[AU7] a replaced refresh token is good for 30 s; used later, it ends the session", async () => {
  const platform = await platformAt();
  const first = await signUp(platform);
  const second = await refresh(platform, first.refreshToken);
  platform.clock.advance(30 * SECOND_MS);
  expect((await refresh(platform, first.refreshToken)).status).toBe(200);
  expect((await platform.as(second.body.accessToken).get("/api/auth/me")).status).toBe(200);
  platform.clock.advance(1);
  expect((await refresh(platform, first.refreshToken)).status).toBe(401);
  // A thief or the owner, one of the two has a copy: neither goes on.
  expect((await platform.as(second.body.accessToken).get("/api/auth/me")).status).toBe(401);
  expect((await refresh(platform, second.body.refreshToken)).status).toBe(401);
});

test("[AU7] each of several replaced tokens has 30 s of its own", async () => {
  const platform = await platformAt();
  const first = await signUp(platform);
  platform.clock.advance(20 * SECOND_MS);
  const second = await refresh(platform, first.refreshToken);
  platform.clock.advance(20 * SECOND_MS);
  const third = await refresh(platform, second.body.refreshToken);
  expect((await refresh(platform, first.refreshToken)).body.refreshToken).toBe(third.body.refreshToken);
  platform.clock.advance(20 * SECOND_MS);
  expect((await refresh(platform, second.body.refreshToken)).status).toBe(200);
  expect((await refresh(platform, first.refreshToken)).status).toBe(401);
  expect((await refresh(platform, third.body.refreshToken)).status).toBe(401);
});

test("[AU15] an access token lives for 15 minutes, or what the config says", async () => {
  for (const [config, seconds] of [
    [{}, 900],
    [{ session: { accessTokenTtl: 60 } }, 60],
  ] as const) {
    const platform = await platformAt(config);
    const { accessToken } = await signUp(platform);
    platform.clock.advance((seconds - 1) * SECOND_MS);
    expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);
    platform.clock.advance(SECOND_MS);
    const late = await platform.as(accessToken).get("/api/auth/me");
    expect([late.status, late.body["message"]]).toEqual([401, "Token expired"]);
    await stop();
  }
});

test("[AU12] a session ends 28 days after its last refresh, and goes on as long as it is refreshed", async () => {
  const platform = await platformAt();
  let { refreshToken } = await signUp(platform);
  for (let month = 0; month < 3; month++) {
    platform.clock.advance(27 * DAY_MS);
    const answer = await refresh(platform, refreshToken);
    expect(answer.status).toBe(200);
    expect((await platform.as(answer.body.accessToken).get("/api/auth/me")).status).toBe(200);
    refreshToken = answer.body.refreshToken;
  }
  await platform.clock.advanceAsync(28 * DAY_MS);
  expect((await refresh(platform, refreshToken)).status).toBe(401);
});

test("[AU12] with maxActive, the oldest session ends", async () => {
  const platform = await platformAt({ session: { maxActive: 2 } });
  const { user, accessToken } = await signUp(platform);
  const signIn = async () => {
    platform.clock.advance(SECOND_MS);
    return (await platform.post<Tokens>("/api/auth/signin", { email: String(user.email), password: PASSWORD })).body;
  };
  const second = await signIn();
  expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(200);
  const third = await signIn();
  expect((await platform.as(accessToken).get("/api/auth/me")).status).toBe(401);
  for (const { accessToken: kept } of [second, third]) {
    expect((await platform.as(kept).get("/api/auth/me")).status).toBe(200);
  }
});

const FLOWS = [
  ["verification", 24 * HOUR_MS],
  ["reset", HOUR_MS],
  ["magic link", 15 * MINUTE_MS],
  ["email change", 24 * HOUR_MS],
] as const;

test.each(FLOWS)("[AU21] the token of a %s lives for its time, and not a moment longer", async (flow, lifetimeMs) => {
  const platform = await platformAt({ magicLink: true, session: { accessTokenTtl: 100_000 } });
  for (const [ageMs, status] of [
    [lifetimeMs - 1, 200],
    [lifetimeMs, 400],
  ] as const) {
    const { user, accessToken } = await signUp(platform);
    const [email, newEmail] = [String(user.email), nextEmail()];
    const caller = platform.as(accessToken);
    const asked = {
      verification: () => caller.post("/api/auth/request-email-verification"),
      reset: () => platform.post("/api/auth/request-password-reset", { email }),
      "magic link": () => platform.post("/api/auth/signin/magic-link", { email }),
      "email change": () => caller.post("/api/auth/change-email", { newEmail, password: PASSWORD }),
    };
    expect((await asked[flow]()).status).toBe(200);
    const token = mailedToken(platform, flow === "email change" ? newEmail : email);
    platform.clock.advance(ageMs);
    const used = {
      verification: () => platform.post("/api/auth/verify-email", { token }),
      reset: () => platform.post("/api/auth/reset-password", { token, newPassword: "a new password" }),
      "magic link": () => platform.post("/api/auth/verify-magic-link", { token }),
      "email change": () => platform.post("/api/auth/verify-email-change", { token }),
    };
    expect((await used[flow]()).status).toBe(status);
  }
});

test("[AU19] a mailed code lives for 5 minutes", async () => {
  const platform = await platformAt({ emailOtp: true });
  for (const [ageMs, status] of [
    [5 * MINUTE_MS - 1, 200],
    [5 * MINUTE_MS, 400],
  ] as const) {
    const email = nextEmail();
    await platform.post("/api/auth/signin/email-otp", { email });
    platform.clock.advance(ageMs);
    const code = lastMail(platform, email).code ?? "";
    expect((await platform.post("/api/auth/verify-email-otp", { email, code })).status).toBe(status);
  }
});

test("[AU27] a ticket lives for 5 minutes", async () => {
  const platform = await platformAt({ mfa: { totp: true } });
  const { user, accessToken } = await signUp(platform);
  const caller = platform.as(accessToken);
  const { secret, factorId } = (await caller.post<Enrolment>("/api/auth/mfa/totp/enroll")).body;
  const now = () => totpCode(secret, 0, platform.clock.now());
  expect((await caller.post("/api/auth/mfa/totp/verify", { factorId, code: now() })).status).toBe(200);
  for (const [ageMs, status] of [
    [5 * MINUTE_MS - 1, 200],
    [5 * MINUTE_MS, 400],
  ] as const) {
    const signIn = { email: String(user.email), password: PASSWORD };
    const { mfaTicket } = (await platform.post<Ticket>("/api/auth/signin", signIn)).body;
    platform.clock.advance(ageMs);
    expect((await platform.post("/api/auth/mfa/verify", { mfaTicket, code: now() })).status).toBe(status);
  }
});

test("[AU38] after the window, failures are forgotten", async () => {
  const platform = await platformAt();
  const { user } = await signUp(platform);
  const signIn = (password: string) => platform.post("/api/auth/signin", { email: String(user.email), password });
  for (let count = 0; count < 10; count++) expect((await signIn("wrong wrong")).status).toBe(401);
  expect((await signIn(PASSWORD)).status).toBe(429);
  platform.clock.advance(60 * SECOND_MS);
  expect((await signIn(PASSWORD)).status).toBe(200);
});
