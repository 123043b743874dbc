import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { openDashboard } from "../support/dashboard.ts";
import { signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";

const SCOPED = "a-key-of-at-least-32-characters-123";
const CONFIG = `{
  serviceKeys: { reader: { key: "${SCOPED}", scopes: ["*:*:*:read"] } },
  cron: { nightly: { schedule: "0 3 * * *", run: () => {} } },
}`;

/** Code of pages. */
const CODE = /\/chunk-[^/]*\.js$/;

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

browserTest("[AD155] the search runs schedules and backups, and disables and enables users", async () => {
  const { id } = await signIn(platform, { email: "ann@example.com" });
  const { page } = await openDashboard(browser, platform, "/admin");
  await page.getByRole("heading", { level: 1 }).waitFor();
  const command = async (words: string, name: string): Promise<void> => {
    await page.keyboard.press("/");
    const search = page.getByRole("dialog").getByRole("textbox", { name: "Search" });
    await search.waitFor();
    expect(await page.getByText("Commands").count()).toBe(0);
    await search.fill(words);
    await page.getByText(name, { exact: true }).waitFor();
    await page.getByText(name, { exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  await command("night", "Run nightly now");
  await page.getByText("nightly runs").waitFor();
  const { body: jobs } = await platform.service.get<{ jobs: { name: string }[] }>("/api/admin/jobs?name=cron:nightly");
  expect(jobs.jobs).toHaveLength(1);
  await command("back up", "Back up now");
  await page.getByText("The backup is made").waitFor();
  const isDisabled = async (): Promise<boolean> =>
    (await platform.service.get<{ disabled: boolean }>(`/api/auth/admin/users/${id}`)).body.disabled;
  await command("ann@", "Disable ann@example.com");
  await until("the user is disabled", isDisabled);
  await command("ann@", "Enable ann@example.com");
  await until("the user is enabled", async () => !(await isDisabled()));
});

browserTest("[AD155] a key that may only read finds no command", async () => {
  const { page } = await openDashboard(browser, platform, "/admin", { key: SCOPED });
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.keyboard.press("/");
  const search = page.getByRole("dialog").getByRole("textbox", { name: "Search" });
  for (const words of ["night", "back up", "ann@"]) {
    await search.fill(words);
    await page.waitForLoadState("networkidle");
    expect(await page.getByText(/^(?:Run|Back up|Disable|Enable) /).count()).toBe(0);
  }
});

browserTest(
  "[AD78] the search is loaded when it is first opened; what does not load is said, and opens after a reload",
  async () => {
    const { page } = await openDashboard(browser, platform, "/admin");
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.waitForLoadState("networkidle");
    await page.route(CODE, (route) => route.abort());
    await page.keyboard.press("/");
    await page.getByText("The search could not be loaded").waitFor();
    expect(await page.getByRole("heading", { level: 1, name: "Overview" }).count()).toBe(1);
    await page.unroute(CODE);
    await page.reload();
    await page.getByRole("button", { name: "Search" }).first().click();
    await page.getByRole("dialog").getByRole("textbox", { name: "Search" }).fill("setti");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  },
);

browserTest(
  "[AD170] where the first request fails, the reason, its id and a retry are shown, and the retry opens the page",
  async () => {
    const { page } = await browser.openProfile();
    const session = "**/api/admin/session";
    await page.route(session, (route) =>
      route.fulfill({
        status: 503,
        headers: { "x-request-id": "one-request" },
        json: { code: 503, message: "Nobody has the lease" },
      }),
    );
    await page.goto(`${platform.url}/admin`);
    await page.getByText("Nobody has the lease").waitFor();
    await page.getByText("Request one-request").waitFor();
    await page.unroute(session);
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
  },
);
