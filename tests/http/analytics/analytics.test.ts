import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import {
  type Answer,
  type ErrorAnswer,
  type HttpClient,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";

const WRITER_KEY = "analytics-writer-key-0123456789abcdefghi";
const READER_KEY = "analytics-reader-key-0123456789abcdefghi";
const DAY_MS = 24 * 3_600_000;

interface Event {
  id: string;
  timestamp: number;
  userId: string | null;
  eventName: string;
  properties: JsonObject;
}
interface Page {
  events: Event[];
  cursor: string | null;
  hasMore: boolean;
}

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: {
      rateLimits: { events: { requests: 10_000, window: 60 } },
      serviceKeys: {
        writer: { key: WRITER_KEY, scopes: ["analytics:*:*:write"] },
        reader: { key: READER_KEY, scopes: ["analytics:*:*:read"] },
      },
    },
  });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const track = <T = JsonObject>(client: HttpClient, ...events: JsonValue[]): Promise<Answer<T>> =>
  client.post<T>("/api/analytics/track", { events });
const events = async <T = Page>(query: Record<string, string | number>): Promise<T> => {
  const answer = await platform.service.get<T>("/api/analytics/events", { query });
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};

test("[AN1] [AN6] everyone may track events, which belong to the user who sends them", async () => {
  const before = Date.now();
  const properties = { plan: "pro", seats: 3.5, trial: false };
  expect(await track(platform, { name: "who", properties })).toMatchObject({
    status: 200,
    body: { ok: true, count: 1 },
  });
  expect((await track(user, { name: "who" })).body).toEqual({ ok: true, count: 1 });
  const named = [{ name: "who", userId: "customer-7" }, { name: "who" }];
  expect((await track(platform.withKey(WRITER_KEY), ...named)).body).toEqual({ ok: true, count: 2 });

  const page = await events({ event: "who" });
  expect(page.events.map(({ userId }) => userId)).toEqual([null, "customer-7", user.id, null]);
  expect(page).toMatchObject({ cursor: null, hasMore: false });
  const last = page.events.at(-1);
  expect(last).toEqual({
    id: expect.any(String),
    timestamp: expect.any(Number),
    userId: null,
    eventName: "who",
    properties,
  });
  expect(page.events.every(({ timestamp }) => timestamp >= before && timestamp <= Date.now())).toBe(true);
  expect((await events({ event: "who", userId: user.id })).events).toHaveLength(1);
});

test("[AN1] [AN14] invalid credentials are 401, missing scopes 403", async () => {
  const event = { name: "refused" };
  expect((await track(platform.as("nonsense"), event)).status).toBe(401);
  expect((await track(platform.withKey("nonsense"), event)).status).toBe(401);
  expect((await track(platform.withKey(READER_KEY), event)).status).toBe(403);
  expect((await events({ event: "refused" })).events).toEqual([]);
  for (const path of ["/api/analytics/query", "/api/analytics/events"]) {
    expect((await platform.get(path)).status).toBe(401);
    expect((await user.get(path)).status).toBe(401);
    expect((await platform.withKey("nonsense").get(path)).status).toBe(401);
    expect((await platform.withKey(WRITER_KEY).get(path)).status).toBe(403);
    expect((await platform.withKey(READER_KEY).get(path)).status).toBe(200);
  }
});

const keys = (count: number): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));
/** `{"text":"…"}` takes eleven bytes beside the text. */
const ofBytes = (bytes: number): JsonObject => ({ text: "x".repeat(bytes - 11) });

test("[AN2] a request at the limits is accepted", async () => {
  const full = Array.from({ length: 100 }, (_, at) => ({ name: "limits", properties: { at } }));
  expect((await track(platform, ...full)).body).toEqual({ ok: true, count: 100 });
  const edges = [{ name: "n".repeat(256) }, { name: "limits", properties: keys(50) }];
  expect((await track(platform, ...edges, { name: "limits", properties: ofBytes(4096) })).status).toBe(200);
  expect(await events<JsonObject>({ event: "limits", metric: "count" })).toMatchObject({ totalEvents: 102 });
});

