import { afterEach, beforeEach, expect, test } from "bun:test";
import { type TestClock, testClock } from "../../../../../tests/support/clock.ts";
import { type FcmServer, startFcmServer } from "../../../../../tests/support/fcm-server.ts";
import { PUSH_MESSAGE } from "../../../../../tests/support/push-message.ts";
import { ACCESS_TOKEN_MARGIN_MS } from "../limits.ts";
import type { Provider } from "../message.ts";
import { createFcm, loadServiceAccount } from "./fcm.ts";

let fcm: FcmServer;
let clock: TestClock;
let provider: Provider;
beforeEach(async () => {
  fcm = await startFcmServer();
  // The token endpoint checks the times of what it is sent against the real clock.
  clock = testClock(Date.now());
  const { projectId, endpoint, tokenEndpoint, serviceAccount } = fcm;
  const account = loadServiceAccount({ projectId, serviceAccount });
  provider = createFcm({ projectId, account, endpoint: `${endpoint}/`, tokenEndpoint, clock });
});
afterEach(() => fcm.stop());

const send = (token: string, to: Provider = provider) =>
  to.send({ userId: "u", token, platform: "android" }, PUSH_MESSAGE, new AbortController().signal);

test("[PU19] one request for an access token serves all concurrent and later messages", async () => {
  const results = await Promise.all(Array.from({ length: 20 }, (_, index) => send(`phone-${index}`)));
  expect(results).toEqual(results.map(() => ({ kind: "sent" })));
  expect(await send("phone-later")).toEqual({ kind: "sent" });
  expect([fcm.tokensGiven, fcm.calls.length]).toEqual([1, 21]);
});

test("[PU19] a token is replaced shortly before it expires, a short-lived one after half of its life", async () => {
  await send("phone");
  clock.advance(3_600_000 - ACCESS_TOKEN_MARGIN_MS - 1);
  await send("phone");
  expect(fcm.tokensGiven).toBe(1);
  fcm.tokenLifeSeconds = 20;
  clock.advance(1);
  await send("phone");
  expect(fcm.tokensGiven).toBe(2);
  clock.advance(9_999);
  await send("phone");
  expect(fcm.tokensGiven).toBe(2);
  clock.advance(1);
  await send("phone");
  expect(fcm.tokensGiven).toBe(3);
});

test("[PU19] a refused token is replaced, and the message sent once more", async () => {
  await send("phone");
  fcm.revokeTokens();
  expect(await send("phone")).toEqual({ kind: "sent" });
  expect([fcm.tokensGiven, fcm.taken("phone").length]).toEqual([2, 2]);
});

test("[PU19] a refusal of the token endpoint is a failure; a busy one allows another attempt", async () => {
  fcm.tokenStatus = 403;
  expect(await send("phone")).toEqual({ kind: "failed", error: "The token endpoint answered 403: made_up" });
  fcm.tokenStatus = 503;
  expect(await send("phone")).toMatchObject({ kind: "busy", retryAfterMs: null });
  fcm.tokenStatus = 200;
  expect(await send("phone")).toEqual({ kind: "sent" });
});

test("[PU16] only a 404 with the code UNREGISTERED means unregistered", async () => {
  expect(await send("gone-1")).toMatchObject({ kind: "unregistered", error: expect.stringContaining("UNREGISTERED") });
  expect(await send("lost-1")).toMatchObject({ kind: "failed", error: expect.stringContaining("404") });
  const { projectId, endpoint, tokenEndpoint, serviceAccount } = fcm;
  const account = loadServiceAccount({ projectId, serviceAccount });
  const elsewhere = createFcm({ projectId: "other", account, endpoint, tokenEndpoint, clock });
  expect(await send("phone", elsewhere)).toEqual({ kind: "failed", error: "FCM answered 404" });
});

test("[PU17] 429 and 5xx allow another attempt after Retry-After", async () => {
  expect(await send("quota-1")).toMatchObject({ kind: "busy", retryAfterMs: null });
  expect(await send("broken-1")).toMatchObject({ kind: "busy", retryAfterMs: null });
  expect(await send("later-1")).toMatchObject({ kind: "busy", retryAfterMs: 1_000 });
});

test("[PU33] errors name unusable credentials and never contain their keys", () => {
  const wrong: [Parameters<typeof loadServiceAccount>[0]["serviceAccount"], string][] = [
    ["/nowhere/account.json", "push.fcm.serviceAccount: cannot be read"],
    [import.meta.path, "push.fcm.serviceAccount: is not JSON"],
    [{ client_email: "a@b.example", private_key: "s3cret" }, "push.fcm.serviceAccount: must have an RSA key"],
  ];
  for (const [serviceAccount, words] of wrong) {
    const load = () => loadServiceAccount({ projectId: "p", serviceAccount });
    expect(load).toThrow(words);
    expect(load).not.toThrow("s3cret");
  }
});
