import { afterAll, beforeAll, expect, test } from "bun:test";
import { createPublicKey, verify } from "node:crypto";
import { decodeJwt, decodeProtectedHeader } from "jose";
import library from "web-push";
import { testClock } from "../../../../../tests/support/clock.ts";
import { PUSH_MESSAGE } from "../../../../../tests/support/push-message.ts";
import {
  createSubscriber,
  startWebPushService,
  type WebPushService,
} from "../../../../../tests/support/web-push-service.ts";
import { systemClock } from "../../../../kernel/clock.ts";
import type { Message, Provider, Target } from "../message.ts";
import { createWebPush, isSubscription } from "./web-push.ts";

const message: Message = {
  ...PUSH_MESSAGE,
  body: "Grüße 🎬",
  data: { id: "7" },
  collapseId: "mail",
  ttl: 60,
};
const keys = library.generateVAPIDKeys();
const vapidDetails = { subject: "mailto:push@example.com", ...keys };
const subscriber = createSubscriber();

let service: WebPushService;
let provider: Provider;
beforeAll(async () => {
  service = await startWebPushService();
  provider = createProvider({});
});
afterAll(() => service.stop());

/** `push.example` resolves to loopback here, which `publicAddress` would refuse. */
function createProvider(options: { ca?: string }): Provider {
  const addressOf = async () => "127.0.0.1";
  return createWebPush({ vapidDetails, library, addressOf, clock: systemClock, ca: options.ca ?? service.ca });
}

const send = (token: string, sent: Message = message, to: Provider = provider) => {
  const target: Target = { userId: "u", token, platform: "web" };
  return to.send(target, sent, new AbortController().signal);
};
const last = () => service.requests.at(-1) ?? expect.unreachable();

test("[PU24] only the browser can decrypt the body; the push service gets TTL, urgency and topic", async () => {
  expect(await send(subscriber.token(`${service.origin}/201/a`))).toEqual({ kind: "sent" });
  const { headers, body } = last();
  expect(JSON.parse(subscriber.decrypt(body))).toEqual({
    title: "Hello",
    body: "Grüße 🎬",
    data: { id: "7" },
    collapseId: "mail",
  });
  expect(Buffer.from(body).includes("Hello")).toBe(false);
  expect(() => createSubscriber().decrypt(body)).toThrow();
  expect(headers.get("content-encoding")).toBe("aes128gcm");
  expect([headers.get("ttl"), headers.get("urgency")]).toEqual(["60", "high"]);
  expect(headers.get("topic")).toMatch(/^[A-Za-z0-9_-]{32}$/);
});