const REFUSED: readonly [events: JsonValue, field: string, code: string, message: RegExp][] = [
  [[], "events", "too_short", /at least 1 item/],
  [Array.from({ length: 101 }, () => ({ name: "refused" })), "events", "too_long", /at most 100.*101/],
  ["x", "events", "invalid_type", /array/],
  [[{ name: "refused" }, 7], "events.1", "invalid_type", /events\.1/],
  [[{}], "events.0.name", "required", /events\.0.*name/],
  [[{ name: "" }], "events.0.name", "required", /events\.0.*name/],
  [[{ name: " " }], "events.0.name", "required", /blank/],
  [[{ name: 5 }], "events.0.name", "invalid_type", /name/],
  [[{ name: "n".repeat(257) }], "events.0.name", "too_long", /256/],
  [
    [{ name: "refused", properties: keys(51) }],
    "events.0.properties",
    "too_long",
    /events\.0\.properties.*50 members, got 51/,
  ],
  [[{ name: "refused", properties: ofBytes(4097) }], "events.0.properties", "too_large", /4096 bytes.*4097/],
  [[{ name: "refused", properties: { text: "ü".repeat(2043) } }], "events.0.properties", "too_large", /4097/],
  [
    [{ name: "refused", properties: { tags: [] } }],
    "events.0.properties.tags",
    "invalid_type",
    /properties\.tags must be a string, a number or a boolean/,
  ],
  [
    [{ name: "refused", properties: { nested: {} } }],
    "events.0.properties.nested",
    "invalid_type",
    /properties\.nested must be/,
  ],
  [
    [{ name: "refused", properties: { gone: null } }],
    "events.0.properties.gone",
    "invalid_type",
    /properties\.gone must be/,
  ],
  [[{ name: "refused", properties: [] }], "events.0.properties", "invalid_type", /object/],
  [[{ name: "refused", userId: "somebody" }], "events.0.userId", "invalid_value", /service key/],
  [[{ name: "refused", colour: "red" }], "events.0.colour", "unknown_field", /colour/],
  [[{ name: "refused", timestamp: "now" }], "events.0.timestamp", "invalid_type", /whole number/],
  [[{ name: "refused", timestamp: 1.5 }], "events.0.timestamp", "invalid_type", /whole number/],
];

test("[AN2] [AN3] a request that breaks a limit names each fault, and none of its events is stored", async () => {
  for (const [given, field, code, message] of REFUSED) {
    const answer = await platform.post<ErrorAnswer>("/api/analytics/track", { events: given });
    expect([field, answer.status, answer.body.data?.[field]?.code]).toEqual([field, 400, code]);
    expect(answer.body.message).toMatch(message);
  }
  const mixed = [{ name: "refused" }, { name: "refused", properties: { a: [], b: {} } }, { properties: {} }];
  const answer = await track<ErrorAnswer>(platform, ...mixed);
  const atFault = ["events.1.properties.a", "events.1.properties.b", "events.2.name"];
  expect(Object.keys(answer.body.data ?? {})).toEqual(atFault);
  expect((await platform.post("/api/analytics/track", { event: { name: "refused" } })).status).toBe(400);
  expect((await platform.post("/api/analytics/track", {})).status).toBe(400);
  expect((await events({ event: "refused" })).events).toEqual([]);
});

test("[AN3] a timestamp is at most 90 days in the past and one day in the future", async () => {
  const now = Date.now();
  const at = (timestamp: number) => track<ErrorAnswer>(platform, { name: "dated", timestamp });
  expect((await at(now - 91 * DAY_MS)).body.data).toHaveProperty(["events.0.timestamp"]);
  expect((await at(now + 2 * DAY_MS)).status).toBe(400);
  const kept = [now - 89 * DAY_MS, now - 1000, now + 3_600_000];
  for (const timestamp of kept) expect((await at(timestamp)).status).toBe(200);
  const page = await events({ event: "dated", start: now - 90 * DAY_MS, end: now + DAY_MS });
  expect(page.events.map(({ timestamp }) => timestamp)).toEqual(kept.toReversed());
});

