import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ErrorAnswer, type HttpClient, signIn } from "../../support/index.ts";
import { logsOf, type PushWorld, pushWorld, register, TITLED, tokensOf, until } from "./push-support.ts";

let world: PushWorld;
beforeAll(async () => {
  world = await pushWorld();
});
afterAll(() => world.stop());

type Body = Parameters<HttpClient["post"]>[1];

const user = () => signIn(world.platform);
const post = (path: string, body: Body) => world.platform.service.post(`/api/push/${path}`, body);
const payload = TITLED;

test("[PU10] send reaches all devices of the user, and answers when each result is known", async () => {
  const [ann, bob] = [await user(), await user()];
  await register(ann, "slow-ann", { platform: "android" });
  await register(ann, "lost-ann", { platform: "ios" });
  await register(bob, "bob");
  const answer = await post("send", { userId: ann.id, ...TITLED });
  expect([answer.status, answer.body]).toEqual([200, { ok: true, sent: 1, failed: 1 }]);
  expect(world.fcm.taken("slow-ann")).toMatchObject([{ notification: TITLED }]);
  expect(world.fcm.taken("bob")).toEqual([]);
  const logs = await logsOf(world.platform, { userId: ann.id });
  expect(logs.toSorted((a, b) => a.platform.localeCompare(b.platform))).toEqual([
    {
      ...TITLED,
      id: expect.any(String),
      userId: ann.id,
      status: "sent",
      platform: "android",
      error: null,
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.+Z$/),
    },
    {
      ...TITLED,
      id: expect.any(String),
      userId: ann.id,
      status: "failed",
      platform: "ios",
      error: expect.stringContaining("404"),
      timestamp: expect.any(String),
    },
  ]);
  // A 404 without the code UNREGISTERED does not delete a device.
  expect(await tokensOf(world.platform, ann.id)).toEqual(["slow-ann", "lost-ann"]);
});

test("[PU16] an unregistered token deletes its device, is logged as removed and counts as failed", async () => {
  const ann = await user();
  await register(ann, "gone-ann");
  await register(ann, "here-ann");
  const send = () => post("send", { userId: ann.id, ...TITLED });
  expect((await send()).body).toEqual({ ok: true, sent: 1, failed: 1 });
  expect(await tokensOf(world.platform, ann.id)).toEqual(["here-ann"]);
  const logs = await logsOf(world.platform, { userId: ann.id });
  expect(logs.map(({ status }) => status).sort()).toEqual(["removed", "sent"]);
  expect(logs.find(({ status }) => status === "removed")?.error).toContain("UNREGISTERED");
  expect((await send()).body).toEqual({ ok: true, sent: 1, failed: 0 });
});

test("[PU17] a busy provider is tried twice more; the log has one row for all attempts", async () => {
  const ann = await user();
  for (const token of ["twice-ann", "broken-ann", "later-ann"]) await register(ann, token);
  expect((await post("send", { userId: ann.id, ...TITLED })).body).toEqual({ ok: true, sent: 2, failed: 1 });
  const tries = (token: string) => world.fcm.calls.filter((call) => call.token === token);
  expect([tries("twice-ann").length, tries("broken-ann").length, tries("later-ann").length]).toEqual([3, 3, 2]);
  const [first, second] = tries("later-ann").map(({ at }) => at);
  expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(1_000);
  const logs = await logsOf(world.platform, { userId: ann.id });
  expect(logs.map(({ status }) => status).sort()).toEqual(["failed", "sent", "sent"]);
});

test("[PU11] send-many reaches each user once and skips users without devices", async () => {
  const [ann, bob, cleo] = [await user(), await user(), await user()];
  await register(ann, "many-ann");
  await register(bob, "many-bob");
  const userIds = [ann.id, "nobody", bob.id, cleo.id, ann.id];
  const answer = await post("send-many", { userIds, ...TITLED });
  expect([answer.status, answer.body]).toEqual([200, { ok: true, sent: 2, failed: 0 }]);
  expect([world.fcm.taken("many-ann").length, world.fcm.taken("many-bob").length]).toEqual([1, 1]);
  expect((await post("send-many", { userIds: ["nobody"], ...TITLED })).body).toEqual({ ok: true, sent: 0, failed: 0 });
});

