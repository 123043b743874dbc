import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { type ErrorAnswer, type TestPlatform, testPlatform } from "../../support/index.ts";

const READER = "kv-reader-key-0123456789abcdefghijklmnop";
const STORAGE = "kv-storage-key-0123456789abcdefghijklmno";

const CONFIG = {
  kv: { cache: {}, other: {}, lists: {} },
  serviceKeys: {
    reader: { key: READER, scopes: ["kv:namespace:cache:read"] },
    storage: { key: STORAGE, scopes: ["storage:bucket:*:*"] },
  },
};

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const kv = <T = { value: JsonValue }>(body: JsonValue, namespace = "cache") =>
  platform.service.post<T>(`/api/kv/${namespace}`, body);
const set = (key: string, value: JsonValue, ttl?: number, namespace?: string) =>
  kv({ action: "set", key, value, ...(ttl === undefined ? {} : { ttl }) }, namespace);
const get = async (key: string, namespace?: string) => (await kv({ action: "get", key }, namespace)).body.value;
const list = async (query: { [member: string]: JsonValue }, namespace = "lists") =>
  (await kv<{ keys: string[]; cursor: string | null }>({ action: "list", ...query }, namespace)).body;

test("[KV1] any JSON value comes back as it was stored", async () => {
  const values = [null, true, 0, -1.5, 1e21, "", "text \u0000 é \u{1f600}", [], {}, { a: [1, { b: null }] }, [[[]]]];
  for (const value of values) {
    const answer = await set("any", value);
    expect([answer.status, answer.body]).toEqual([200, { ok: true }] as never);
    expect(await get("any")).toEqual(value);
  }
});

test("[KV2] missing keys are null, and deleting one is fine", async () => {
  expect(await kv({ action: "get", key: "never" })).toMatchObject({ status: 200, body: { value: null } });
  await set("gone", 1);
  for (let turn = 0; turn < 2; turn++) {
    expect(await kv({ action: "delete", key: "gone" })).toMatchObject({ status: 200, body: { ok: true } });
    expect(await get("gone")).toBeNull();
  }
});

