import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import type { Profile, TestBrowser } from "./browser.ts";
import { SERVICE_KEY, type TestPlatform } from "./platform.ts";

// The dashboard for tests in a browser: signing in, and what holds for every page.

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** The viewports and colours in which every page is looked at. */
export const LOOKS = (["light", "dark"] as const).flatMap((colorScheme) =>
  [1440, 360].map((width) => ({
    name: `${colorScheme}, ${width} px`,
    // axe is brought in by the test: the page's own policy allows no such script.
    options: { bypassCSP: true, colorScheme, viewport: { width, height: 800 } },
  })),
);

/** Opens a page of the dashboard with the rights of a key. */
export async function openDashboard(
  platform: TestPlatform,
  openProfile: TestBrowser["openProfile"],
  path: string,
  { key = SERVICE_KEY, ...options }: { key?: string } & Parameters<TestBrowser["openProfile"]>[0] = {},
): Promise<Profile> {
  // From sources the pages are built when they are asked for, which takes longer than a browser waits.
  await platform.get("/admin");
  const profile = await openProfile(options);
  const response = await profile.context.request.post(`${platform.url}/api/admin/session`, { data: { key } });
  expect(response.status()).toBe(204);
  await profile.page.goto(platform.url + path);
  return profile;
}

/** Fails where axe finds something, the page has not one `main`, or is wider than the window. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
    `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })`,
  );
  expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html.slice(0, 300)])).toEqual([]);
  expect(await page.getByRole("main").count()).toBe(1);
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
}
