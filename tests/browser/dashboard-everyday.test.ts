import { afterAll, beforeAll, expect, setDefaultTimeout } from "bun:test";
import type { Page } from "playwright-core";
import { testBrowser } from "../support/browser.ts";
import { expectGoodPages, openDashboard } from "../support/dashboard.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";

const CONFIG = `{
  databases: { shared: { tables: {
    authors: { schema: { name: { type: "string" } }, access: { read: true } },
    editions: { schema: { title: { type: "string" }, code: { type: "string" } }, display: "code" },
    posts: {
      schema: {
        title: { type: "string", required: true }, due: { type: "datetime" },
        author: { type: "string", references: "authors" }, edition: { type: "string", references: "editions" },
      },
      access: { read: true },
    },
  } } },
  storage: { buckets: { files: {} } },
  cron: { nightly: { schedule: "30 3 * * *", run({ log }) { log.info("the nightly run ran") } } },
}`;
const T = "/api/db/shared/tables";
/** Timeout of tests that open many pages; the first page is built when it is asked for. */
const LONG_MS = 200_000;
setDefaultTimeout(LONG_MS);

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform, { email: "ann@example.com" });
  await platform.service.post(`${T}/authors/batch`, { inserts: [{ id: "a1", name: "Ann Writer" }, { id: "a2" }] });
  await platform.service.post(`${T}/editions`, { id: "e1", title: "The first", code: "ED-1" });
  await platform.service.post(`${T}/posts/batch`, {
    inserts: [
      { id: "p1", title: "One", author: "a1", due: "2026-01-31T12:00:00Z", edition: "e1" },
      { id: "p2", title: "Two", author: "a2" },
      { id: "p3", title: "Three" },
    ],
  });
  const form = new FormData();
  form.append("key", "folder/notes.txt");
  form.append("file", new Blob(["Notes of a film"], { type: "text/plain" }), "file");
  expect((await platform.service.fetch("/api/storage/files/upload", { method: "POST", body: form })).status).toBe(201);
});
afterAll(() => platform.stop());

const open = (path: string) => openDashboard(browser, platform, path);
const cell = (page: Page, row: string, text: string) =>
  page.getByRole("row").filter({ hasText: row }).getByRole("gridcell").filter({ hasText: text });

browserTest(
  "[AD110] a reference is shown as what its record is called, and as its id where that has no name",
  async () => {
    const { page, problems } = await open("/admin/tables/shared/-/posts");
    await cell(page, "One", "Ann Writer").waitFor();
    expect(await cell(page, "One", "Ann Writer").locator("[title=a1]").count()).toBe(1);
    await cell(page, "Two", "a2").waitFor();
    // The editor has the id, which is what is stored.
    await cell(page, "One", "Ann Writer").dblclick();
    expect(await page.getByRole("textbox", { name: "author" }).inputValue()).toBe("a1");
    expect(problems).toEqual([]);
  },
);

browserTest("[AD162] the declared field titles records, and the audit log names them by it", async () => {
  const { page, problems } = await open("/admin/tables/shared/-/posts");
  await cell(page, "One", "ED-1").locator("[title=e1]").waitFor();
  await page.locator("[title='2026-01-31T12:00:00.000Z']").waitFor();
  await platform.service.post(`${T}/editions`, { id: "e2", title: "Gone", code: "ED-2" });
  await platform.service.delete(`${T}/editions/e2`);
  await page.goto(`${platform.url}/admin/audit?target=db/shared/editions`);
  // The record that is gone stays as it was written.
  await page.getByText("db/shared/editions/e2").first().waitFor();
  const named = page.getByRole("link", { name: "ED-1", exact: true });
  expect(await named.getAttribute("title")).toBe("db/shared/editions/e1");
  await named.click();
  await page.getByRole("dialog").getByRole("textbox", { name: "code" }).waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD111] another table of the namespace is a choice on the page of a table", async () => {
  const { page } = await open("/admin/tables/shared/-/posts");
  await page.getByRole("combobox", { name: "Table" }).click();
  await page.getByRole("option", { name: "authors" }).click();
  await page.waitForURL("**/admin/tables/shared/-/authors");
  await page.getByRole("heading", { level: 1, name: "authors" }).waitFor();
});

browserTest("[AD112] a time is picked in a calendar, and is stored in UTC", async () => {
  const { page } = await open("/admin/tables/shared/-/posts?record=p2");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Pick due" }).waitFor();
  await dialog.locator("input[type=datetime-local]").fill("2026-02-01T08:30:00");
  const expected = await page.evaluate<string>("new Date('2026-02-01T08:30:00').toISOString()");
  expect(await dialog.getByRole("textbox", { name: "due" }).inputValue()).toBe(expected);
  await dialog.getByRole("button", { name: "Save" }).click();
  await until("it is saved", async () => (await platform.service.get(`${T}/posts/p2`)).body["due"] === expected);
});

