import { afterAll, beforeAll, expect, test } from "bun:test";
import library from "web-push";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type ErrorAnswer,
  type HttpClient,
  signIn,
  type TestPlatform,
  testPlatform,
  until,
} from "../../support/index.ts";
import { startSilentDns } from "../../support/silent-dns.ts";
import { createSubscriber } from "../../support/web-push-service.ts";
import { logsOf, type PushWorld, pushWorld, register, TITLED, tokensOf } from "./push-support.ts";

let world: PushWorld;
/** Neither FCM nor Web Push. */
let bare: TestPlatform;
beforeAll(async () => {
  world = await pushWorld({
    serviceKeys: {
      sender: { key: "sender-key-0123456789abcdef", scopes: ["push:*:*:send"] },
      reader: { key: "reader-key-0123456789abcdef", scopes: ["push:*:*:read"] },
      writer: { key: "writer-key-0123456789abcdef", scopes: ["push:*:*:write"] },
      other: { key: "other-key-0123456789abcdef", scopes: ["kv:*:*:*"] },
    },
  });
  bare = await testPlatform({ config: {} });
});
afterAll(async () => {
  await bare.stop();
  await world.stop();
});

const SENDING = ["send", "send-many", "send-to-token", "send-to-topic", "broadcast"];
const BODIES: Record<string, JsonObject> = {
  send: { userId: "nobody", ...TITLED },
  "send-many": { userIds: ["nobody"], ...TITLED },
  "send-to-token": { token: "somebody", payload: TITLED },
  "send-to-topic": { topic: "nobody", payload: TITLED },
  broadcast: { payload: TITLED },
};

/** Every administration endpoint with its scope. */
const ADMIN: [scope: "send" | "read" | "write", call: (who: HttpClient) => Promise<{ status: number }>][] = [
  ...SENDING.map((path): [scope: "send", call: (who: HttpClient) => Promise<{ status: number }>] => [
    "send",
    (who) => who.post(`/api/push/${path}`, BODIES[path]),
  ]),
  ["write", (who) => who.patch("/api/push/tokens", { userId: "nobody", deviceId: "d", metadata: {} })],
  ["read", (who) => who.get("/api/push/tokens?userId=nobody")],
  ["read", (who) => who.get("/api/push/logs")],
];

test("[PU8] without a service key 403, with an invalid one 401, without the scope 403", async () => {
  const { platform } = world;
  const ann = await signIn(platform);
  const keys = {
    send: "sender-key-0123456789abcdef",
    read: "reader-key-0123456789abcdef",
    write: "writer-key-0123456789abcdef",
  };
  for (const [index, [scope, call]] of ADMIN.entries()) {
    expect([index, (await call(platform)).status]).toEqual([index, 403]);
    expect([index, (await call(ann)).status]).toEqual([index, 403]);
    expect([index, (await call(platform.withKey("wrong"))).status]).toEqual([index, 401]);
    for (const [name, key] of Object.entries({ ...keys, none: "other-key-0123456789abcdef" })) {
      const { status } = await call(platform.withKey(key));
      const isAllowed = name === scope;
      expect([index, name, status === 403]).toEqual([index, name, !isAllowed]);
    }
  }
});

test("[PU8] credentials are checked before the body", async () => {
  for (const path of SENDING) {
    expect((await world.platform.post(`/api/push/${path}`, {})).status).toBe(403);
    expect((await world.platform.withKey("wrong").post(`/api/push/${path}`, {})).status).toBe(401);
  }
});

test("[PU9, PU27] fields are checked before devices, and devices before credentials", async () => {
  const ann = await signIn(bare);
  await register(ann, "phone");
  const statuses = async (path: string, body: JsonObject) =>
    (await bare.service.post(`/api/push/${path}`, body)).status;
  for (const path of SENDING) expect([path, await statuses(path, {})]).toEqual([path, 400]);
  expect(await statuses("send", { userId: "nobody", ...TITLED })).toBe(404);
  expect(await statuses("send", { userId: ann.id, ...TITLED })).toBe(503);
  for (const path of SENDING.slice(1)) {
    const body = { ...BODIES[path], ...(path === "send-many" ? { userIds: [ann.id] } : {}) };
    const answer = await bare.service.post<ErrorAnswer>(`/api/push/${path}`, body);
    expect([path, answer.status, answer.body.message]).toEqual([path, 503, "Push credentials are not configured"]);
  }
  expect(await logsOf(bare)).toEqual([]);
});

