import { afterEach, expect, test } from "bun:test";
import {
  type Enrolment,
  lastMail,
  mailAnswer,
  mailedToken,
  nextEmail,
  PASSWORD,
  type Ticket,
  type Tokens,
  totpCode,
} from "../../../../../tests/http/auth/auth-support.ts";
import { createHttpClient } from "../../../../../tests/support/http-client.ts";
import { SERVICE_KEY } from "../../../../../tests/support/index.ts";
import { openSocket } from "../../../../../tests/support/socket.ts";
import { type TimedPlatform, timedPlatform } from "../../../../../tests/support/timed-platform.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../kernel/time/duration.ts";
import type { PlatformConfig } from "../../../config/types.ts";

let running: TimedPlatform | null = null;

async function platformAt(auth: PlatformConfig["auth"] = {}): Promise<TimedPlatform> {
  running = await timedPlatform({ auth });
  return running;
}

const stop = async (): Promise<void> => running?.stop();
afterEach(stop);

const signUp = async (platform: TimedPlatform): Promise<Tokens> => {
  const answer = await platform.post<Tokens>("/api/auth/signup", { email: nextEmail(), password: PASSWORD });
  expect(answer.status).toBe(201);
  return answer.body;
};
const refresh = (platform: TimedPlatform, refreshToken: string) =>
  platform.post<Tokens>("/api/auth/refresh", { refreshToken });

test("[AU7] a replaced refresh token is valid for 30 s; used later, it ends the session", async () => {
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

test("[AU7] each of several replaced tokens is valid for its own 30 s", async () => {
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
  platform.clock.advance(28 * DAY_MS);
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

test.each(FLOWS)("[AU21] the token of a %s expires on time", async (flow, lifetimeMs) => {
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
    const to = flow === "email change" ? newEmail : email;
    const askedAt = platform.clock.now();
    expect((await mailAnswer(platform, to, asked[flow])).status).toBe(200);
    const token = mailedToken(platform, to);
    platform.clock.advance(askedAt + ageMs - platform.clock.now());
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
    const askedAt = platform.clock.now();
    await mailAnswer(platform, email, () => platform.post("/api/auth/signin/email-otp", { email }));
    platform.clock.advance(askedAt + ageMs - platform.clock.now());
    const code = lastMail(platform, email).code ?? "";
    expect((await platform.post("/api/auth/verify-email-otp", { email, code })).status).toBe(status);
  }
});

test("[AU27] a ticket expires after 5 minutes", async () => {
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
  for (let count = 0; count < 10; count++) expect((await platform.refused(signIn("wrong wrong"))).status).toBe(401);
  expect((await signIn(PASSWORD)).status).toBe(429);
  platform.clock.advance(60 * SECOND_MS);
  expect((await signIn(PASSWORD)).status).toBe(200);
});

test("[AU3] a refused password is answered 300 ms after its check began, whatever hash the account has; a right one at once", async () => {
  const platform = await platformAt();
  const { user } = await signUp(platform);
  const importing = await createHttpClient(() => platform.url, { "x-platform-service-key": SERVICE_KEY }).post(
    "/api/admin/auth/users/import",
    {
      users: [
        { email: "quick@example.com", passwordHash: `pbkdf2:sha256:1:${btoa("salt")}:${btoa("x".repeat(32))}` },
        {
          email: "slow@example.com",
          passwordHash: await Bun.password.hash(PASSWORD, { algorithm: "bcrypt", cost: 6 }),
        },
      ],
    },
  );
  expect(importing.status).toBe(200);
  const right = { email: String(user.email), password: PASSWORD };
  for (const email of [String(user.email), "quick@example.com", "slow@example.com", "nobody@example.com"]) {
    let answeredAt = 0;
    const beganAt = platform.clock.now();
    const waitingBefore = platform.clock.waiting;
    const answer = platform.post("/api/auth/signin", { email, password: "wrong wrong" }).then(({ status }) => {
      answeredAt = platform.clock.now();
      return status;
    });
    // The hash has been checked, and the answer waits for the clock.
    const giveUpAt = Date.now() + 10_000;
    while (platform.clock.waiting === waitingBefore && Date.now() < giveUpAt) await Bun.sleep(2);
    platform.clock.advance(299);
    // No other sign-in waits for it.
    expect((await platform.post("/api/auth/signin", right)).status).toBe(200);
    expect([email, answeredAt]).toEqual([email, 0]);
    platform.clock.advance(1);
    expect(await answer).toBe(401);
    expect(answeredAt).toBe(beganAt + 300);
  }
});

test("[AU43] an expired session is removed within 10 s, and its socket closed", async () => {
  const platform = await platformAt({ session: { refreshTokenTtl: 60 } });
  const { accessToken, refreshToken } = await signUp(platform);
  const socket = await openSocket(`${platform.url.replace("http", "ws")}/api/realtime`);
  socket.send({ type: "auth", token: accessToken });
  await socket.nextOf("auth_success");
  await platform.clock.advanceAsync(50 * SECOND_MS);
  expect((await refresh(platform, refreshToken)).status).toBe(200);
  await platform.clock.advanceAsync(59 * SECOND_MS);
  expect(socket.pending.filter(({ type }) => type === "error")).toEqual([]);
  await platform.clock.advanceAsync(11 * SECOND_MS);
  expect(await socket.nextOf("error")).toMatchObject({ code: "SESSION_REVOKED" });
  expect((await socket.closed).code).toBe(4003);
});
