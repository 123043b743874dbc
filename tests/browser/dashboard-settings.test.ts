import { afterAll, beforeAll, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { testBrowser } from "../support/browser.ts";
import { inEveryView, openDashboard, overflowOf, violationsOf } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

const SYSTEM = "system-key-0123456789abcdefghijklmnopqrstuv";
const SECRET = "a-secret-of-the-config-0123456789";
const CONFIG = `{
  databases: {
    shared: {
      tables: {
        films: { schema: { title: { type: "string" } } },
        reviews: { schema: { film: { type: "string", references: "films" }, ${fields()} } },
      },
    },
    clubs: { instance: true, tables: { messages: { schema: { text: { type: "string" } } } } },
  },
  storage: { buckets: { posters: { quota: { total: 1000000, perUser: 500000 } } } },
  auth: { captcha: { provider: "turnstile", siteKey: "site", secretKey: "${SECRET}" } },
  serviceKeys: { system: { key: "${SYSTEM}", scopes: ["system:*:*:read", "backups:*:*:read"] } },
}`;

function fields(): string {
  return Array.from({ length: 30 }, (_, n) => `field${n}: { type: "integer" }`).join(", ");
}

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const open = (path: string, options: Parameters<typeof openDashboard>[3] = {}) =>
  openDashboard(browser, platform, path, options);

browserTest("[AD72] the config as it runs has keys with their last use, quotas, and no secret", async () => {
  await platform.withKey(SYSTEM).get("/api/admin/resources");
  const { page, problems } = await open("/admin/settings");
  await page
    .getByRole("region", { name: "Service keys" })
    .getByText(/Last used/)
    .waitFor();
  await page.getByText("Bucket posters: 1.00 MB in all, 500 kB for each user").waitFor();
  await page.getByText('"secretKey": "[hidden]"').waitFor();
  const content = await page.content();
  for (const secret of [SYSTEM, SECRET]) expect(content).not.toContain(secret);
  expect(problems).toEqual([]);
});

browserTest("[AD73] the schema is a diagram with its references, moved by keys, and a text", async () => {
  const { page, problems } = await open("/admin/settings?view=schema");
  const diagram = page.getByRole("application", { name: "The tables of shared" });
  await diagram.getByText("→ films").waitFor();
  await diagram.getByText("and 20 more").waitFor();
  const films = diagram.locator(".react-flow__node[data-id=films]");
  const before = await films.boundingBox();
  await films.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowDown");
  const after = await films.boundingBox();
  expect(after?.y ?? 0).toBeGreaterThan(before?.y ?? 0);
  await page.getByRole("table", { name: "Fields of reviews" }).getByText("refers to films").waitFor();
  await page.getByRole("combobox", { name: "Namespace" }).click();
  await page.getByRole("option", { name: "clubs" }).click();
  await page.getByRole("application", { name: "The tables of clubs" }).waitFor();
  expect(page.url()).toContain("namespace=clubs");
  expect(problems).toEqual([]);
});

browserTest(
  "[AD74] a backup is made, verified and downloaded",
  async () => {
    const { page } = await open("/admin/settings?view=backups");
    await page.getByText("No backups yet").waitFor();
    await page.getByRole("button", { name: "Make a backup" }).click();
    const table = page.getByRole("table", { name: "Backups" });
    await table.getByRole("button", { name: "Verify" }).click({ timeout: 60_000 });
    await page.getByText(/^Verification done/).waitFor({ timeout: 60_000 });
    const download = page.waitForEvent("download");
    await table.getByRole("button", { name: "Download" }).click();
    const path = await (await download).path();
    expect(readFileSync(resolve(path)).byteLength).toBeGreaterThan(1_000);
  },
  180_000,
);

browserTest("[AD74] a key that may only read backups has no button that makes or verifies one", async () => {
  const { page } = await open("/admin/settings?view=backups", { key: SYSTEM });
  await page.getByRole("region", { name: "Backups" }).waitFor();
  for (const name of ["Make a backup", "Verify"]) expect(await page.getByRole("button", { name }).count()).toBe(0);
});

browserTest("[AD30] the parts of the settings are accessible and fit", async () => {
  await inEveryView(async (options) => {
    const { page, context } = await open("/admin/settings", options);
    for (const [view, name] of [
      ["config", "The config as it runs"],
      ["schema", "films"],
      ["backups", "Backups"],
    ] as const) {
      await page.goto(`${platform.url}/admin/settings?view=${view}`);
      await page.getByRole("region", { name, exact: true }).waitFor();
      expect({ view, violations: await violationsOf(page) }).toEqual({ view, violations: [] });
      expect({ view, overflow: await overflowOf(page) }).toEqual({ view, overflow: 0 });
    }
    await context.close();
  });
});

browserTest("[AD76] every page of a drill says that it is one", async () => {
  const drill = await testPlatform({ config: CONFIG, args: ["--drill"] });
  try {
    const { page } = await openDashboard(browser, drill, "/admin");
    for (const path of ["", "/users", "/jobs", "/settings"]) {
      await page.goto(`${drill.url}/admin${path}`);
      await page.getByText("This is a drill").waitFor();
    }
  } finally {
    await drill.stop();
  }
});
