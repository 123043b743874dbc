import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type HttpClient, signIn, signToken } from "../../support/index.ts";
import { type PushWorld, pushWorld, register, TITLED, tokensOf, until } from "./push-support.ts";

let world: PushWorld;
beforeAll(async () => {
  world = await pushWorld();
});
afterAll(() => world.stop());

const user = () => signIn(world.platform);
const subscribe = (who: HttpClient, topic: string) => who.post("/api/push/topic/subscribe", { topic });
const sendToTopic = (topic: string, title: string) =>
  world.platform.service.post("/api/push/send-to-topic", { topic, payload: { ...TITLED, title } });

/** The titles of the messages that this token has received. */
const titles = (token: string): string[] =>
  world.fcm.taken(token).map(({ notification }) => (notification as { title: string }).title);

test("[PU1] a registration answers the device, which receives broadcasts", async () => {
  const ann = await user();
  const record = await register(ann, "ann-phone", { token: "ann-token", platform: "ios" });
  expect(record).toEqual({
    id: "ann-phone",
    token: "ann-token",
    platform: "ios",
    userId: ann.id,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
  const { userId: _, ...listed } = record;
  const answer = await world.platform.service.get("/api/push/tokens", { query: { userId: ann.id } });
  expect([answer.status, answer.body]).toEqual([200, { tokens: [listed] }]);
  const sent = await world.platform.service.post("/api/push/broadcast", { payload: TITLED });
  expect([sent.status, sent.body]).toEqual([200, { success: true }]);
  await until(() => world.fcm.taken("ann-token").length === 1, "the broadcast came");
});

test("[PU2] registering a device again replaces its token and keeps its time, topics and metadata", async () => {
  const ann = await user();
  const first = await register(ann, "phone", { token: "again-1" });
  await subscribe(ann, "again");
  const metadata = { userId: ann.id, deviceId: "phone", metadata: { beta: true } };
  expect((await world.platform.service.patch("/api/push/tokens", metadata)).status).toBe(200);
  const second = await register(ann, "phone", { token: "again-2", platform: "web" });
  expect(second).toEqual({ ...first, token: "again-2", platform: "web" });
  await sendToTopic("again", "for the topic");
  await until(() => world.fcm.taken("again-2").length === 1, "the topic came to the new token");
  expect(await tokensOf(world.platform, ann.id)).toEqual(["again-2"]);
  expect(world.fcm.taken("again-1")).toEqual([]);
});

test("[PU3] a token moves to the device that registers it last, without the subscriptions of the previous one", async () => {
  const [ann, bob] = [await user(), await user()];
  await register(ann, "shared-phone", { token: "moving" });
  await register(ann, "other-phone", { token: "staying" });
  await subscribe(ann, "anns-own");
  await register(bob, "shared-phone", { token: "moving" });
  expect([await tokensOf(world.platform, ann.id), await tokensOf(world.platform, bob.id)]).toEqual([
    ["staying"],
    ["moving"],
  ]);
  await sendToTopic("anns-own", "for Ann");
  await until(() => world.fcm.taken("staying").length === 1, "Ann's other device heard it");
  expect(titles("moving")).toEqual([]);
  // Also between devices of the same user.
  await register(bob, "new-phone", { token: "moving" });
  const bobs = await world.platform.service.get("/api/push/tokens", { query: { userId: bob.id } });
  expect(bobs.body).toMatchObject({ tokens: [{ id: "new-phone", token: "moving" }] });
});

test("[PU4] the fifty-first device replaces the one that registered longest ago", async () => {
  const ann = await user();
  for (let index = 0; index < 50; index++) await register(ann, `many-${index}`);
  await register(ann, "many-0");
  await register(ann, "many-50");
  const tokens = await tokensOf(world.platform, ann.id);
  expect(tokens.length).toBe(50);
  expect(tokens).toContain("many-0");
  expect(tokens).toContain("many-50");
  expect(tokens).not.toContain("many-1");
});

test("[PU5] users can remove their own devices only", async () => {
  const [ann, bob] = [await user(), await user()];
  await register(ann, "leaving");
  const unregister = (who: HttpClient, token: string) => who.post("/api/push/unregister", { token });
  for (const [who, token] of [
    [bob, "leaving"],
    [ann, "never heard of"],
  ] as const) {
    const answer = await unregister(who, token);
    expect([answer.status, answer.body]).toEqual([200, { ok: true }]);
  }
  expect(await tokensOf(world.platform, ann.id)).toEqual(["leaving"]);
  expect((await unregister(ann, "leaving")).body).toEqual({ ok: true });
  expect(await tokensOf(world.platform, ann.id)).toEqual([]);
});

test("[PU6] subscribing and unsubscribing apply to all devices of the user", async () => {
  const ann = await user();
  const none = await subscribe(ann, "news");
  expect([none.status, (none.body as unknown as ErrorAnswer).message]).toEqual([
    404,
    "The user has no registered devices",
  ]);
  expect((await ann.post("/api/push/topic/unsubscribe", { topic: "news" })).status).toBe(404);
  await register(ann, "news-1");
  await register(ann, "news-2");
  for (const _ of ["once", "again"]) {
    expect((await subscribe(ann, "news")).body).toEqual({ ok: true, subscribed: 2, failed: 0 });
  }
  await register(ann, "news-3");
  await sendToTopic("news", "first");
  await until(() => world.fcm.taken("news-2").length === 1, "both devices heard it");
  for (const _ of ["once", "again"]) {
    const left = await ann.post("/api/push/topic/unsubscribe", { topic: "news" });
    expect(left.body).toEqual({ ok: true, unsubscribed: 3, failed: 0 });
  }
  await sendToTopic("news", "second");
  await sendToTopic("all", "third");
  await until(() => world.fcm.taken("news-3").length === 1, "the message after it came");
  expect([titles("news-1"), titles("news-3")]).toEqual([["first", "third"], ["third"]]);
});

test("[PU6] a device has at most two hundred topics, including all", async () => {
  const ann = await user();
  await register(ann, "curious");
  const answers = await Promise.all(Array.from({ length: 199 }, (_, index) => subscribe(ann, `t${index}`)));
  expect(answers.every(({ body }) => body["subscribed"] === 1)).toBe(true);
  await register(ann, "fresh");
  expect((await subscribe(ann, "one-more")).body).toEqual({ ok: true, subscribed: 1, failed: 1 });
  expect((await subscribe(ann, "t7")).body).toEqual({ ok: true, subscribed: 2, failed: 0 });
});

test("[PU7] client endpoints name every invalid member", async () => {
  const ann = await user();
  const wrong: [path: string, body: Parameters<HttpClient["post"]>[1], fields: Record<string, string>][] = [
    ["register", {}, { deviceId: "required", token: "required", platform: "required" }],
    ["register", { deviceId: "a", token: "", platform: "symbian" }, { token: "required", platform: "invalid_value" }],
    ["register", { deviceId: 1, token: "t", platform: "web" }, { deviceId: "invalid_type" }],
    [
      "register",
      { deviceId: "a".repeat(257), token: "t".repeat(4097), platform: "web" },
      { deviceId: "too_long", token: "too_long" },
    ],
    ["register", { deviceId: "a\n", token: "t", platform: "web" }, { deviceId: "invalid_value" }],
    ["register", { deviceId: "a", token: "t", platform: "web", userId: "me" }, { userId: "unknown_field" }],
    ["unregister", {}, { token: "required" }],
    ["topic/subscribe", {}, { topic: "required" }],
    ["topic/unsubscribe", { topic: null }, { topic: "required" }],
    ["topic/subscribe", { topic: "a b" }, { topic: "pattern_mismatch" }],
    ["topic/subscribe", { topic: "a".repeat(129) }, { topic: "too_long" }],
  ];
  for (const [path, body, fields] of wrong) {
    const answer = await ann.post<ErrorAnswer>(`/api/push/${path}`, body);
    const found = Object.entries(answer.body.data ?? {}).map(([name, { code }]) => [name, code]);
    expect([path, answer.status, Object.fromEntries(found)]).toEqual([path, 400, fields]);
  }
  expect((await subscribe(ann, "A-z0.9_~%")).status).toBe(404);
});

test("[PU7] client endpoints require a user's token", async () => {
  const { platform } = world;
  const forged = platform.as(await signToken({ sub: "nobody", sid: "none" }));
  const expired = platform.as(await signToken({ sub: "nobody", sid: "none" }, { expiresInSeconds: -10 }));
  for (const path of ["register", "unregister", "topic/subscribe", "topic/unsubscribe"]) {
    for (const who of [platform, forged, expired, platform.service]) {
      expect([path, (await who.post(`/api/push/${path}`, {})).status]).toEqual([path, 401]);
    }
  }
});

test("[PU28] a disabled user keeps the devices but cannot change them; deleting the user deletes them", async () => {
  const ann = await user();
  await register(ann, "anns");
  const admin = `/api/auth/admin/users/${ann.id}`;
  await world.platform.service.patch(admin, { disabled: true });
  expect((await ann.post("/api/push/unregister", { token: "anns" })).status).toBe(401);
  const sent = await world.platform.service.post("/api/push/send", { userId: ann.id, ...TITLED });
  expect(sent.body).toEqual({ ok: true, sent: 1, failed: 0 });
  await world.platform.service.delete(admin);
  expect(await tokensOf(world.platform, ann.id)).toEqual([]);
  expect((await world.platform.service.post("/api/push/send", { userId: ann.id, ...TITLED })).status).toBe(404);
});

test("[AU200] a user who deletes the account loses the devices", async () => {
  const ann = await user();
  await register(ann, "anns-own");
  expect((await ann.delete("/api/auth/me")).status).toBe(200);
  expect(await tokensOf(world.platform, ann.id)).toEqual([]);
});
