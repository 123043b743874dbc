/** Tests of the stories of requests, and of the slow statements in them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";

const SCOPED_KEY = "analytics-reader-key-0123456789abcdefghij";
const SECRET = "correct horse battery staple";
const TABLES = `{
  shared: {
    tables: {
      films: {
        access: { read: (auth, record) => record.year !== 1, insert: (auth) => auth !== null, update: true },
        schema: { title: { type: "string" }, year: { type: "integer" }, note: { type: "string" } },
        hooks: { beforeInsert: (auth, record) => record },
      },
      copies: { schema: { title: { type: "string" } }, access: { read: true } },
    },
  },
}`;
const CONFIG = `{
  auth: { emailPassword: true },
  // What a worker answers has no steps.
  server: { workers: 0 },
  databases: ${TABLES},
  d1: { reports: {} },
  jobs: { index: { run() {} } },
  triggers: { filmed: { on: { table: "shared.films", events: ["insert"] }, run() {} } },
  routes: (api) => api
    .get("/breaks/:secret", () => { throw new Error("broken"); }, { access: true })
    .get("/enqueues", async ({ app }) => ({ id: await app.jobs.enqueue("index", { n: 1 }) }), { access: true }),
  serviceKeys: { scoped: { key: "${SCOPED_KEY}", scopes: ["analytics:*:*:read"] } },
}`;

type Step = { kind: string; [member: string]: unknown };
interface Kept {
  request: { status: number; method: string; path: string; steps: Step[]; further: number } | null;
  jobs: { name: string; id: string }[];
}

let dev: TestPlatform;
let started: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  [dev, started] = await Promise.all([
    testPlatform({ command: "dev", config: CONFIG }),
    testPlatform({ config: CONFIG }),
  ]);
  user = await signIn(dev);
});
afterAll(() => Promise.all([dev.stop(), started.stop()]));

const idOf = (answer: { headers: Headers }): string => answer.headers.get("x-request-id") ?? "";

/** Returns the story of a request, which is kept after its answer. */
async function storyOf(platform: TestPlatform, id: string): Promise<NonNullable<Kept["request"]> & Pick<Kept, "jobs">> {
  let kept: Kept = { request: null, jobs: [] };
  await until("the story is kept", async () => {
    kept = (await platform.service.get<Kept>(`/api/admin/requests/${id}`)).body;
    return kept.request !== null;
  });
  if (kept.request === null) throw new Error("no story");
  return { ...kept.request, jobs: kept.jobs };
}

const kinds = (steps: readonly Step[]): Set<string> => new Set(steps.map(({ kind }) => kind));

test("[AN120] a story has the rules, queries with plans and times, hooks, writes and triggers of a request", async () => {
  const inserted = await dev.as(user.token).post("/api/db/shared/tables/films", { title: "Metropolis", year: 1927 });
  expect(inserted.status).toBe(201);
  const { steps, status, method, path, jobs } = await storyOf(dev, idOf(inserted));
  expect([status, method, path]).toEqual([201, "POST", "/api/db/shared/tables/films"]);
  expect(kinds(steps)).toEqual(new Set(["rule", "query", "hook", "write", "job"]));
  const { id } = inserted.body as { id: string };
  expect(steps.find(({ kind }) => kind === "write")).toMatchObject({
    place: "db/shared",
    count: 1,
    changes: [{ table: "films", id, action: "insert" }],
  });
  const said = steps.filter(({ kind }) => kind === "rule").map(({ name, said: answer }) => [name, answer]);
  expect(said).toContainEqual(["shared.films insert", "allows"]);
  expect(steps).toContainEqual(
    expect.objectContaining({ kind: "hook", name: "shared.films beforeInsert", said: "runs" }),
  );
  expect(steps).toContainEqual(expect.objectContaining({ kind: "query", place: "db/shared", isElsewhere: false }));
  const job = steps.find(({ kind }) => kind === "job");
  expect(job?.["name"]).toContain("filmed");
  expect(jobs).toEqual([{ name: String(job?.["name"]), id: String(job?.["id"]) }]);
  await until("the trigger's job is there", async () => {
    const found = await dev.service.get<{ jobs: { id: string }[] }>("/api/admin/jobs");
    return found.body.jobs.some((one) => one.id === job?.["id"]);
  });
});

test("[AN120] rules that are asked about many records are one step, and queries have the plan of SQLite", async () => {
  for (let year = 2000; year < 2010; year++) {
    await dev.as(user.token).post("/api/db/shared/tables/films", { title: "x", year });
  }
  const list = await dev.as(user.token).get("/api/db/shared/tables/films?limit=10");
  const { steps } = await storyOf(dev, idOf(list));
  expect(steps).toContainEqual(
    expect.objectContaining({ kind: "rule", name: "shared.films read", said: "allows", times: 10 }),
  );
  const plans = steps.flatMap(({ plan }) => (plan as { detail: string }[] | null | undefined) ?? []);
  expect(plans.map(({ detail }) => detail).join()).toContain("films");
});

