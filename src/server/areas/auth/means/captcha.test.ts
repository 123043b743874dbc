import { expect, test } from "bun:test";
import { testClock } from "../../../../../tests/support/clock.ts";
import { silentLogger } from "../../../../kernel/logger.ts";
import { CAPTCHA_CHECKS_AT_ONCE_MAX, CAPTCHA_TIMEOUT_MS } from "../limits.ts";
import { Captcha } from "./captcha.ts";

const client = { address: "192.0.2.1", userAgent: null, language: null, isLimited: true };

test("[AU211] a provider that does not answer within five seconds is 503; a drill asks none", async () => {
  const asked = Promise.withResolvers<void>();
  const provider = Bun.serve({
    port: 0,
    async fetch() {
      asked.resolve();
      await new Promise(() => {});
      return new Response();
    },
  });
  const config = { provider: "turnstile", siteKey: "k", secretKey: "s", endpoint: provider.url.href } as const;
  const clock = testClock();
  const captcha = new Captcha({ config, isDrill: false, clock, logger: silentLogger });
  const check = captcha.check("token", client);
  await asked.promise;
  clock.advance(CAPTCHA_TIMEOUT_MS);
  await expect(check).rejects.toMatchObject({ status: 503 });
  expect(clock.waiting).toBe(0);
  const drill = new Captcha({ config, isDrill: true, clock, logger: silentLogger });
  await drill.check("token", client);
  await expect(drill.check(undefined, client)).rejects.toMatchObject({ status: 400 });
  await provider.stop(true);
});

test("[AU211] beyond two hundred checks under way a further one is 503", async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const provider = Bun.serve({
    port: 0,
    async fetch() {
      await released;
      return Response.json({ success: true });
    },
  });
  const config = { provider: "hcaptcha", siteKey: "k", secretKey: "s", endpoint: provider.url.href } as const;
  const captcha = new Captcha({ config, isDrill: false, clock: testClock(), logger: silentLogger });
  const checks = Array.from({ length: CAPTCHA_CHECKS_AT_ONCE_MAX }, () => captcha.check("token", client));
  await expect(captcha.check("token", client)).rejects.toMatchObject({ status: 503 });
  release();
  await Promise.all(checks);
  await captcha.check("token", client);
  await provider.stop(true);
});
