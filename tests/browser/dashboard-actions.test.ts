import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { openDashboard } from "../support/dashboard.ts";
import { signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";

// What an administrator does in a few clicks, each once.

const CONFIG = `{
  databases: { shared: { tables: { notes: {
    schema: { text: { type: "string" }, ownerId: { type: "string" } },
    access: { read: true, insert: (auth) => auth !== null, update: (auth, record) => record.ownerId === auth?.id },
  } } } },
  auth: { mfa: { totp: true } },
  jobs: { later: { run() {} } },
  routes: (api) => api.post("/later", ({ app }) => app.jobs.enqueue("later", {}, { delay: 3600 }), { access: true }),
}`;

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const open = (path: string) => openDashboard(browser, platform, path);

browserTest("[AD80] the other pages are loaded ahead: a click asks for no code", async () => {
  const { page, problems } = await openDashboard(browser, platform, "/admin/no-page", { isSavingData: false });
  const scripts: string[] = [];
  page.on("response", async (answer) => {
    if (answer.url().endsWith(".js")) scripts.push(await answer.text());
  });
  await page.goto(`${platform.url}/admin`);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  // Of the last page of the navigation, whose code is loaded last.
  await until("all pages are loaded", () => scripts.some((text) => text.includes("has every endpoint of this server")));
  const before = scripts.length;
  for (const name of ["Tables", "Users", "Jobs", "Settings"]) {
    await page.getByRole("navigation").getByRole("link", { name }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
  }
  expect(scripts.length).toBe(before);
  expect(problems).toEqual([]);
});

browserTest("[AD26] a user is invited, and enabled after having been disabled", async () => {
  const { page } = await open("/admin/users");
  await page.getByRole("button", { name: "Insert" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Invite by mail").click();
  await dialog.getByLabel("Email").fill("invited@example.com");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { level: 1, name: "invited@example.com" }).waitFor();
  const id = decodeURIComponent(new URL(page.url()).pathname.split("/").at(-1) ?? "");
  const isDisabled = async () => (await platform.service.get(`/api/auth/admin/users/${id}`)).body["disabled"];
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("button", { name: "Disable" }).waitFor();
  expect(await isDisabled()).toBe(false);
  await page.goto(`${platform.url}/admin/jobs?view=mail`);
  await page.getByText("invited@example.com").first().waitFor();
});

browserTest("[AD27] a job that waits is cancelled", async () => {
  expect((await platform.post("/api/functions/later")).status).toBe(200);
  const { page } = await open("/admin/jobs?state=waiting");
  await page.getByRole("row").filter({ hasText: "later" }).getByRole("button", { name: "Cancel" }).click();
  await page.getByText("No waiting jobs").waitFor();
  const { body } = await platform.service.get<{ jobs: { state: string; error: string }[] }>("/api/admin/jobs");
  expect(body.jobs.find(({ error }) => error === "Cancelled")?.state).toBe("failed");
});

browserTest("[AD25] [AD28] what is changed as somebody else is in the audit log, with who did it", async () => {
  const ann = await signIn(platform);
  await platform.service.post("/api/db/shared/tables/notes", { id: "n1", text: "before", ownerId: ann.id });
  const { page } = await open(`/admin/tables/shared/-/notes?as=${ann.id}`);
  await page.getByRole("gridcell", { name: "before", exact: true }).dblclick();
  await page.getByRole("textbox", { name: "text" }).fill("after");
  await page.keyboard.press("Enter");
  await page.getByRole("gridcell", { name: "after", exact: true }).waitFor();
  await page.goto(`${platform.url}/admin/audit?target=db/shared/notes`);
  const line = page.getByRole("row").filter({ has: page.getByRole("button", { name: /update/ }) });
  expect(await line.textContent()).toContain("root");
  await line.getByRole("button", { name: /update/ }).click();
  await page.getByText('"after"').first().waitFor();
});

browserTest("[AD24] a table goes on following changes after the server was stopped and started", async () => {
  const probe = Bun.serve({ port: 0, fetch: () => new Response() });
  const args = ["--port", String(probe.port)];
  await probe.stop(true);
  const own = await testPlatform({ config: CONFIG, args });
  try {
    await own.service.post("/api/db/shared/tables/notes", { id: "n1", text: "one" });
    const { page } = await openDashboard(browser, own, "/admin/tables/shared/-/notes");
    await page.getByRole("gridcell", { name: "one", exact: true }).waitFor();
    await own.restart();
    await own.service.patch("/api/db/shared/tables/notes/n1", { text: "two" });
    await page.getByRole("gridcell", { name: "two", exact: true }).waitFor({ timeout: 30_000 });
  } finally {
    await own.stop();
  }
});
