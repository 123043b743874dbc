import { fill, JSON_HEADERS, MIB, SERVICE_HEADERS, type StallArea, send, words } from "./area.ts";
import type { Operation, OperationRequest } from "./measure.ts";

const T = "/api/db/shared/tables";
const BATCH_BYTES = 10 * MIB - 20_000;
const ROWS = 100_000;
const INSTANCES = 300;

const CONFIG = `import { t } from "elysia";
import { mkdirSync, writeFileSync } from "node:fs";
import { defineConfig } from "platform";

mkdirSync("public", { recursive: true });
writeFileSync("public/large.bin", new Uint8Array(16e6));
const anyone = { read: true, insert: true, update: true, delete: true } as const;
const every = (auth, record, context) => context.table("members").where("userId", "==", record.who).exists();
export default defineConfig({
  databases: {
    shared: {
      tables: {
        rows: { schema: { text: { type: "text" }, n: { type: "integer" }, at: { type: "datetime" } }, access: anyone },
        members: { schema: { userId: { type: "string" } }, indexes: [{ fields: ["userId"] }], access: anyone },
        // Each record asks its rule, which looks up another one.
        behind: { schema: { who: { type: "string" }, text: { type: "text" } }, access: { read: every, insert: true } },
        parents: { schema: { name: { type: "text" } }, access: anyone },
        children: {
          schema: { parent: { type: "string", references: { table: "parents" } }, text: { type: "text" } },
          access: anyone,
        },
        watched: { schema: { text: { type: "text" }, n: { type: "integer" } }, access: anyone },
        audited: { schema: { text: { type: "text" }, n: { type: "integer" } }, access: anyone },
      },
    },
    clubs: { instance: true, tables: { notes: { schema: { text: { type: "text" } } } } },
  },
  site: { directory: "./public" },
  routes: (api) =>
    api
      .post("/echo", ({ body }) => body, { access: true, body: t.Object({ text: t.String() }) })
      .post("/enqueue", async ({ body, app }) => ({ id: await app.jobs.enqueue("idle", body) }), { access: true }),
  jobs: { idle: { run: async () => {} } },
  triggers: { follow: { on: { table: "shared.watched", events: ["insert", "update", "delete"] }, run: async () => {} } },
  
});
`;

const get = (path: string, headers?: Record<string, string>): OperationRequest =>
  headers ? { path, headers } : { path };
const post = (path: string, body: unknown, headers: Record<string, string> = JSON_HEADERS): OperationRequest => ({
  method: "POST",
  path,
  headers,
  body: typeof body === "string" ? body : JSON.stringify(body),
});

/** Returns 500 inserts that fill a body. */
function fullBatch(): unknown {
  const length = Math.floor(BATCH_BYTES / 500) - 60;
  return { inserts: Array.from({ length: 500 }, (_, index) => ({ text: words(length, index + 1), n: index })) };
}

/** Maximum number of expanded paths, each with a hundred records. */
const paths = ["children(parent)", "children(parent).parent", "children(parent).parent.children(parent)"].join(",");