test("[PU23] every missing or invalid member is named", async () => {
  const payload = TITLED;
  const wrong: [path: string, body: JsonObject, fields: Record<string, string>][] = [
    ["send", {}, { userId: "required", title: "required", body: "required" }],
    ["send", { userId: "u", title: 1, body: "" }, { title: "invalid_type", body: "required" }],
    ["send", { userId: "u", ...TITLED, badge: 1.5, ttl: -1 }, { badge: "invalid_type", ttl: "too_small" }],
    ["send", { userId: "u", ...TITLED, ttl: 2419201, badge: 2 ** 31 }, { ttl: "too_large", badge: "too_large" }],
    ["send", { userId: "u", ...TITLED, data: [1], silent: "yes" }, { data: "invalid_type", silent: "invalid_type" }],
    [
      "send",
      { userId: "u", ...TITLED, image: 5, sound: "s".repeat(257) },
      { image: "invalid_type", sound: "too_long" },
    ],
    ["send", { userId: "u", ...TITLED, collapseId: "c".repeat(65) }, { collapseId: "too_long" }],
    ["send", { userId: "u", ...TITLED, subtitle: "no" }, { subtitle: "unknown_field" }],
    [
      "send",
      { userId: "u", ...TITLED, fcm: { token: "x", topic: "y", condition: "z" } },
      { "fcm.token": "invalid_value", "fcm.topic": "invalid_value", "fcm.condition": "invalid_value" },
    ],
    ["send-many", { userIds: [], ...TITLED }, { userIds: "required" }],
    ["send-many", { userIds: "u", ...TITLED }, { userIds: "invalid_type" }],
    ["send-many", { userIds: ["u", 5], ...TITLED }, { userIds: "invalid_type" }],
    ["send-many", { userIds: Array.from({ length: 1001 }, String), ...TITLED }, { userIds: "too_long" }],
    ["send-to-token", {}, { token: "required", payload: "required" }],
    ["send-to-token", { token: "t", payload: "hello" }, { payload: "invalid_type" }],
    ["send-to-token", { token: "t", payload, platform: "symbian" }, { platform: "invalid_value" }],
    ["send-to-token", { token: "t", payload: { title: "only" } }, { "payload.body": "required" }],
    ["send-to-topic", { payload }, { topic: "required" }],
    [
      "send-to-topic",
      { topic: "a/b", payload: { ...TITLED, more: 1 } },
      { topic: "pattern_mismatch", "payload.more": "unknown_field" },
    ],
    ["broadcast", {}, { payload: "required" }],
    ["broadcast", { payload: { silent: false } }, { "payload.title": "required", "payload.body": "required" }],
  ];
  for (const [path, body, fields] of wrong) {
    const answer = await world.platform.service.post<ErrorAnswer>(`/api/push/${path}`, body);
    const found = Object.entries(answer.body.data ?? {}).map(([name, { code }]) => [name, code]);
    expect([path, answer.status, Object.fromEntries(found)]).toEqual([path, 400, fields]);
  }
});

test("[PU23] a message larger than providers accept is 413", async () => {
  const large: JsonObject[] = [
    { data: { text: "x".repeat(4_100) } },
    { data: { text: "x".repeat(2_100) }, image: "y".repeat(2_000) },
    { fcm: { android: { text: "x".repeat(4_100) } } },
  ];
  for (const members of large) {
    const body = { token: "t", payload: { ...TITLED, ...members } };
    expect((await world.platform.service.post("/api/push/send-to-token", body)).status).toBe(413);
  }
  const body = { token: "fits", payload: { ...TITLED, data: { text: "x".repeat(3_900) } }, platform: "ios" };
  expect((await world.platform.service.post("/api/push/send-to-token", body)).body).toEqual({ sent: 1, failed: 0 });
});