test("[AN6] pages of a list have no gaps or repetitions while events are being tracked", async () => {
  const start = Date.now() - 60_000;
  // Several events share a timestamp, so a cursor needs more than the time.
  const old = Array.from({ length: 7 }, (_, at) => ({
    name: "paged",
    properties: { at },
    timestamp: start + Math.floor(at / 3) * 10,
  }));
  await track(platform, ...old);
  const seen: JsonValue[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query: Record<string, string | number> = { event: "paged", limit: 2, start, end: Date.now() };
    const page: Page = await events(cursor === "" ? query : { ...query, cursor });
    expect(page.hasMore).toBe(page.cursor !== null);
    seen.push(...page.events.map(({ properties }) => properties["at"] ?? null));
    cursor = page.cursor;
    await track(platform, { name: "paged", properties: { at: "late" }, timestamp: Date.now() - 1 });
  }
  expect(seen.filter((at) => at !== "late")).toEqual([6, 5, 4, 3, 2, 1, 0]);

  const get = (query: Record<string, string>) => platform.service.get<ErrorAnswer>("/api/analytics/events", { query });
  for (const query of [{ limit: "0" }, { limit: "1001" }, { limit: "x" }, { cursor: "nonsense" }]) {
    const [name = ""] = Object.keys(query);
    const answer = await get(query as never);
    expect([name, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([name, 400, [name]]);
  }
  expect((await get({ limit: "1000" })).status).toBe(200);
});

test("[AN7] each user is counted once; events without a user add none", async () => {
  const some = (name: string, ...userIds: string[]) => userIds.map((userId) => ({ name, userId }));
  const key = platform.withKey(WRITER_KEY);
  await track(key, ...some("rank-a", "u1", "u1", "u2"), ...some("rank-b", "u1", "u3"), ...some("rank-c", "u1", "u1"));
  await track(platform, { name: "rank-b" });

  const count = (query: Record<string, string>) => events({ metric: "count", ...query });
  expect(await count({ event: "rank-a" })).toEqual({ totalEvents: 3, uniqueUsers: 2 } as never);
  expect(await count({ event: "rank-b" })).toEqual({ totalEvents: 3, uniqueUsers: 2 } as never);
  expect(await count({ event: "rank-b", userId: "u3" })).toEqual({ totalEvents: 1, uniqueUsers: 1 } as never);
  expect(await count({ event: "no such" })).toEqual({ totalEvents: 0, uniqueUsers: 0 } as never);

  const top = async (query: Record<string, string | number>) =>
    (await events<{ topEvents: { eventName: string }[] }>({ metric: "topEvents", limit: 1000, ...query })).topEvents;
  const ranked = (await top({})).filter(({ eventName }) => eventName.startsWith("rank-"));
  expect(ranked).toEqual([
    { eventName: "rank-a", count: 3, uniqueUsers: 2 },
    { eventName: "rank-b", count: 3, uniqueUsers: 2 },
    { eventName: "rank-c", count: 2, uniqueUsers: 1 },
  ] as never);
  expect(await top({ userId: "u1", limit: 1 })).toEqual([{ eventName: "rank-a", count: 2, uniqueUsers: 1 }] as never);
});

test("[AN16] a series includes its start, excludes its end, and has points without events", async () => {
  const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 5 * 3_600_000;
  const minutes = (...offsets: number[]) =>
    offsets.map((offset) => ({ name: "series", timestamp: hour + offset * 60_000 }));
  await track(platform, ...minutes(0, 1, 2, 125, 180), { name: "series", timestamp: hour + 180 * 60_000 - 1 });
  const series = async (query: Record<string, string | number>) =>
    (await events<{ timeSeries: JsonValue[] }>({ metric: "timeSeries", event: "series", ...query })).timeSeries;

  expect(await series({ start: hour, end: hour + 180 * 60_000 })).toEqual([
    { timestamp: hour, count: 3 },
    { timestamp: hour + 3_600_000, count: 0 },
    { timestamp: hour + 7_200_000, count: 2 },
  ]);
  const iso = (ms: number) => new Date(ms).toISOString();
  expect(await series({ start: iso(hour + 60_000), end: iso(hour + 180_000), groupBy: "minute" })).toEqual([
    { timestamp: hour + 60_000, count: 1 },
    { timestamp: hour + 120_000, count: 1 },
  ]);
  const days = await series({ start: hour, end: hour + 181 * 60_000, groupBy: "day" });
  expect(days.every((point) => Number((point as { timestamp: number }).timestamp) % DAY_MS === 0)).toBe(true);
  expect(days.reduce((sum: number, point) => sum + (point as { count: number }).count, 0)).toBe(6);
});

test("[AN15] [AN17] invalid parameters are 400 naming the parameter", async () => {
  const now = Date.now();
  const wrong: readonly [path: string, query: Record<string, string | number>, name: string][] = [
    ["events", { range: "2h" }, "range"],
    ["events", { range: "" }, "range"],
    ["events", { metric: "overview" }, "metric"],
    ["events", { groupBy: "week" }, "groupBy"],
    ["events", { start: "yesterday" }, "start"],
    ["events", { end: "2026-02-30" }, "end"],
    ["events", { start: now, end: now }, "start"],
    ["events", { metric: "timeSeries", start: now - 365 * DAY_MS, groupBy: "minute" }, "groupBy"],
    ["query", { range: "1y" }, "range"],
    ["query", { metric: "list" }, "metric"],
    ["query", { groupBy: "second" }, "groupBy"],
    ["query", { start: "0", end: now, groupBy: "hour" }, "groupBy"],
  ];
  for (const [path, query, name] of wrong) {
    const answer = await platform.service.get<ErrorAnswer>(`/api/analytics/${path}`, { query });
    expect([query, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([query, 400, [name]]);
  }
  for (const range of ["1h", "6h", "24h", "7d", "30d", "90d"]) {
    const answer = await platform.service.get("/api/analytics/events", { query: { range, metric: "count" } });
    expect([range, answer.status]).toEqual([range, 200]);
  }
  const query = { metric: "timeSeries", range: "90d", groupBy: "minute" };
  const long = await platform.service.get<{ timeSeries: unknown[] }>("/api/analytics/events", { query });
  expect([long.status, long.body.timeSeries.length >= 129_600]).toEqual([200, true]);
});

test("[AN4] track requests are limited by address, with a service key too", async () => {
  const limited = await testPlatform({ config: { rateLimits: { events: { requests: 3, window: 60 } } } });
  const event = { name: "limited" };
  expect((await track(limited, event)).status).toBe(200);
  expect((await track(limited.service, event)).status).toBe(200);
  expect((await track(limited.withKey("nonsense"), event)).status).toBe(401);
  for (const client of [limited, limited.service]) {
    const { status, headers } = await track(client, event);
    expect([status, Number(headers.get("retry-after")) > 0]).toEqual([429, true]);
  }
  expect((await limited.service.get("/api/analytics/events")).status).toBe(200);
  await limited.stop();
});

test("[AN5] events are written without a reader, survive a killed process, and a stop loses none", async () => {
  await track(platform, { name: "kept", properties: { at: 1 } });
  const file = join(platform.dataDirectory, "analytics.db");
  const isWritten = (): boolean => {
    using database = new Database(file, { readonly: true });
    return database.query("SELECT 1 FROM events WHERE name = 'kept'").get() !== null;
  };
  for (let turn = 0; turn < 500 && !isWritten(); turn++) await Bun.sleep(20);
  await platform.kill("SIGKILL");
  await platform.restart();
  expect((await events({ event: "kept" })).events).toHaveLength(1);

  await track(platform, { name: "kept", properties: { at: 2 } });
  await platform.restart();
  expect((await events({ event: "kept" })).events.map(({ properties }) => properties["at"])).toEqual([2, 1]);
});

test("[AN114] a funnel counts the users who did each step after the one before", async () => {
  const at = Date.now() - 60_000;
  const did = (userId: string | null, ...names: [name: string, second: number][]) =>
    names.map(([name, second]) => ({
      name: `funnel ${name}`,
      timestamp: at + second * 1_000,
      ...(userId === null ? {} : { userId }),
    }));
  await track(
    platform.service,
    ...did("all", ["a", 1], ["b", 2], ["c", 3]),
    // The first b is before a, the second one counts.
    ...did("again", ["b", 1], ["a", 2], ["b", 3]),
    ...did("backwards", ["c", 1], ["b", 2], ["a", 3]),
    // c follows the second b only.
    ...did("twice", ["a", 1], ["a", 2], ["b", 4], ["b", 1], ["c", 5]),
    ...did("one", ["a", 1]),
    ...did(null, ["a", 1], ["b", 2], ["c", 3]),
  );
  const funnel = (steps: unknown, query: Record<string, string | number> = {}) =>
    events<{ funnel: { eventName: string; users: number }[] }>({
      metric: "funnel",
      steps: JSON.stringify(steps),
      ...query,
    });
  expect((await funnel(["funnel a", "funnel b", "funnel c"])).funnel).toEqual([
    { eventName: "funnel a", users: 5 },
    { eventName: "funnel b", users: 3 },
    { eventName: "funnel c", users: 2 },
  ]);
  // The same event again is another event.
  expect((await funnel(["funnel a", "funnel a", "funnel a"])).funnel.map(({ users }) => users)).toEqual([5, 1, 0]);
  expect((await funnel(["funnel a", "funnel none"])).funnel.map(({ users }) => users)).toEqual([5, 0]);
  expect((await funnel(["funnel a", "funnel b"], { start: at + 2_000 })).funnel.map(({ users }) => users)).toEqual([
    3, 2,
  ]);
  for (const steps of [undefined, "", "a", '["a"]', '["a","b","c","d","e","f"]', '["a",1]', '["a",""]', "{}"]) {
    const query = { metric: "funnel", ...(steps === undefined ? {} : { steps }) };
    const answer = await platform.service.get<ErrorAnswer>("/api/analytics/events", { query });
    expect([steps, answer.status, Object.keys(answer.body.data ?? {})]).toEqual([steps, 400, ["steps"]]);
  }
});
