import { afterAll, beforeAll, test } from "bun:test";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { browserProgram, missingBrowser } from "./chromium.ts";

// A real Chromium for tests. One starts per test file, in a fifth of a second once it is unpacked:
//
//   const { browserTest, openProfile } = testBrowser();
//   browserTest("[XX1] …", async () => {
//     const { page, problems } = await openProfile();
//     await page.goto(platform.url);
//     await page.getByRole("button", { name: "Sign in" }).click();
//     expect(problems).toEqual([]);
//   });
//
// Code for the page is text (`page.evaluate("document.title")`), or a module that the server under test serves.

const START_TIMEOUT_MS = 60_000;
const ACTION_TIMEOUT_MS = 10_000;

/** This machine by a name: a page over plain HTTP, where browsers withhold what is for secure pages only, such as locks. */
export const INSECURE_HOST = "in-the-lan.test";

const ARGUMENTS = [
  // Test machines run as root, for which Chromium has no sandbox.
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  // Nothing but the server under test is reached.
  `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1 , MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost`,
];

/** A user's own browser: its tabs share storage and cookies, and nothing with other profiles. */
export interface Profile {
  context: BrowserContext;
  /** Its first tab; `context.newPage()` opens another one. */
  page: Page;
  /** What went wrong in its tabs: errors that nothing caught, and those on the console. */
  problems: string[];
}

export interface TestBrowser {
  /** `test`, skipped with a note on systems without a browser. */
  browserTest: (name: string, run: () => Promise<void>, timeoutMs?: number) => void;
  /** Closed with the browser, at the end of the test file. */
  openProfile(options?: BrowserContextOptions): Promise<Profile>;
}

/** Starts a browser for the tests of this file, and closes it after the last one. Called at the top of a test file. */
export function testBrowser(): TestBrowser {
  let browser: Browser | null = null;
  beforeAll(async () => {
    if (missingBrowser !== null) return console.warn(`note: browser tests are skipped: ${missingBrowser}`);
    const { path, env } = await browserProgram();
    browser = await chromium.launch({
      executablePath: path,
      args: ARGUMENTS,
      env: { ...process.env, ...env },
      timeout: START_TIMEOUT_MS,
    });
  }, START_TIMEOUT_MS);
  // The browser ends by itself when the pipe to a killed test run closes.
  afterAll(async () => browser?.close());
  return {
    browserTest: missingBrowser === null ? test : test.skip,
    async openProfile(options = {}) {
      if (browser === null) throw new Error("The browser has not been started");
      const context = await browser.newContext(options);
      context.setDefaultTimeout(ACTION_TIMEOUT_MS);
      const problems: string[] = [];
      context.on("weberror", (error) => problems.push(String(error.error())));
      context.on("console", (message) => {
        if (message.type() === "error") problems.push(message.text());
      });
      return { context, page: await context.newPage(), problems };
    },
  };
}
