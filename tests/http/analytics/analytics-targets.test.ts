import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

const READER_KEY = "analytics-reader-key-0123456789abcdefghij";
const OTHER_KEY = "key-value-only-key-0123456789abcdefghijk";
const CONFIG = `
import { defineConfig } from "platform";
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export default defineConfig({
  databases: {
    shared: {
      tables: {
        posts: { access: { read: true } },
        ruled: { access: { read: async () => { await wait(120); return true; } } },
        hooked: {
          access: { insert: async () => { await wait(120); return true; }, read: true },
          hooks: { beforeInsert: async (auth, record) => { await wait(150); return record; } },
        },
      },
    },
    team: { instance: true, access: { open: true }, tables: { notes: { access: { read: true, insert: true } } } },
  },
  storage: { buckets: { photos: { access: { read: async () => { await wait(120); return true; } } } } },
  kv: { cache: {} },
  d1: { reports: {} },
  rooms: { lobby: {} },
  routes: (api) => api.get("/slow/:secret", async () => { await wait(120); return { ok: true }; }, { access: true }),
  analytics: { slowMs: 100 },
  serviceKeys: {
    reader: { key: "${READER_KEY}", scopes: ["analytics:*:*:read"] },
    other: { key: "${OTHER_KEY}", scopes: ["kv:namespace:*:read", "analytics:*:*:write"] },
  },
});`;

interface Target {
  method: string;
  route: string;
  target: string | null;
  requests: number;
  errors4xx: number;
  errors5xx: number;
  avgLatency: number;
  p50: number;
  p95: number;
  p99: number;
}
interface Slow {
  at: string;
  requestId: string;
  method: string;
  path: string;
  target: string | null;
  status: number;
  principal: { kind: string; name: string | null };
  ms: number;
  phases: Record<"rules" | "database" | "hooks" | "answer", number>;
  rows: number;
}

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const targets = async (): Promise<Target[]> => {
  const answer = await platform.service.get<{ targets: Target[] }>("/api/analytics/query?metric=targets");
  expect(Object.keys(answer.body)).toEqual(["targets"]);
  return answer.body.targets;
};
const slowRequests = async (query = ""): Promise<{ requests: Slow[]; cursor: string | null }> => {
  const answer = await platform.service.get<{ requests: Slow[]; cursor: string | null }>(
    `/api/admin/slow-requests${query}`,
  );
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};

test("[AN101] tables, buckets, namespaces, room types and routes are targets; invented names are none", async () => {
  const posts = "/api/db/shared/tables/posts";
  await platform.service.post(posts, { title: "a" });
  for (let time = 0; time < 3; time++) await platform.get(posts);
  await platform.get(`${posts}/missing`);
  await platform.service.post("/api/db/team/one/tables/notes", { text: "a" });
  for (const invented of ["invented-1", "invented-2"]) await platform.get(`/api/db/shared/tables/${invented}`);
  await platform.service.post("/api/kv/cache", { action: "get", key: "k" });
  await platform.service.post("/api/d1/reports", { query: "SELECT 1" });
  await platform.get("/api/room/metadata?namespace=lobby&id=a");
  await platform.get("/api/room/metadata?namespace=invented-3&id=a");
  await platform.get("/api/functions/slow/hidden-word");
  await platform.get("/api/storage/photos/a.png");

  const all = await targets();
  const find = (method: string, target: string | null, route: string) =>
    all.find((one) => one.method === method && one.target === target && one.route.startsWith(route));
  const list = find("GET", "shared.posts", "/api/db/:namespace/tables/:table");
  expect(list).toMatchObject({ route: "/api/db/:namespace/tables/:table", requests: 3, errors4xx: 0, errors5xx: 0 });
  expect(list?.p50).toBeGreaterThan(0);
  expect((list?.p99 ?? 0) >= (list?.p95 ?? 0) && (list?.p95 ?? 0) >= (list?.p50 ?? 0)).toBe(true);
  expect(find("GET", "shared.posts", "/api/db/:namespace/tables/:table/:id")).toMatchObject({ errors4xx: 1 });
  expect(find("POST", "team.notes", "/api/db/:namespace/:instance")?.requests).toBe(1);
  expect(find("GET", null, "/api/db/:namespace/tables/:table")).toMatchObject({ requests: 2, errors4xx: 2 });
  expect(find("POST", "cache", "/api/kv")?.requests).toBe(1);
  expect(find("POST", "reports", "/api/d1")?.requests).toBe(1);
  expect(find("GET", "lobby", "/api/room/metadata")?.requests).toBe(1);
  expect(find("GET", "slow", "/api/functions/slow/:secret")?.requests).toBe(1);
  expect(find("GET", "photos", "/api/storage")?.requests).toBe(1);
  expect(JSON.stringify(all)).not.toMatch(/invented|hidden-word/);
});