test("[PU24] the VAPID token identifies the server, to this push service only", async () => {
  await send(subscriber.token(`${service.origin}/201/a`));
  const [, token = "", key = ""] = /^vapid t=([^,]+), k=(.+)$/.exec(last().headers.get("authorization") ?? "") ?? [];
  expect(key).toBe(keys.publicKey);
  expect(decodeProtectedHeader(token)).toMatchObject({ alg: "ES256" });
  expect(decodeJwt(token)).toMatchObject({ aud: service.origin, sub: vapidDetails.subject });
  const point = Buffer.from(key, "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString("base64url"));
  const publicKey = createPublicKey({ key: { kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" }, format: "jwk" });
  const signed = Buffer.from(token.split(".").slice(0, 2).join("."));
  const signature = Buffer.from(token.split(".")[2] ?? "", "base64url");
  expect(verify("sha256", signed, { key: publicKey, dsaEncoding: "ieee-p1363" }, signature)).toBe(true);
});

test("[PU21] a silent message has its data only", async () => {
  await send(subscriber.token(`${service.origin}/201/a`), { ...message, silent: true, ttl: null, collapseId: null });
  const { headers, body } = last();
  expect(JSON.parse(subscriber.decrypt(body))).toEqual({ silent: true, data: { id: "7" } });
  expect([headers.get("urgency"), headers.get("topic"), headers.get("ttl")]).toEqual(["normal", null, "2419200"]);
});

test("[PU16] 404 and 410 end the subscription; 429 and 5xx allow another attempt", async () => {
  const results: unknown[] = [];
  for (const status of [404, 410, 429, 503, 403, 413]) {
    results.push(await send(subscriber.token(`${service.origin}/${status}/a`)));
  }
  const error = (status: number) => `The push service answered ${status}`;
  expect(results).toEqual([
    { kind: "unregistered", error: error(404) },
    { kind: "unregistered", error: error(410) },
    { kind: "busy", error: error(429), retryAfterMs: 7_000 },
    { kind: "busy", error: error(503), retryAfterMs: 7_000 },
    { kind: "failed", error: error(403) },
    { kind: "failed", error: error(413) },
  ]);
});

test("[PU26] redirects are not followed, and an endless answer does not delay the result", async () => {
  expect(await send(subscriber.token(`${service.origin}/redirect`))).toEqual({
    kind: "failed",
    error: "The push service answered 307",
  });
  expect(service.requests.filter(({ path }) => path === "/201/redirected")).toEqual([]);
  expect(await send(subscriber.token(`${service.origin}/endless`))).toEqual({ kind: "sent" });
});

test("[PU26] the body of an answer is not decompressed: a few bytes could become gigabytes", async () => {
  // The body claims to be compressed but is not: a client that decompressed it would fail before it reported the status.
  expect(await send(subscriber.token(`${service.origin}/compressed`))).toEqual({ kind: "sent" });
});

test("[PU26] the certificate must match the host name of the subscription, whatever the address", async () => {
  const count = service.requests.length;
  const elsewhere = service.origin.replace("push.example", "other.example");
  await expect(send(subscriber.token(`${elsewhere}/201/a`))).rejects.toThrow("ALTNAME");
  const stranger = await startWebPushService();
  await expect(send(subscriber.token(`${service.origin}/201/a`), message, createProvider(stranger))).rejects.toThrow();
  await stranger.stop();
  expect(service.requests.length).toBe(count);
});

test("[PU25] nothing is sent to a subscription that is not https or has no keys", async () => {
  const keysOf = JSON.parse(subscriber.token(""))["keys"];
  const tokens: [string, string][] = [
    [JSON.stringify({ endpoint: "http://push.example/a", keys: keysOf }), "must be https"],
    [JSON.stringify({ endpoint: "file:///etc/passwd", keys: keysOf }), "must be https"],
    [JSON.stringify({ endpoint: "https://me:secret@push.example/", keys: keysOf }), "credentials"],
    [JSON.stringify({ endpoint: 5, keys: keysOf }), "not a URL"],
    [JSON.stringify({ endpoint: "https://push.example/a" }), "no keys"],
    [JSON.stringify({ endpoint: "https://push.example/a", keys: { p256dh: "short", auth: keysOf.auth } }), "65 bytes"],
  ];
  for (const [token, words] of tokens) {
    expect(isSubscription(token)).toBe(true);
    await expect(send(token)).rejects.toThrow(words);
  }
});

test("[PU24] a token that is not a subscription in JSON is for FCM", () => {
  for (const token of ["dGVz:APA91b", "{broken", "[]", "null", `{"keys":{}}`, `"{}"`]) {
    expect([token, isSubscription(token)]).toEqual([token, false]);
  }
});

test("[PU35] after five consecutive timeouts a push service is not called for 30 seconds, under any name", async () => {
  const clock = testClock();
  let isSilent = true;
  const addressOf = async () => (isSilent ? await new Promise<never>(() => {}) : "127.0.0.1");
  const own = createWebPush({ vapidDetails, library, addressOf, clock, ca: service.ca });
  const sendTo = (host: string, timeout = new AbortController()) => {
    const token = subscriber.token(`${service.origin}/201/a`.replace("push.example", host));
    return { result: own.send({ userId: "u", token, platform: "web" }, message, timeout.signal), timeout };
  };
  const resting = (host: string) => ({ kind: "unreachable" as const, error: `${host} has not answered recently` });
  for (const host of ["push.example", "a.push.example", "b.push.example", "push.example."]) {
    sendTo(host).timeout.abort();
  }
  isSilent = false;
  expect(await sendTo("push.example").result).toEqual({ kind: "sent" });
  isSilent = true;
  // The answer has reset the count.
  for (const host of ["a.push.example", "b.push.example", "c.push.example", "d.push.example"]) {
    sendTo(host).timeout.abort();
  }
  const fifth = sendTo("push.example");
  fifth.timeout.abort();
  expect(await sendTo("e.push.example").result).toEqual(resting("e.push.example"));
  isSilent = false;
  clock.advance(29_999);
  expect(await sendTo("push.example").result).toEqual(resting("push.example"));
  clock.advance(1);
  expect(await sendTo("push.example").result).toEqual({ kind: "sent" });
});