test("[PU12] send-to-token reaches an unregistered token", async () => {
  const answer = await post("send-to-token", { token: "a-stranger", payload, platform: "ios" });
  expect([answer.status, answer.body]).toEqual([200, { sent: 1, failed: 0 }]);
  expect(world.fcm.taken("a-stranger")).toMatchObject([{ notification: TITLED, apns: {} }]);
  await post("send-to-token", { token: "a-browser", payload });
  expect(world.fcm.taken("a-browser")).toMatchObject([{ webpush: {} }]);
  const [log] = await logsOf(world.platform);
  expect(log).toMatchObject({ userId: null, status: "sent", platform: "web", ...TITLED });
  // A registered token that is no longer valid deletes its device.
  const ann = await user();
  await register(ann, "gone-token");
  expect((await post("send-to-token", { token: "gone-token", payload })).body).toEqual({ sent: 0, failed: 1 });
  expect(await tokensOf(world.platform, ann.id)).toEqual([]);
});

test("[PU13] a message to a topic reaches all devices of several pages, each once", async () => {
  const users = await Promise.all(Array.from({ length: 6 }, user));
  const tokens: string[] = [];
  for (const [index, one] of users.entries()) {
    const own = Array.from({ length: 45 }, (_, device) => `slow-page-${index}-${device}`);
    await Promise.all(own.map((token) => register(one, token)));
    await one.post("/api/push/topic/subscribe", { topic: "pages" });
    tokens.push(...own);
  }
  const answer = await post("send-to-topic", { topic: "pages", payload });
  expect([answer.status, answer.body]).toEqual([200, { success: true }]);
  await until(() => tokens.every((token) => world.fcm.taken(token).length === 1), "every device has it");
  await until(async () => (await logsOf(world.platform, { limit: tokens.length })).length === tokens.length, "logged");
  expect(world.fcm.mostAtOnce).toBeLessThanOrEqual(50);
  // A topic without devices is accepted too.
  expect((await post("send-to-topic", { topic: "nobody", payload })).body).toEqual({ success: true });
});

test("[PU18] the server has at most fifty concurrent calls, across all requests", async () => {
  const tokens = Array.from({ length: 120 }, (_, index) => `slow-token-${index}`);
  const answers = await Promise.all(tokens.map((token) => post("send-to-token", { token, payload })));
  expect(answers.every(({ body }) => body["sent"] === 1)).toBe(true);
  expect(world.fcm.mostAtOnce).toBeLessThanOrEqual(50);
  expect(world.fcm.mostAtOnce).toBeGreaterThan(1);
});

test("[PU15] logs are newest first, fifty by default, and can be of one user", async () => {
  const ann = await user();
  await register(ann, "logged");
  for (let index = 0; index < 3; index++) await post("send", { userId: ann.id, ...TITLED, title: `No. ${index}` });
  const titles = (await logsOf(world.platform, { userId: ann.id })).map(({ title }) => title);
  expect(titles).toEqual(["No. 2", "No. 1", "No. 0"]);
  expect((await logsOf(world.platform, { userId: ann.id, limit: 2 })).length).toBe(2);
  expect((await logsOf(world.platform)).length).toBe(50);
  expect((await logsOf(world.platform, { limit: 5_000 })).length).toBeGreaterThan(100);
  expect(await logsOf(world.platform, { userId: "nobody" })).toEqual([]);
  for (const limit of ["0", "-1", "1.5", "many"]) {
    const answer = await world.platform.service.get("/api/push/logs", { query: { limit } });
    expect([limit, answer.status]).toEqual([limit, 400]);
  }
  await post("send", { userId: ann.id, title: "t".repeat(1_500), body: "b" });
  expect((await logsOf(world.platform, { userId: ann.id, limit: 1 }))[0]?.title.length).toBe(1_000);
});

