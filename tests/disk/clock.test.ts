import { afterEach, beforeEach, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { createPlatform, type Platform } from "../../src/server/platform/index.ts";
import { TokenBucket } from "../../src/server/sockets/clients.ts";
import { JWT_SECRET, SERVICE_KEY, type TestClock, temporaryDirectory, testClock } from "../support/index.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SECOND_MS = 1_000;

let platform: Platform;
let clock: TestClock;
beforeEach(async () => {
  clock = testClock();
  platform = await createPlatform(
    {
      databases: { shared: { tables: { notes: {} } } },
      storage: { buckets: { files: {} } },
      kv: { cache: {} },
      rateLimits: { signup: { requests: 1, window: 60 } },
    },
    { dataDirectory: temporaryDirectory(), secrets: { serviceKey: SERVICE_KEY, jwtSecret: JWT_SECRET }, clock },
  );
});
afterEach(() => platform.stop());

async function call(path: string, body?: JsonValue, headers: Record<string, string> = {}) {
  const answer = await platform.fetch(
    new Request(`http://localhost${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json", ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    }),
  );
  return { status: answer.status, body: (await answer.json()) as JsonObject };
}
const service = (path: string, body?: JsonValue) => call(path, body, { "x-platform-service-key": SERVICE_KEY });
const signUp = (email: string) => call("/api/auth/signup", { email, password: "correct horse battery" });

test("[HT15] a token survives a clock set back a little, a session one set back a lot", async () => {
  const { body } = await signUp("a@example.com");
  const me = (token: unknown) => call("/api/auth/me", undefined, { authorization: `Bearer ${token}` });
  clock.advance(-4 * MINUTE_MS);
  expect((await me(body["accessToken"])).status).toBe(200);
  clock.advance(-HOUR_MS);
  // Issued an hour from now, it is nobody's yet; the session gives a new one.
  expect((await me(body["accessToken"])).status).toBe(401);
  const refreshed = await call("/api/auth/refresh", { refreshToken: body["refreshToken"] ?? "" });
  expect(refreshed.status).toBe(200);
  expect((await me(refreshed.body["accessToken"])).status).toBe(200);
});

test("[HT15] a rate limit's window is never longer than declared, also when the clock is set back", async () => {
  expect((await signUp("a@example.com")).status).toBe(201);
  expect((await signUp("b@example.com")).status).toBe(429);
  clock.advance(-HOUR_MS);
  expect((await signUp("b@example.com")).status).toBe(201);
  expect((await signUp("c@example.com")).status).toBe(429);
  clock.advance(MINUTE_MS);
  expect((await signUp("c@example.com")).status).toBe(201);
});

test("[HT15] messages are not delayed when the clock is set back", () => {
  const rate = new TokenBucket({ perSecond: 2, atOnce: 2 }, clock.now());
  const takeThree = () => [1, 2, 3].map(() => rate.take(1, clock.now()));
  expect(takeThree()).toEqual([true, true, false]);
  clock.advance(-HOUR_MS);
  expect(takeThree()).toEqual([false, false, false]);
  clock.advance(SECOND_MS);
  expect(takeThree()).toEqual([true, true, false]);
});

test("[HT15] records keep their order, and cursors continue, when the clock is set back", async () => {
  const notes = "/api/db/shared/tables/notes";
  const insert = async (n: number) => (await service(notes, { n })).body;
  const first = [await insert(1), await insert(2)];
  const page = await service(`${notes}?limit=1`);
  clock.advance(-HOUR_MS);
  const later = await insert(3);
  expect(String(later["createdAt"]) < String(first[0]?.["createdAt"])).toBe(true);
  const next = await service(`${notes}?after=${String(page.body["cursor"])}`);
  expect(next.body).toMatchObject({ items: [{ n: 2 }, later] });
});

test("[HT15] expirations are late by the jump when the clock is set back", async () => {
  const get = async () => (await service("/api/kv/cache", { action: "get", key: "k" })).body["value"];
  await service("/api/kv/cache", { action: "set", key: "k", value: 1, ttl: 60 });
  clock.advance(-HOUR_MS);
  expect(await get()).toBe(1);
  clock.advance(HOUR_MS + MINUTE_MS - 1);
  expect(await get()).toBe(1);
  clock.advance(1);
  expect(await get()).toBe(null);
});
