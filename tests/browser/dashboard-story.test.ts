/** Tests of the page of a request, of slow queries, and of ranges of time. */
import { afterAll, beforeAll, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { testBrowser } from "../support/browser.ts";
import { inEveryView, openDashboard, overflowOf, violationsOf } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
/** Records among which a field without an index is slow to find. */
const RECORDS = 20_000;
const BATCH = 500;

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  const probe = Bun.serve({ port: 0, fetch: () => new Response() });
  const args = ["--port", String(probe.port)];
  await probe.stop(true);
  platform = await testPlatform({
    command: "dev",
    args,
    config: `export default {
      server: { workers: 0 },
      databases: { shared: { tables: {
        films: {
          schema: { title: { type: "string" }, year: { type: "integer" }, text: { type: "text" } },
          access: { read: (auth, film) => film.year > 0, insert: true },
          hooks: { beforeInsert: (auth, film) => film },
        },
      } } },
      jobs: { index: { run() {} } },
      triggers: { filmed: { on: { table: "shared.films", events: ["insert"] }, run() {} } },
      routes: (api) => api.get("/breaks", () => { throw new Error("the projector is broken"); }, { access: true }),
      serviceKeys: { reader: { key: "${READER}", scopes: ["analytics:*:*:read", "audit:*:*:read"] } },
    };`,
  });
});
afterAll(() => platform.stop());

const open = (path: string, options: Parameters<typeof openDashboard>[3] = {}) =>
  openDashboard(browser, platform, path, options);
const idOf = (answer: { headers: Headers }): string => answer.headers.get("x-request-id") ?? "";

browserTest(
  "[AD170] the page of a request has what it did, its jobs, and what log and audit log have of it",
  async () => {
    const inserted = await platform.service.post("/api/db/shared/tables/films", { id: "f1", title: "M", year: 1931 });
    const { page, problems } = await open(`/admin/analytics/${idOf(inserted)}`);
    const did = page.getByRole("region", { name: "What it did" });
    await did.getByText("shared.films beforeInsert").waitFor();
    await did.getByText("insert films f1").waitFor();
    await did.getByText("trigger:filmed").waitFor();
    const plan = did.getByRole("button", { name: "Plan" }).first();
    await plan.click();
    expect(await plan.getAttribute("aria-expanded")).toBe("true");
    await page.getByRole("region", { name: "Jobs" }).getByRole("link", { name: "trigger:filmed" }).waitFor();
    await page.getByRole("region", { name: "Audit" }).getByText("record.insert db/shared/films/f1").waitFor();
    await page.getByRole("region", { name: "Log" }).getByText("The log has no line with this id.").waitFor();
    expect(problems).toEqual([]);
    await page.getByRole("region", { name: "Jobs" }).getByRole("link", { name: "trigger:filmed" }).click();
    await page.getByRole("button", { name: "Jobs of every name, not only trigger:filmed" }).click();
    expect(new URL(page.url()).searchParams.has("name")).toBe(false);
  },
);

browserTest(
  "[AD170] an entry of the audit log leads to its request, and a request without a story says so",
  async () => {
    await platform.service.post("/api/db/shared/tables/films", { id: "f2", title: "Nosferatu", year: 1922 });
    const { page } = await open("/admin/audit?target=db/shared/films/f2");
    await page.getByRole("button", { name: "record.insert" }).click();
    await page.getByRole("link", { name: /^Request / }).click();
    await page.getByRole("region", { name: "What it did" }).waitFor();
    await page.goto(`${platform.url}/admin/analytics/of-another-start`);
    await page.getByText("Its story is not kept").waitFor();
    // Its log is shown all the same.
    await page.getByRole("region", { name: "Log" }).waitFor();
  },
);

browserTest(
  "[AD171] single requests are listed with a range of time, and a failed one has its line of the log",
  async () => {
    const broken = await platform.get("/api/functions/breaks");
    expect(broken.status).toBe(500);
    const { page } = await open("/admin/analytics?view=single");
    const row = page.getByRole("link", { name: "500 GET /api/functions/breaks" }).first();
    await row.waitFor();
    await page.getByRole("combobox", { name: "Time" }).click();
    await page.getByRole("option", { name: "From … to …" }).click();
    await page.getByLabel("From").fill("2000-01-01T00:00:00");
    await page.getByLabel("To").fill("2000-01-02T00:00:00");
    await page.getByText("None of this time is kept.").waitFor();
    await page.getByLabel("To").fill("2100-01-02T00:00:00");
    await row.click();
    await page.getByRole("region", { name: "Log" }).getByText("the projector is broken").waitFor();
  },
);

browserTest("[AD171] the log is narrowed to a range of time", async () => {
  await platform.get("/api/functions/breaks");
  const { page } = await open("/admin/logs?since=range&from=2000-01-01T00:00:00Z&to=2000-01-02T00:00:00Z");
  await page.getByText("No line of this time is among those that the server keeps.").waitFor();
  await page.getByLabel("To").fill("2100-01-02T00:00:00");
  await page.getByText("the projector is broken").first().waitFor();
});

browserTest("[AD172] a slow query has the index that would help, which a click adds to the config", async () => {
  const text = "x".repeat(800);
  for (let n = 0; n < RECORDS; n += BATCH) {
    const records = Array.from({ length: BATCH }, (_, index) => ({
      title: `t${n + index}`,
      year: 1900 + (n % 100),
      text,
    }));
    const { status } = await platform.service.post("/api/db/shared/tables/films/batch", { inserts: records });
    if (status >= 300) throw new Error(`the batch was answered with ${status}`);
  }
  await until("a query is slow", async () => {
    await platform.service.get(
      '/api/db/shared/tables/films?limit=20&filter=[["text","contains","needle"],["title","==","t7"]]',
    );
    const { body } = await platform.service.get<{ queries: { index: object | null }[] }>("/api/admin/slow-queries");
    return body.queries.some(({ index }) => index !== null);
  });
  const { page } = await open("/admin/analytics");
  const slow = page.getByRole("region", { name: "Slow queries" });
  await slow
    .getByText(/An index on .*title.* of shared.films would help/)
    .first()
    .waitFor();
  await slow.getByRole("button", { name: "Add the index" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Review" }).click();
  await dialog.getByLabel("What changes").getByText("indexes").first().waitFor();
  await dialog.getByRole("button", { name: "Write" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(readFileSync(platform.configFile, "utf8")).toContain('indexes: [{ fields: ["title"] }]');
  // Another key sees neither queries nor the button.
  const { page: scoped } = await open("/admin/analytics", { key: READER });
  await scoped.getByRole("region", { name: "Slow requests" }).waitFor();
  expect(await scoped.getByRole("region", { name: "Slow queries" }).count()).toBe(0);
  expect(await scoped.getByRole("tab", { name: "Single requests" }).count()).toBe(0);
});

browserTest("[AD170] the pages are accessible and fit at 360 px, in light and dark mode", async () => {
  const inserted = await platform.service.post("/api/db/shared/tables/films", { title: "M", year: 1931 });
  await inEveryView(async (options) => {
    const { page } = await open(`/admin/analytics/${idOf(inserted)}`, options);
    await page.getByRole("region", { name: "What it did" }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect(await overflowOf(page)).toBeLessThanOrEqual(0);
    await page.goto(`${platform.url}/admin/analytics?view=single&since=range`);
    await page.getByRole("table", { name: "Single requests" }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect(await overflowOf(page)).toBeLessThanOrEqual(0);
  });
});