test("[PU20, PU22, PU23] the members of a request arrive in the form of the platform", async () => {
  const ann = await user();
  await register(ann, "formed", { platform: "ios" });
  const answer = await post("send", {
    ...TITLED,
    userId: ann.id,
    sound: "ding",
    badge: 0,
    collapseId: "tonight",
    ttl: 0,
    image: "https://a.example/i.png",
    data: { film: { id: 7 }, seats: 3, note: "é" },
    fcm: { apns: { payload: { aps: { sound: "gong" } } }, fcm_options: { analytics_label: "club" } },
  });
  expect(answer.status).toBe(200);
  expect(world.fcm.taken("formed")).toEqual([
    {
      token: "formed",
      notification: { ...TITLED, image: "https://a.example/i.png" },
      data: { film: '{"id":7}', seats: "3", note: "é" },
      apns: {
        headers: {
          "apns-push-type": "alert",
          "apns-priority": "10",
          "apns-collapse-id": "tonight",
          "apns-expiration": "0",
        },
        payload: { aps: { "mutable-content": 1, sound: "gong", badge: 0 } },
        fcm_options: { image: "https://a.example/i.png" },
      },
      fcm_options: { analytics_label: "club" },
    },
  ]);
});

test("[PU21] a silent payload needs neither title nor body; send always requires both", async () => {
  const silent = { silent: true, data: { refresh: "yes" } };
  expect((await post("send-to-token", { token: "quiet", payload: silent, platform: "android" })).body).toEqual({
    sent: 1,
    failed: 0,
  });
  expect(world.fcm.taken("quiet")).toEqual([
    { token: "quiet", data: { refresh: "yes" }, android: { priority: "normal" } },
  ]);
  expect((await logsOf(world.platform, { limit: 1 }))[0]).toMatchObject({ title: "", body: "", status: "sent" });
  const ann = await user();
  await register(ann, "quiet-ann");
  const answer = await world.platform.service.post<ErrorAnswer>("/api/push/send", { userId: ann.id, ...silent });
  expect([answer.status, Object.keys(answer.body.data ?? {}).sort()]).toEqual([400, ["body", "title"]]);
});

test("[PU14] administrators replace metadata and list tokens in order of registration", async () => {
  const ann = await user();
  await register(ann, "first-device", { platform: "web" });
  await register(ann, "second-device", { platform: "ios" });
  const { service } = world.platform;
  const set = (body: Body) => service.patch<ErrorAnswer>("/api/push/tokens", body);
  const device = { userId: ann.id, deviceId: "first-device" };
  expect((await set({ ...device, metadata: { model: "x", nested: [1] } })).body as unknown).toEqual({ ok: true });
  expect((await set({ ...device, deviceId: "third", metadata: {} })).status).toBe(404);
  expect((await set({ ...device, userId: "nobody", metadata: {} })).status).toBe(404);
  expect((await set({ ...device, metadata: { text: "x".repeat(16 * 1024) } })).status).toBe(413);
  const missing = await set({});
  expect([missing.status, Object.keys(missing.body.data ?? {}).sort()]).toEqual([
    400,
    ["deviceId", "metadata", "userId"],
  ]);
  expect((await set({ ...device, metadata: "text" })).status).toBe(400);
  const list = await service.get<{ tokens: { id: string }[] }>("/api/push/tokens", { query: { userId: ann.id } });
  expect(list.body.tokens.map(({ id }) => id)).toEqual(["first-device", "second-device"]);
  expect((await service.get("/api/push/tokens", { query: { userId: "nobody" } })).body).toEqual({ tokens: [] });
  expect((await service.get("/api/push/tokens")).status).toBe(400);
});