async function prepare(server: Parameters<StallArea["prepare"]>[0]): Promise<Operation[]> {
  const started = Date.parse("2020-01-01T00:00:00Z");
  await fill(server, `${T}/rows`, ROWS, (index) => ({
    text: `${index} ${words(100, index)}`,
    n: index % 997,
    at: new Date(started + index * 600_000).toISOString(),
  }));
  await fill(server, `${T}/members`, 5_000, (index) => ({ userId: `u${index}` }));
  await fill(server, `${T}/behind`, 20_000, (index) => ({ who: `u${index % 7_000}`, text: words(200, index) }));
  await fill(server, `${T}/parents`, 1_000, (index) => ({ id: `p${index}`, name: words(5_000, index) }));
  await fill(server, `${T}/children`, 50_000, (index) => ({ parent: `p${index % 1_000}`, text: words(100, index) }));
  for (let index = 0; index < INSTANCES; index++) {
    await send(server, "POST", `/api/db/clubs/c${index}/tables/notes`, { text: "note" });
  }
  // An audit log of large entries, and a log of many lines.
  await fill(server, `${T}/audited`, 2_000, (index) => ({ text: words(16_000, index), n: index }));
  const token = await signUp(server.url);
  const acting = { ...SERVICE_HEADERS, "x-platform-act-as": "anonymous" };
  const user = { ...JSON_HEADERS, authorization: `Bearer ${token}` };
  const aggregate = `${T}/rows/aggregate?select=${encodeURIComponent("count(),sum(n),min(text),max(text)")}`;
  return [
    {
      name: "aggregate by minute in a zone, sorted by the largest text",
      requests: [
        get(
          `${aggregate}&groupBy=at:minute&timezone=Europe/Berlin&limit=1000&sort=${encodeURIComponent("max(text):desc")}`,
        ),
      ],
    },
    { name: "aggregate, one group a record", requests: [get(`${aggregate}&groupBy=text,n,at&limit=1000`)] },
    {
      name: "expand, as much as an answer may have",
      requests: [get(`${T}/parents?limit=60&expand=${encodeURIComponent(paths)}`)],
    },
    {
      name: "expand of 1,000 records",
      requests: [get(`${T}/parents?limit=1000&fields=id&expand=${encodeURIComponent("children(parent)")}`)],
    },
    { name: "list of 1,000, each record behind a lookup", requests: [get(`${T}/behind?limit=1000`, user)] },
    {
      name: "batch, 500 inserts of 20 KB, in the audit log",
      requests: [post(`${T}/audited/batch`, fullBatch(), SERVICE_HEADERS)],
      clients: 2,
    },
    {
      name: "batch, 500 inserts of 20 KB, with a trigger",
      requests: [post(`${T}/watched/batch`, fullBatch())],
      clients: 2,
    },
    { name: "audit log, 200 large entries", requests: [get("/api/admin/audit?limit=200", SERVICE_HEADERS)] },
    {
      name: "audit log, nothing found",
      requests: [get("/api/admin/audit?limit=200&target=db/shared/none", SERVICE_HEADERS)],
    },
    {
      name: "log, 10,000 lines searched",
      requests: [get(`/api/admin/logs?limit=1000&q=${"a".repeat(200)}`, SERVICE_HEADERS)],
    },
    { name: "slow requests", requests: [get("/api/admin/slow-requests?limit=1000", SERVICE_HEADERS)] },
    { name: "what the config declares", requests: [get("/api/admin/resources", SERVICE_HEADERS)] },
    { name: `full health, ${INSTANCES} instances`, requests: [get("/api/health?full", SERVICE_HEADERS)] },
    { name: "metrics", requests: [get("/metrics", SERVICE_HEADERS)] },
    { name: "a route with 10 MiB", requests: [post("/api/functions/echo", { text: "a".repeat(BATCH_BYTES) })] },
    {
      name: "a route that refuses 10 MiB",
      requests: [post("/api/functions/echo", { texts: "a".repeat(BATCH_BYTES) })],
    },
    { name: "jobs with data of 60 KB", requests: [post("/api/functions/enqueue", { text: "a".repeat(60_000) })] },
    { name: "list of 200 jobs", requests: [get("/api/admin/jobs?limit=200", SERVICE_HEADERS)] },
    { name: "the npm package of the client", requests: [get("/client/platform.tgz")], clients: 32 },
    { name: "a file of the site that does not exist", requests: [get(`/${"a/".repeat(2_000)}`)], clients: 32 },
    {
      name: "a file of the site in ranges",
      requests: [
        get("/large.bin", {
          range: `bytes=${Array.from({ length: 500 }, (_, n) => `${n * 10}-${n * 10 + 1_000_000}`).join(",")}`,
        }),
      ],
      clients: 32,
    },
    {
      name: "wrong keys at the dashboard",
      requests: [post("/api/admin/session", { key: "x".repeat(500) })],
      clients: 32,
    },
    { name: "acting as nobody, lists of 1,000", requests: [get(`${T}/rows?limit=1000`, acting)] },
  ];
}

async function signUp(url: string): Promise<string> {
  const response = await fetch(`${url}/api/auth/signup`, {
    method: "POST",
    headers: JSON_HEADERS,
    body: JSON.stringify({ email: "products@example.com", password: "correct horse battery" }),
  });
  const { accessToken } = (await response.json()) as { accessToken: string };
  return accessToken;
}

export const productStalls: StallArea = { name: "server code and administration", config: CONFIG, prepare };
