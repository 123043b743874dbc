import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { LOOKS, openDashboard, overflowOf, violationsOf } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const LONG = "an-event-with-a-name-that-is-longer-than-any-column-of-a-table-should-ever-be";
const CONFIG = `{
  databases: { shared: { tables: { notes: { schema: { text: { type: "string" } } } } } },
  jobs: { mend: { retries: 0, run() { throw new Error("the roof leaks"); } } },
  routes: (api) => api.post("/mend", ({ app }) => app.jobs.enqueue("mend", {}), { access: true }),
  serviceKeys: { reader: { key: "${READER}", scopes: ["db:shared:notes:read"] } },
}`;

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  await platform.service.post("/api/db/shared/tables/notes", { id: "n1", text: "hello" });
  expect((await platform.post("/api/functions/mend")).status).toBe(200);
  const events = [
    { name: "film opened", properties: { film: "Heat" } },
    { name: "film rated", properties: { stars: 5 } },
    { name: LONG, properties: { text: "x".repeat(400) } },
  ];
  await platform.post("/api/analytics/track", { events });
});
afterAll(() => platform.stop());

const open = (path: string, options: Parameters<typeof openDashboard>[3] = {}) =>
  openDashboard(browser, platform, path, options);

browserTest("[AD67] charts of the overview move, and have their numbers as text and as a table", async () => {
  const { page, problems } = await open("/admin");
  const requests = page.getByRole("region", { name: "Requests", exact: true });
  await requests.getByRole("img", { name: /^Requests\. All: \d+ now/ }).waitFor();
  await requests.locator("canvas").waitFor();
  await requests.getByText("Numbers", { exact: true }).click();
  const table = requests.getByRole("table", { name: "Requests" });
  await table.getByRole("row").nth(50).waitFor();
  for (const name of ["Response times", "Live sockets", "Memory"]) {
    await page.getByRole("region", { name, exact: true }).locator("canvas").waitFor();
  }
  const total = async (): Promise<number> => {
    const cells = await table.locator("tbody tr td:nth-child(2)").allTextContents();
    return cells.reduce((sum, text) => sum + Number(text.replaceAll(",", "")), 0);
  };
  const before = await total();
  for (let n = 0; n < 20; n++) await platform.service.get("/api/db/shared/tables/notes");
  await until("the requests are drawn", async () => (await total()) >= before + 20);
  expect(problems).toEqual([]);
});

browserTest("[AD67] the overview has checks, failed jobs, warnings and the last changes", async () => {
  const { page } = await open("/admin");
  for (const name of ["disk", "files", "backup"]) await page.getByRole("region", { name, exact: true }).waitFor();
  await page.getByRole("region", { name: "Jobs that failed" }).getByText("the roof leaks").waitFor();
  await page
    .getByRole("region", { name: "Warnings of the config" })
    .getByText("databases.shared.tables.notes")
    .waitFor();
  await page.getByRole("region", { name: "Last changes" }).getByText("db/shared/notes/n1").waitFor();
});

browserTest("[AD67] a key sees what it may read, and nothing else is asked for", async () => {
  const { page, problems } = await open("/admin", { key: READER });
  await page.getByText(/^Version/).waitFor();
  for (const name of ["Requests", "Jobs that failed", "Warnings of the config", "Last changes", "disk"]) {
    expect(await page.getByRole("region", { name, exact: true }).count()).toBe(0);
  }
  await page.waitForLoadState("networkidle");
  expect(problems).toEqual([]);
});

browserTest("[AD68] events are drawn, ranked, listed with their properties, and chosen by name", async () => {
  const { page, problems } = await open("/admin/analytics?range=1h");
  await page.getByRole("region", { name: "Users", exact: true }).locator("canvas").waitFor();
  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByText('{"film":"Heat"}').waitFor();
  await page.getByRole("region", { name: "Most frequent" }).getByRole("button", { name: "film rated" }).click();
  await page.getByText('{"film":"Heat"}').waitFor({ state: "detached" });
  await page.getByText('{"stars":5}').waitFor();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByText('{"stars":5}').waitFor();
  expect(await other.getByText('{"film":"Heat"}').count()).toBe(0);
  await other.getByRole("button", { name: "All events" }).click();
  await other.getByText('{"film":"Heat"}').waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD79] a funnel says how many users go from one event to the next, and its address holds it", async () => {
  const did = (userId: string, ...names: string[]) =>
    names.map((name, second) => ({ name, userId, timestamp: Date.now() - 60_000 + second * 1_000 }));
  const events = [...did("u1", "arrived", "paid"), ...did("u2", "arrived"), ...did("u3", "paid", "arrived")];
  expect((await platform.service.post("/api/analytics/track", { events })).status).toBe(200);
  const { page, problems } = await open("/admin/analytics?view=events");
  const funnel = page.getByRole("region", { name: "Funnel" });
  const steps = funnel.getByLabel("Steps", { exact: true }).first();
  await steps.fill("arrived");
  await steps.press("Enter");
  await steps.fill("paid");
  await steps.press("Enter");
  await funnel.getByRole("row", { name: /^paid .*1 33 %$/ }).waitFor();
  await funnel.getByRole("progressbar", { name: "arrived: 100 %" }).waitFor();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other
    .getByRole("region", { name: "Funnel" })
    .getByRole("row", { name: /^paid .*1 33 %$/ })
    .waitFor();
  expect(await violationsOf(other)).toEqual([]);
  expect(problems).toEqual([]);
});

for (const { name, options } of LOOKS) {
  browserTest(`[AD30] charts and long names are accessible and fit: ${name}`, async () => {
    const { page } = await open("/admin", options);
    for (const path of ["/admin", "/admin/analytics", "/admin/analytics?view=events"]) {
      await page.goto(platform.url + path);
      await page.locator("canvas").first().waitFor();
      expect({ path, violations: await violationsOf(page) }).toEqual({ path, violations: [] });
      expect({ path, overflow: await overflowOf(page) }).toEqual({ path, overflow: 0 });
    }
  });
}

browserTest("[AD78] ? lists the keys, / searches, and Escape closes both", async () => {
  const { page } = await open("/admin");
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keys" });
  await keys.getByText("Search tables, users, files and pages").waitFor();
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "detached" });
  await page.keyboard.press("/");
  await page.getByRole("dialog").getByRole("textbox", { name: "Search" }).fill("aud");
  await page.getByRole("dialog").getByText("Audit").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
});

browserTest("[AD78] an address without a page says so", async () => {
  const { page } = await open("/admin/nothing/here");
  await page.getByRole("heading", { level: 1, name: "Not found" }).waitFor();
  expect(await page.title()).toBe("Not found");
  await page.getByRole("navigation").getByRole("link", { name: "Tables" }).click();
  await page.getByRole("heading", { level: 1, name: "Tables" }).waitFor();
});