test("[AN121] outside of development only slow and failed requests have a story, and others only the ids of their jobs", async () => {
  const read = await started.get("/api/db/shared/tables/copies");
  const broken = await started.get("/api/functions/breaks/abc");
  const enqueued = await started.get<{ id: string }>("/api/functions/enqueues");
  expect([read.status, broken.status, enqueued.status]).toEqual([200, 500, 200]);
  const story = await storyOf(started, idOf(broken));
  // Parameters of own routes may be secrets.
  expect(story.path).toBe("/api/functions/breaks/:secret");
  const other = await started.service.get<Kept>(`/api/admin/requests/${idOf(read)}`);
  expect(other.body).toEqual({ request: null, jobs: [] });
  const jobs = await started.service.get<Kept>(`/api/admin/requests/${idOf(enqueued)}`);
  expect(jobs.body).toEqual({ request: null, jobs: [{ name: "index", id: enqueued.body.id }] });
  const { body } = await started.service.get<{ requests: { requestId: string }[]; keeps: string }>(
    "/api/admin/requests",
  );
  expect(body.keeps).toBe("slow and failed");
  expect(body.requests.map(({ requestId }) => requestId)).toEqual([idOf(broken)]);
});

test("[AN122] a story has no value of a record, password, token, key or parameter", async () => {
  const email = "secret-owner@example.test";
  const signUp = await dev.post("/api/auth/signup", { email, password: SECRET });
  const ids = [idOf(signUp)];
  const noted = await dev.as(user.token).post("/api/db/shared/tables/films", { title: "t", year: 7, note: SECRET });
  ids.push(idOf(noted));
  ids.push(
    idOf(
      await dev
        .as(user.token)
        .get(`/api/db/shared/tables/copies?filter=${encodeURIComponent(JSON.stringify([["title", "==", SECRET]]))}`),
    ),
  );
  const query = `SELECT '${SECRET}' AS a, title FROM films -- don't\n WHERE title = '${SECRET}'`;
  const asked = await dev.service.post("/api/admin/sql/shared", { query });
  expect(asked.status).toBe(200);
  ids.push(idOf(asked));
  const { steps } = await storyOf(dev, idOf(asked));
  expect(steps).toContainEqual(
    expect.objectContaining({
      kind: "query",
      place: "db/shared",
      sql: `SELECT '…' AS a, title FROM films WHERE title = '…'`,
      plan: null,
    }),
  );
  const report = await dev.service.post("/api/d1/reports", { query: "SELECT ? AS a", params: [SECRET] });
  ids.push(idOf(report));
  const { steps: ofReport } = await storyOf(dev, idOf(report));
  expect(ofReport).toContainEqual(
    expect.objectContaining({ kind: "query", place: "d1/reports", sql: "SELECT ? AS a" }),
  );
  for (const id of ids) {
    const text = JSON.stringify(await storyOf(dev, id));
    for (const secret of [SECRET, email, user.token, dev.serviceKey]) expect(text).not.toContain(secret);
  }
});

test("[AN123] requests with stories are listed by a range of time, and pages that watch the server are not among them", async () => {
  const asked = await dev.get("/api/db/shared/tables/copies");
  await storyOf(dev, idOf(asked));
  const all = await dev.service.get<{
    requests: { requestId: string; at: string; method: string; path: string }[];
    keeps: string;
  }>("/api/admin/requests?limit=1000");
  expect(all.body.keeps).toBe("all");
  expect(all.body.requests.some(({ method, path }) => method === "GET" && path.startsWith("/api/admin"))).toBe(false);
  const [newest] = all.body.requests;
  if (newest === undefined) throw new Error("no requests");
  const after = new Date(Date.parse(newest.at) + 1).toISOString();
  const later = await dev.service.get<{ requests: unknown[] }>(`/api/admin/requests?from=${after}`);
  expect(later.body.requests).toEqual([]);
  const until = await dev.service.get<{ requests: { requestId: string }[] }>(`/api/admin/requests?to=${after}&limit=1`);
  expect(until.body.requests.map(({ requestId }) => requestId)).toEqual([newest.requestId]);
  const slow = await dev.service.get<{ requests: unknown[] }>(`/api/admin/slow-requests?from=${after}`);
  expect([slow.status, slow.body.requests]).toEqual([200, []]);
  for (const query of ["from=never", `from=${after}&to=${newest.at}`, "limit=0"]) {
    for (const path of ["requests", "slow-requests"]) {
      expect((await dev.service.get(`/api/admin/${path}?${query}`)).status).toBe(400);
    }
  }
});

test("[AN124] stories need a key that may read the log", async () => {
  for (const path of ["requests", "requests/abc", "slow-queries"]) {
    expect((await dev.get(`/api/admin/${path}`)).status).toBe(401);
    expect((await dev.withKey(SCOPED_KEY).get(`/api/admin/${path}`)).status).toBe(403);
    expect((await dev.service.get(`/api/admin/${path}`)).status).toBe(200);
    expect((await dev.service.get(`/api/admin/${path}?other=1`)).status).toBe(400);
  }
  expect((await dev.service.get(`/api/admin/requests/${"a".repeat(200)}`)).status).toBe(400);
});