browserTest("[AD113] the navigation has no area of which the config declares nothing", async () => {
  const { page } = await open("/admin");
  const navigation = page.getByRole("navigation", { name: "Pages" });
  await navigation.getByRole("link", { name: "Files" }).waitFor();
  for (const name of ["Key-value", "Vectors", "Rooms"]) {
    await navigation.getByRole("link", { name, exact: true }).waitFor({ state: "detached" });
  }
  // Tables are queried by SQL too, with the root key.
  for (const name of ["Overview", "Tables", "SQL", "Users", "Jobs", "Logs", "Audit", "Settings"]) {
    expect([name, await navigation.getByRole("link", { name, exact: true }).count()]).toEqual([name, 1]);
  }
});

browserTest(
  "[AD114, AD117] a schedule is run at once, and an entry of Jobs, Files and Audit opens by a click anywhere in its row",
  async () => {
    const { page } = await open("/admin/jobs?view=schedules");
    await page.getByRole("button", { name: "Run now" }).click();
    await page.goto(`${platform.url}/admin/jobs`);
    const job = page.getByRole("row").filter({ hasText: "cron:nightly" }).first();
    await job.getByRole("cell").nth(2).click();
    await page.getByText("scheduledAt").waitFor();
    await job.getByRole("cell").nth(2).click();
    await page.getByText("scheduledAt").waitFor({ state: "detached" });

    await page.goto(`${platform.url}/admin/files?bucket=files`);
    const row = (name: string) => page.getByRole("row").filter({ hasText: name });
    await row("folder").getByRole("cell").last().click();
    await row("notes.txt").getByRole("cell").last().click();
    await page.getByText("Notes of a film").waitFor();

    await page.goto(`${platform.url}/admin/audit`);
    const entry = page.getByRole("row").nth(1);
    await entry.getByRole("cell").first().click();
    await page.getByText(/^Request /).waitFor();
  },
);

browserTest(
  "[AD115] the audit log has the addresses of users beside their ids, and is narrowed to a time, as the log is",
  async () => {
    expect((await platform.service.post("/api/admin/schedules/cron:nightly/run", undefined)).status).toBe(200);
    await platform.service.patch(`/api/auth/admin/users/${ann.id}`, { displayName: "Ann" });
    const { page } = await open("/admin/audit");
    await page.getByRole("link", { name: "ann@example.com" }).first().waitFor();
    for (const path of ["/admin/audit", "/admin/logs"]) {
      await page.goto(platform.url + path);
      await page.getByRole("combobox", { name: "Time" }).click();
      await page.getByRole("option", { name: "Last hour" }).click();
      await page.waitForURL("**since=1h**");
      await page.getByRole("row").nth(1).waitFor();
    }
  },
);

browserTest("[AD116] an import that ended early goes on where it ended, with the file as it is then", async () => {
  const { page } = await open("/admin/tables/shared/-/posts");
  const dialog = page.getByRole("dialog");
  const choose = async (text: string) =>
    page
      .locator("input[type=file]")
      .setInputFiles({ name: "posts.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  const rows = Array.from({ length: 600 }, (_, index) => `Imported ${index}`);
  await page.getByRole("button", { name: "Import and export" }).click();
  await page.getByRole("menuitem", { name: "Import a file" }).click();
  await choose(["title,due", ...rows.map((title, at) => `${title},${at === 550 ? "never" : ""}`)].join("\n"));
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog.getByText("500 records of the file are in posts.").waitFor();
  // Pressed again as it is, and again when it is mended.
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog.getByText("500 records of the file are in posts.").waitFor();
  await choose(["title,due", ...rows.map((title) => `${title},`)].join("\n"));
  expect(await dialog.getByRole("checkbox", { name: /^Leave out the first 500 records/ }).isChecked()).toBe(true);
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog.getByText("600 records imported into posts").waitFor();
  const filter = '[["title","startsWith","Imported "]]';
  expect((await platform.service.get<{ total: number }>(`${T}/posts/count`, { query: { filter } })).body.total).toBe(
    600,
  );
});

browserTest("[AD30] these pages are accessible and fit, in light and dark, on a desk and a phone", () =>
  expectGoodPages(browser, platform, [
    "/admin/tables/shared/-/posts",
    "/admin/tables/shared/-/posts?record=p1",
    "/admin/audit?since=1h",
    "/admin/logs?since=1h",
    "/admin/jobs?view=schedules",
  ]),
);
