import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Answer, type SignedIn, signIn } from "../../support/index.ts";
import { type PushWorld, pushWorld, register, TITLED } from "./push-support.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const SENDER = "sender-key-0123456789abcdefghijklmnopqrstuv";

let world: PushWorld;
let ann: SignedIn;
let bob: SignedIn;
beforeAll(async () => {
  world = await pushWorld({
    serviceKeys: {
      reader: { key: READER, scopes: ["push:*:*:read"] },
      sender: { key: SENDER, scopes: ["push:*:*:send"] },
    },
  });
  ann = await signIn(world.platform);
  bob = await signIn(world.platform);
  await register(ann, "a-phone");
  await register(ann, "a-browser", { platform: "web" });
  await register(bob, "b-phone", { platform: "ios" });
  await bob.post("/api/push/topic/subscribe", { topic: "news" });
});
afterAll(() => world.stop());

type Page = Record<string, unknown> & { cursor: string | null };
async function all(path: string, list: string, query: Record<string, string | number> = {}) {
  const found: Record<string, unknown>[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const answer: Answer<Page> = await world.platform.service.get<Page>(path, {
      query: { ...query, ...(cursor === "" ? {} : { cursor }) },
    });
    expect(answer.status).toBe(200);
    found.push(...(answer.body[list] as Record<string, unknown>[]));
    cursor = answer.body.cursor;
  }
  return found;
}
const devices = async (query: Record<string, string | number> = {}) =>
  (await all("/api/admin/push/devices", "devices", query)).map(({ id }) => id);

test("[PU320] devices are listed newest first, with their topics, and narrowed", async () => {
  const [newest] = await all("/api/admin/push/devices", "devices");
  expect(newest).toEqual({
    userId: bob.id,
    id: "b-phone",
    token: "b-phone",
    platform: "ios",
    metadata: {},
    topics: ["all", "news"],
    createdAt: expect.any(String),
    registeredAt: expect.any(String),
  });
  expect(await devices()).toEqual(["b-phone", "a-browser", "a-phone"]);
  expect(await devices({ limit: 1 })).toEqual(["b-phone", "a-browser", "a-phone"]);
  expect(await devices({ userId: ann.id })).toEqual(["a-browser", "a-phone"]);
  expect(await devices({ userId: ann.id, platform: "web" })).toEqual(["a-browser"]);
  expect(await devices({ platform: "android" })).toEqual(["a-phone"]);
  expect(await devices({ topic: "news" })).toEqual(["b-phone"]);
  expect(await devices({ topic: "news", userId: ann.id })).toEqual([]);
  expect(await devices({ topic: "all", limit: 2 })).toEqual(["b-phone", "a-browser", "a-phone"]);
  expect(await devices({ token: "a-phone" })).toEqual(["a-phone"]);
  expect(await devices({ token: "a-phone", userId: bob.id })).toEqual([]);
  for (const query of [{ platform: "windows" }, { limit: 0 }, { cursor: "x" }]) {
    expect((await world.platform.service.get("/api/admin/push/devices", { query })).status).toBe(400);
  }
});

test("[PU321] topics are listed with the number of their devices", async () => {
  const topics = (query = {}) => all("/api/admin/push/topics", "topics", query);
  expect(await topics()).toEqual([
    { topic: "all", devices: 3 },
    { topic: "news", devices: 1 },
  ]);
  expect(await topics({ limit: 1 })).toHaveLength(2);
  expect(await topics({ prefix: "ne" })).toEqual([{ topic: "news", devices: 1 }]);
  expect(await topics({ prefix: "x" })).toEqual([]);
});

test("[PU322] the log is narrowed by status and read page by page", async () => {
  for (let n = 0; n < 3; n++) await world.platform.service.post("/api/push/send", { userId: ann.id, ...TITLED });
  await world.platform.service.post("/api/push/send", { userId: bob.id, ...TITLED });
  const logs = (query = {}) => all("/api/push/logs", "logs", query);
  const whole = await logs();
  expect(whole).toHaveLength(7);
  expect(await logs({ limit: 2 })).toEqual(whole);
  expect(await logs({ limit: 2, userId: ann.id })).toHaveLength(6);
  expect(await logs({ status: "sent" })).toEqual(whole.filter(({ status }) => status === "sent"));
  expect(await logs({ status: "removed" })).toEqual([]);
  expect((await world.platform.service.get("/api/push/logs?status=lost")).status).toBe(400);
});

test("[PU320] [PU321] lists are for service keys with the scope to read", async () => {
  for (const path of ["/api/admin/push/devices", "/api/admin/push/topics"]) {
    const status = async (key: string) =>
      (await world.platform.get(path, { headers: { "x-platform-service-key": key } })).status;
    expect([await status(READER), await status(SENDER)]).toEqual([200, 403]);
    expect((await ann.get(path)).status).toBe(401);
    expect((await world.platform.get(path)).status).toBe(401);
  }
});
