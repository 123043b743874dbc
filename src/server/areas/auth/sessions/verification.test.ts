import { afterEach, expect, test } from "bun:test";
import { mailAnswer, nextEmail, outbox, PASSWORD } from "../../../../../tests/http/auth/auth-support.ts";
import { type TimedPlatform, timedPlatform } from "../../../../../tests/support/timed-platform.ts";
import { HOUR_MS } from "../../../../kernel/time/duration.ts";
import { VERIFICATION_PAUSE_MS } from "../limits.ts";

let platform: TimedPlatform;
afterEach(() => platform.stop());

test("[AU205] a sign-in mails the link again a minute after the last one, also when the clock was set back", async () => {
  platform = await timedPlatform({ auth: { requireVerifiedEmail: true } });
  const email = nextEmail();
  await platform.post("/api/auth/signup", { email, password: PASSWORD });
  const signIn = async () => {
    expect((await platform.post("/api/auth/signin", { email, password: PASSWORD })).status).toBe(403);
    return outbox(platform).length;
  };
  platform.clock.advance(VERIFICATION_PAUSE_MS - 1);
  expect(await signIn()).toBe(1);
  platform.clock.advance(1);
  expect(await signIn()).toBe(2);
  expect(await signIn()).toBe(2);
  platform.clock.advance(-HOUR_MS);
  expect(await signIn()).toBe(3);
});

test("[AU205] thirty mails to an address within ten minutes leave none for a sign-in, which answers the same", async () => {
  platform = await timedPlatform({ auth: { requireVerifiedEmail: true } });
  const email = nextEmail();
  await platform.post("/api/auth/signup", { email, password: PASSWORD });
  for (let n = 1; n < 30; n++) {
    const ask = () => platform.post("/api/auth/request-password-reset", { email });
    expect((await mailAnswer(platform, email, ask)).status).toBe(200);
  }
  expect((await platform.post("/api/auth/request-password-reset", { email })).status).toBe(429);
  platform.clock.advance(VERIFICATION_PAUSE_MS);
  expect((await platform.post("/api/auth/signin", { email, password: PASSWORD })).status).toBe(403);
  expect(outbox(platform)).toHaveLength(30);
});
