import { afterEach, beforeEach, expect, test } from "bun:test";
import { settle, type TestClock, testClock } from "../../../../../tests/support/clock.ts";
import { PUSH_MESSAGE } from "../../../../../tests/support/push-message.ts";
import { CALL_TIMEOUT_MS, CALLS_AT_ONCE_MAX, RETRY_AFTER_MAX_MS, RETRY_DELAYS_MS } from "../limits.ts";
import type { CallResult, Provider, Target } from "../message.ts";
import { retryAfterMs } from "../providers/provider-answer.ts";
import { createDeliveries, type Deliveries } from "./deliveries.ts";

const target: Target = { userId: "u", token: "phone", platform: "android" };
const busy = (retryAfter: number | null): CallResult => ({ kind: "busy", error: "busy", retryAfterMs: retryAfter });

/** A provider whose calls stay open until the test answers them. */
class OpenCalls implements Provider {
  readonly calls: PromiseWithResolvers<CallResult>[] = [];
  answered = 0;
  siteOf(target: Target): string {
    return target.token;
  }
  send(): Promise<CallResult> {
    const call = Promise.withResolvers<CallResult>();
    this.calls.push(call);
    return call.promise;
  }
  /** Answers the oldest open call. */
  async answer(result: CallResult): Promise<void> {
    await settle();
    this.calls[this.answered++]?.resolve(result);
    await settle();
  }
}

let clock: TestClock;
let provider: OpenCalls;
let stopping: AbortController;
let deliveries: Deliveries;
beforeEach(() => {
  clock = testClock();
  provider = new OpenCalls();
  stopping = new AbortController();
  deliveries = createDeliveries({ fcm: provider, webPush: null, clock, stopping: stopping.signal });
});
afterEach(() => expect(clock.waiting).toBe(0));

test("[PU17] after two more attempts, each after its pause, the message has failed", async () => {
  const delivered = deliveries.deliver(target, PUSH_MESSAGE);
  for (const delayMs of RETRY_DELAYS_MS) {
    await provider.answer(busy(null));
    await clock.advanceAsync(delayMs - 1);
    expect(provider.calls.length).toBe(provider.answered);
    await clock.advanceAsync(1);
    expect(provider.calls.length).toBe(provider.answered + 1);
  }
  await provider.answer(busy(null));
  expect(await delivered).toEqual({ target, status: "failed", error: "busy" });
  expect(provider.calls.length).toBe(3);
});

test("[PU17] the pause is Retry-After, but at most ten seconds", async () => {
  const delivered = deliveries.deliver(target, PUSH_MESSAGE);
  await provider.answer(busy(3_000));
  await clock.advanceAsync(2_999);
  expect(provider.calls.length).toBe(1);
  await clock.advanceAsync(1);
  await provider.answer(busy(3_600_000));
  await clock.advanceAsync(RETRY_AFTER_MAX_MS);
  await provider.answer({ kind: "sent" });
  expect(await delivered).toEqual({ target, status: "sent", error: null });
});

test("[PU17] Retry-After is a number of seconds or a date", () => {
  const now = Date.UTC(2026, 0, 1);
  const parse = (value: string) => retryAfterMs(new Headers({ "retry-after": value }), now);
  expect([parse("3"), parse("Thu, 01 Jan 2026 00:00:05 GMT"), parse("Wed, 31 Dec 2025 00:00:00 GMT")]).toEqual([
    3_000, 5_000, 0,
  ]);
  expect([parse("soon"), retryAfterMs(new Headers(), now)]).toEqual([null, null]);
});

test("[PU17] other failures are not retried", async () => {
  const delivered = deliveries.deliver(target, PUSH_MESSAGE);
  await provider.answer({ kind: "failed", error: "refused" });
  expect(await delivered).toEqual({ target, status: "failed", error: "refused" });
  const thrown = deliveries.deliver(target, PUSH_MESSAGE);
  await settle();
  provider.calls[1]?.reject(new Error("connection lost"));
  expect(await thrown).toEqual({ target, status: "failed", error: "connection lost" });
  expect(provider.calls.length).toBe(2);
});

test("[PU18] at most fifty calls run concurrently; the others follow in order", async () => {
  const all = Promise.all(
    Array.from({ length: CALLS_AT_ONCE_MAX + 5 }, () => deliveries.deliver(target, PUSH_MESSAGE)),
  );
  await settle();
  expect(provider.calls.length).toBe(CALLS_AT_ONCE_MAX);
  await provider.answer({ kind: "sent" });
  expect(provider.calls.length).toBe(CALLS_AT_ONCE_MAX + 1);
  // A pausing message occupies no call.
  await provider.answer(busy(null));
  expect(provider.calls.length).toBe(CALLS_AT_ONCE_MAX + 2);
  while (provider.answered < provider.calls.length) await provider.answer({ kind: "sent" });
  await clock.advanceAsync(RETRY_DELAYS_MS[0] ?? 0);
  await provider.answer({ kind: "sent" });
  expect((await all).filter(({ status }) => status === "sent").length).toBe(CALLS_AT_ONCE_MAX + 5);
});

test("[PU18] a call without an answer has failed after ten seconds, and the next one starts", async () => {
  const all = Array.from({ length: CALLS_AT_ONCE_MAX + 1 }, () => deliveries.deliver(target, PUSH_MESSAGE));
  await settle();
  await clock.advanceAsync(CALL_TIMEOUT_MS - 1);
  expect(provider.calls.length).toBe(CALLS_AT_ONCE_MAX);
  await clock.advanceAsync(1);
  expect(await all[0]).toEqual({ target, status: "failed", error: "No answer within 10 s" });
  provider.calls[CALLS_AT_ONCE_MAX]?.resolve({ kind: "sent" });
  expect(await all[CALLS_AT_ONCE_MAX]).toMatchObject({ status: "sent" });
});

test("[PU30] at a stop pauses end, no calls are started, and running calls can be ended", async () => {
  const pausing = deliveries.deliver(target, PUSH_MESSAGE);
  await provider.answer(busy(null));
  const open = deliveries.deliver(target, PUSH_MESSAGE);
  await settle();
  stopping.abort();
  expect(await pausing).toMatchObject({ status: "failed", error: "The server stopped before this was sent" });
  expect(await deliveries.deliver(target, PUSH_MESSAGE)).toMatchObject({ status: "failed" });
  deliveries.giveUp(new Error("over"));
  expect(await open).toEqual({ target, status: "failed", error: "over" });
  expect(provider.calls.length).toBe(2);
});

test("[PU27] a message to a device of an unconfigured provider fails with the reason", async () => {
  const subscription = { ...target, platform: "web" as const, token: `{"endpoint":"https://push.example/a"}` };
  expect(await deliveries.deliver(subscription, PUSH_MESSAGE)).toMatchObject({
    status: "failed",
    error: "Web Push is not configured",
  });
  expect(deliveries.isConfigured).toBe(true);
  const none = createDeliveries({ fcm: null, webPush: null, clock, stopping: stopping.signal });
  expect(none.isConfigured).toBe(false);
  expect(await none.deliver(target, PUSH_MESSAGE)).toMatchObject({ error: "FCM is not configured" });
});
