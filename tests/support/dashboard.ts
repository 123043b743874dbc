import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { BrowserContextOptions, Page } from "playwright-core";
import type { Profile, TestBrowser } from "./browser.ts";
import { SERVICE_KEY, type TestPlatform } from "./platform.ts";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

interface DashboardOptions {
  key?: string;
  /** Disables preloading of other pages' code, so that a page is idle once it is shown. */
  isSavingData?: boolean;
}

/** Opens a browser in which an administrator is signed in, at a page such as `/admin/users`. */
export async function openDashboard(
  { openProfile }: Pick<TestBrowser, "openProfile">,
  platform: Pick<TestPlatform, "url">,
  path: string,
  { key = SERVICE_KEY, isSavingData = true, ...options }: BrowserContextOptions & DashboardOptions = {},
): Promise<Profile> {
  const profile = await openProfile(options);
  if (isSavingData) {
    await profile.context.addInitScript(
      "Object.defineProperty(navigator, 'connection', { value: { saveData: true } })",
    );
  }
  const response = await profile.context.request.post(`${platform.url}/api/admin/session`, { data: { key } });
  if (response.status() !== 204) throw new Error(`The key does not sign in: ${await response.text()}`);
  await profile.page.goto(platform.url + path);
  return profile;
}

interface Violation {
  id: string;
  nodes: { html: string }[];
}

/** Returns axe's violations of WCAG 2.2 AA. Open the page with `bypassCSP`: its content security policy blocks such scripts. */
export async function violationsOf(page: Page): Promise<object[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<{ violations: Violation[] }>(
    `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })`,
  );
  return violations.map(({ id, nodes }) => ({ id, at: nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)) }));
}

/** Returns how many pixels the page is wider than the window. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate<number>("Math.max(0, document.documentElement.scrollWidth - innerWidth)");

/** Runs `look` in light and dark mode, on a desktop and on a phone. */
export async function inEveryView(look: (options: BrowserContextOptions) => Promise<void>): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [1440, 360]) await look({ bypassCSP: true, colorScheme, viewport: { width, height: 800 } });
  }
}

/** Fails if axe finds a violation, the page does not have exactly one `main`, or is wider than the window. */
export async function expectAccessible(page: Page): Promise<void> {
  expect(await violationsOf(page)).toEqual([]);
  expect(await page.getByRole("main").count()).toBe(1);
  expect(await overflowOf(page)).toBe(0);
}

/** Colour schemes and viewports in which every page is tested. */
export const LOOKS = (["light", "dark"] as const).flatMap((colorScheme) =>
  [1440, 360].map((width) => ({
    name: `${colorScheme}, ${width} px`,
    options: { bypassCSP: true, colorScheme, viewport: { width, height: 800 } },
  })),
);

/** Expects each of these pages to be accessible and to fit, in every view. [AD30] */
export const expectGoodPages = (
  browser: Pick<TestBrowser, "openProfile">,
  platform: Pick<TestPlatform, "url">,
  paths: readonly string[],
): Promise<void> =>
  inEveryView(async (options) => {
    const { page } = await openDashboard(browser, platform, "/admin", options);
    for (const path of paths) {
      await page.goto(platform.url + path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("networkidle");
      await expectAccessible(page);
    }
  });