const dns = await startSilentDns("127.77.0.53");
afterAll(() => dns?.stop());
if (dns === null) console.warn("names that are not answered are not tested: this process may not have a name server");

test.if(dns !== null)("[PU25] names that are not answered delay no write", async () => {
  const keys = library.generateVAPIDKeys();
  const webPush = { subject: "mailto:push@example.com", ...keys };
  const platform = await testPlatform({ config: { kv: { notes: {} }, push: { webPush } }, prefix: dns?.prefix ?? [] });
  const ann = await signIn(platform);
  // More than there are threads.
  for (let n = 0; n < 50; n++) {
    const token = createSubscriber().token(`https://push-${n}.example/a`);
    await register(ann, `browser-${n}`, { token, platform: "web" });
  }
  const sent = platform.service.post("/api/push/send", { userId: ann.id, ...TITLED });
  await until("the name server is asked", () => (dns?.asked ?? 0) > 1);
  let isWritten = false;
  const written = platform.service.post("/api/kv/notes", { action: "set", key: "a", value: 1 }).then(({ status }) => {
    isWritten = status === 200;
  });
  try {
    await until("a write is answered", () => isWritten);
  } finally {
    dns?.answer();
    await Promise.all([written, sent]);
    await platform.stop();
  }
  expect((await sent).body).toEqual({ ok: true, sent: 0, failed: 50 });
});

test("[PU24, PU25, PU27] a subscription is sent by Web Push, and never to a private network", async () => {
  const keys = library.generateVAPIDKeys();
  const webPush = { subject: "mailto:push@example.com", ...keys };
  const platform = await testPlatform({ config: { push: { webPush } } });
  const ann = await signIn(platform);
  const subscriber = createSubscriber();
  const endpoints = [
    ...["https://127.0.0.1/a", "https://localhost/a", "https://[::1]/a", "https://10.1.2.3/a", "https://2130706433/a"],
    ...["https://169.254.169.254/latest", "https://[::ffff:192.168.0.1]/a"],
  ];
  for (const [index, endpoint] of endpoints.entries()) {
    await register(ann, `browser-${index}`, { token: subscriber.token(endpoint), platform: "web" });
  }
  const answer = await platform.service.post("/api/push/send", { userId: ann.id, ...TITLED });
  expect(answer.body).toEqual({ ok: true, sent: 0, failed: endpoints.length });
  const errors = (await logsOf(platform)).map(({ error }) => error);
  expect(errors.every((error) => error?.endsWith("is in a private network"))).toBe(true);
  expect(errors.length).toBe(endpoints.length);
  const http = { token: subscriber.token("http://127.0.0.1/a"), payload: TITLED };
  expect((await platform.service.post("/api/push/send-to-token", http)).body).toEqual({ sent: 0, failed: 1 });
  expect((await logsOf(platform, { limit: 1 }))[0]?.error).toBe("The endpoint must be https");
  const phone = { token: "a-phone", payload: TITLED, platform: "android" };
  expect((await platform.service.post("/api/push/send-to-token", phone)).body).toEqual({ sent: 0, failed: 1 });
  expect((await logsOf(platform, { limit: 1 }))[0]?.error).toBe("FCM is not configured");
  // None of the failures means that a subscription has ended.
  expect((await tokensOf(platform, ann.id)).length).toBe(endpoints.length);
  await platform.stop();
});

test("[PU8] the global rate limit counts clients, but not service keys", async () => {
  const limited = await pushWorld({ rateLimits: { global: { requests: 12, window: 3600 } } });
  const ann = await signIn(limited.platform);
  const statuses: number[] = [];
  for (let index = 0; index < 20; index++) {
    statuses.push((await ann.post("/api/push/unregister", { token: "t" })).status);
  }
  expect(statuses).toContain(429);
  expect((await limited.platform.service.get("/api/push/logs")).status).toBe(200);
  await limited.stop();
});