test("[KV3] a key is missing once its time to live has passed; a set without one removes the time to live", async () => {
  await set("kept", 1, 1);
  await set("kept", 2);
  await set("long", 3, 3_600);
  await set("short", 1, 2);
  expect(await get("short")).toBe(1);
  const giveUpAt = Date.now() + 10_000;
  while ((await get("short")) !== null && Date.now() < giveUpAt) await Bun.sleep(20);
  expect(await get("short")).toBeNull();
  expect(await get("kept")).toBe(2);
  expect(await get("long")).toBe(3);
  const { keys } = await list({ limit: 1000 }, "cache");
  expect(keys).not.toContain("short");
  expect(keys).toContain("long");
  for (const ttl of [0, -1, 1.5, "60", 4e9]) {
    const answer = await kv<ErrorAnswer>({ action: "set", key: "short", value: 1, ttl });
    expect([ttl, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([ttl, 400, ["ttl"]]);
  }
});

test("[KV4] [KV5] lists are by prefix, in byte order, and their pages have each key once", async () => {
  const keys = ["a", "a/", "a/1", "a/2", "a/\u{10ffff}", "a/\u{10ffff}x", "a0", "B", "b", "é", "\ue000", "\u{1f600}"];
  for (const key of [...keys].reverse()) await set(key, 1, undefined, "lists");
  const byBytes = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  expect(await list({})).toEqual({ keys: byBytes, cursor: null });
  for (const prefix of ["", "a", "a/", "a/\u{10ffff}", "é", "x"]) {
    const wanted = byBytes.filter((key) => key.startsWith(prefix));
    for (const limit of [1, 2, 3, wanted.length || 1]) {
      const got: string[] = [];
      let cursor: string | null = null;
      do {
        const page: { keys: string[]; cursor: string | null } = await list({ prefix, limit, cursor });
        expect(page.keys.length).toBeLessThanOrEqual(limit);
        got.push(...page.keys);
        cursor = page.cursor;
      } while (cursor !== null && got.length <= keys.length);
      expect(got).toEqual(wanted);
    }
  }
});

test("[KV5] limits have a default and a maximum; a cursor survives its key", async () => {
  const keys = Array.from({ length: 1_010 }, (_, index) => `n${String(index).padStart(4, "0")}`);
  for (let from = 0; from < keys.length; from += 101) {
    await Promise.all(keys.slice(from, from + 101).map((key) => set(key, key, undefined, "other")));
  }
  expect((await list({}, "other")).keys).toEqual(keys.slice(0, 100));
  expect((await list({ limit: 5_000 }, "other")).keys).toEqual(keys.slice(0, 1_000));
  const { cursor } = await list({ limit: 2 }, "other");
  await kv({ action: "delete", key: "n0001" }, "other");
  expect((await list({ limit: 1, cursor }, "other")).keys).toEqual(["n0002"]);
  for (const wrong of [{ limit: 0 }, { limit: 1.5 }, { limit: "5" }, { cursor: "%" }, { cursor: 5 }, { prefix: 5 }]) {
    const answer = await kv<ErrorAnswer>({ action: "list", ...wrong });
    expect([wrong, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([wrong, 400, Object.keys(wrong)]);
  }
});

test("[KV5] the longest cursor is accepted, and a longer one is refused before it is decoded", async () => {
  const longest = "\u{1f600}".repeat(512);
  const cursor = Buffer.from(longest).toString("base64url");
  expect((await kv({ action: "list", cursor })).status).toBe(200);
  const answer = await kv<ErrorAnswer>({ action: "list", cursor: `${cursor}AA` });
  expect([answer.status, answer.body.data?.["cursor"]?.code]).toEqual([400, "too_long"]);
});

test("[KV6] keys, values and actions have their bounds", async () => {
  const longest = "\u{1f600}".repeat(512);
  await set(longest, "x".repeat(1024 * 1024 - 2));
  expect(await get(longest)).toBe("x".repeat(1024 * 1024 - 2));
  expect((await set("big", "x".repeat(1024 * 1024 - 1))).status).toBe(413);
  expect((await set("big", "é".repeat(512 * 1024))).status).toBe(413);
  expect(await get("big")).toBeNull();
  const refused: [string, JsonValue][] = [
    ["action", {}],
    ["action", { action: "drop" }],
    ["action", { action: ["get"] }],
    ["key", { action: "get" }],
    ["key", { action: "get", key: "" }],
    ["key", { action: "get", key: 5 }],
    ["key", { action: "delete", key: "x".repeat(513) }],
    ["key", { action: "set", value: 1 }],
    ["value", { action: "set", key: "a" }],
  ];
  for (const [field, body] of refused) {
    const answer = await kv<ErrorAnswer>(body);
    expect([body, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([body, 400, [field]] as never);
  }
  expect((await kv([])).status).toBe(400);
});

test("[KV7] a service key with the scope is required", async () => {
  const body = { action: "get", key: "a" };
  const write = { action: "set", key: "a", value: 1 };
  expect((await platform.post("/api/kv/cache", body)).status).toBe(401);
  expect((await platform.post("/api/kv/nowhere", body)).status).toBe(401);
  expect((await platform.withKey("wrong").post("/api/kv/cache", body)).status).toBe(401);
  expect((await platform.service.post("/api/kv/nowhere", body)).status).toBe(404);
  const reader = platform.withKey(READER);
  expect((await reader.post("/api/kv/cache", body)).status).toBe(200);
  expect((await reader.post("/api/kv/cache", { action: "list" })).status).toBe(200);
  expect((await reader.post("/api/kv/cache", write)).status).toBe(403);
  expect((await reader.post("/api/kv/cache", { action: "delete", key: "a" })).status).toBe(403);
  expect((await reader.post("/api/kv/other", body)).status).toBe(403);
  // A key without any right here learns nothing of the request's form.
  expect((await platform.withKey(STORAGE).post("/api/kv/cache", {})).status).toBe(403);
  expect((await platform.service.get("/api/kv/cache")).status).toBe(405);
});

test("[KV8] namespaces do not see each other", async () => {
  await set("mine", 1, undefined, "cache");
  expect(await get("mine", "lists")).toBeNull();
});

test("[KV9] answered writes survive a killed process", async () => {
  const keys = Array.from({ length: 50 }, (_, index) => `durable${index}`);
  await Promise.all(keys.map((key) => set(key, key)));
  await kv({ action: "delete", key: "durable0" });
  await platform.kill("SIGKILL");
  await platform.restart();
  const values = await Promise.all(keys.map((key) => get(key)));
  expect(values).toEqual([null, ...keys.slice(1)]);
});

test("[KV100] an unknown member of an action is 400 and named, and nothing happens", async () => {
  await set("strict", { any: { member: 1 } });
  const bodies: [string, JsonValue][] = [
    ["value", { action: "get", key: "strict", value: 1 }],
    ["ttl", { action: "delete", key: "strict", ttl: 5 }],
    ["expires", { action: "set", key: "strict", value: 2, expires: 60 }],
    ["key", { action: "list", key: "strict" }],
    ["__proto__", JSON.parse('{"action":"delete","key":"strict","__proto__":1}')],
  ];
  for (const [member, body] of bodies) {
    const answer = await kv<ErrorAnswer>(body);
    expect([member, answer.status, answer.body.data?.[member]?.code]).toEqual([member, 400, "unknown_field"]);
  }
  expect(await get("strict")).toEqual({ any: { member: 1 } });
});