test("[AN102] percentiles and 4xx are in every part, and add up over targets", async () => {
  const answer = await platform.service.get<Record<string, Target | Target[]>>(
    "/api/analytics/query?groupBy=day&range=1h",
  );
  const { summary, timeSeries, breakdown, topItems } = answer.body as unknown as Record<string, Target> & {
    timeSeries: Target[];
    breakdown: (Target & { label: string })[];
    topItems: (Target & { label: string; count: number })[];
  };
  for (const part of [summary, timeSeries.at(-1), breakdown[0], topItems[0]]) {
    const { p50 = -1, p95 = -1, p99 = -1, errors4xx = -1 } = part ?? {};
    expect(p50 > 0 && p95 >= p50 && p99 >= p95 && errors4xx >= 0).toBe(true);
  }
  expect(summary?.p99).toBeGreaterThanOrEqual(100);
  const list = topItems.find(({ label }) => label === "GET /api/db/:namespace/tables/:table");
  expect(list).toMatchObject({ count: 5, errors4xx: 2 });
  expect(summary?.errors4xx).toBeGreaterThanOrEqual(4);
});

test("[AN101] [AN102] reports continue after a restart and after SIGKILL", async () => {
  const before = await targets();
  await platform.restart();
  await platform.kill("SIGKILL");
  await platform.restart();
  const after = await targets();
  for (const { method, route, target, requests, p50, errors4xx } of before.filter((one) => one.target !== null)) {
    expect(after).toContainEqual(expect.objectContaining({ method, route, target, requests, p50, errors4xx }));
  }
});

test("[AN110] a slow request says what it waited for, and how many records it has read or changed", async () => {
  for (let at = 0; at < 3; at++) await platform.service.post("/api/db/shared/tables/ruled", { at });
  await user.get("/api/db/shared/tables/ruled");
  await user.post("/api/db/shared/tables/hooked", { at: 1 });
  await platform.get("/api/functions/slow/hidden-word");
  const { requests } = await slowRequests();
  const ruled = requests.find(({ method, target }) => method === "GET" && target === "shared.ruled");
  expect(ruled).toMatchObject({
    path: "/api/db/shared/tables/ruled",
    status: 200,
    principal: { kind: "user", name: user.id },
    rows: 3,
  });
  expect(ruled?.requestId).toMatch(/^[0-9a-f]{12}-/);
  expect(new Date(ruled?.at ?? "").toISOString()).toBe(ruled?.at ?? "");
  const hooked = requests.find(({ method, target }) => method === "POST" && target === "shared.hooked");
  expect(hooked).toMatchObject({ status: 201, rows: 1 });
  const own = requests.find(({ target }) => target === "slow");
  // What each phase waits for is longer than all else together.
  for (const [request, phase] of [
    [ruled, "rules"],
    [hooked, "hooks"],
    [own, "answer"],
  ] as const) {
    const phases = Object.entries(request?.phases ?? {}).toSorted(([, a], [, b]) => b - a);
    expect(phases[0]?.[0]).toBe(phase);
    const sum = phases.reduce((total, [, ms]) => total + ms, 0);
    // The phases are parts of the whole; on a busy machine they overlap a little.
    expect(sum).toBeLessThanOrEqual(1.1 * (request?.ms ?? 0) + 1);
    expect(sum).toBeGreaterThan((request?.ms ?? 0) / 2);
  }
  expect(hooked?.phases.rules).toBeGreaterThan(50);
  expect(hooked?.phases.database).toBeGreaterThan(0);
});

test("[AN112] slow requests have no query, credential or address, and own routes only their pattern", async () => {
  await platform.get("/api/functions/slow/hidden-word?token=hidden-token");
  await user.get("/api/db/shared/tables/ruled?filter=hidden-filter");
  await user.get("/api/db/shared/tables/ruled?fields=hidden");
  const { requests } = await slowRequests();
  expect(requests.find(({ target }) => target === "slow")?.path).toBe("/api/functions/slow/:secret");
  expect(JSON.stringify(requests)).not.toMatch(/hidden|127\.0\.0\.1|eyJ|test-service-key/);
});

test("[AN111] slow requests are paged, newest first", async () => {
  const all = (await slowRequests("?limit=1000")).requests.map(({ requestId }) => requestId);
  expect(all.length).toBeGreaterThan(4);
  const paged: string[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof slowRequests>> = await slowRequests(
      `?limit=2${cursor === null ? "" : `&cursor=${cursor}`}`,
    );
    paged.push(...page.requests.map(({ requestId }) => requestId));
    cursor = page.cursor;
  } while (cursor !== null);
  expect(paged).toEqual(all);
  for (const query of ["limit=0", "limit=1001", "cursor=nonsense", "unknown=1"]) {
    expect((await platform.service.get(`/api/admin/slow-requests?${query}`)).status).toBe(400);
  }
});

test("[AN111] slow requests are for service keys with the scope", async () => {
  const path = "/api/admin/slow-requests";
  expect((await platform.get(path)).status).toBe(401);
  expect((await user.get(path)).status).toBe(401);
  expect((await platform.withKey(OTHER_KEY).get(path)).status).toBe(403);
  expect((await platform.withKey(READER_KEY).get(path)).status).toBe(200);
});

test("[AN113] without a request log nothing is kept", async () => {
  const config = CONFIG.replace("slowMs: 100", "slowMs: 1, requestLog: false");
  const quiet = await testPlatform({ config });
  await quiet.get("/api/functions/slow/a");
  expect((await quiet.service.get("/api/admin/slow-requests")).body).toEqual({ requests: [], cursor: null });
  await quiet.stop();
});
