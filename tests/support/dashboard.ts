import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { type Profile, type TestBrowser, testBrowser } from "./browser.ts";
import { SERVICE_KEY, type TestPlatform } from "./platform.ts";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
const SCHEMES = ["light", "dark"] as const;
const WIDTHS = [1440, 360];
/** A server that runs from its sources builds the pages when they are asked for first. */
const FIRST_PAGE_TIMEOUT_MS = 40_000;

interface Violation {
  id: string;
  nodes: { html: string }[];
}

/** What axe finds on a page. The policy of the page has to be bypassed: it allows no such script. */
async function violationsOf(page: Page): Promise<object[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<{ violations: Violation[] }>(
    `axe.run(document, { runOnly: ${JSON.stringify(RULES)} })`,
  );
  return violations.map(({ id, nodes }) => ({ id, at: nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)) }));
}

export interface DashboardBrowser extends TestBrowser {
  /** A browser in which a service key is signed in, at a page. */
  signedIn(path: string, key?: string, options?: Parameters<TestBrowser["openProfile"]>[0]): Promise<Profile>;
  /** A test that these pages are accessible and fit, in light and dark colours, wide and narrow. [AD30] */
  pagesTest(paths: readonly string[]): void;
}

/** A real Chromium for the dashboard of a server. Called at the top of a test file. */
export function testDashboard(platform: () => TestPlatform): DashboardBrowser {
  const browser = testBrowser();
  const signedIn: DashboardBrowser["signedIn"] = async (path, key = SERVICE_KEY, options = {}) => {
    const profile = await browser.openProfile(options);
    const { url } = platform();
    const response = await profile.context.request.post(`${url}/api/admin/session`, { data: { key } });
    expect(response.status()).toBe(204);
    await profile.page.goto(url + path, { timeout: FIRST_PAGE_TIMEOUT_MS });
    return profile;
  };
  return {
    ...browser,
    signedIn,
    pagesTest(paths) {
      for (const colorScheme of SCHEMES) {
        for (const width of WIDTHS) {
          browser.browserTest(`[AD30] the pages are accessible and fit: ${colorScheme}, ${width} px`, async () => {
            const options = { bypassCSP: true, colorScheme, viewport: { width, height: 800 } };
            const { page } = await signedIn("/admin", SERVICE_KEY, options);
            for (const path of paths) {
              await page.goto(platform().url + path);
              await page.getByRole("heading", { level: 1 }).waitFor();
              await page.waitForLoadState("networkidle");
              expect({ path, violations: await violationsOf(page) }).toEqual({ path, violations: [] });
              expect(await page.getByRole("main").count()).toBe(1);
              const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
              expect({ path, overflow: Math.max(0, overflow) }).toEqual({ path, overflow: 0 });
            }
          });
        }
      }
    },
  };
}
