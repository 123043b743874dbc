import { afterAll, beforeAll, test } from "bun:test";
import { fileURLToPath } from "node:url";
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
const BUILD_TIMEOUT_MS = 180_000;
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

/**
 * Builds what a server from sources serves to pages, unless it is there: built at the first request instead, it would take the time of
 * the first test, and a test that runs out of time takes the server and the browser of its file with it.
 */
async function buildPages(): Promise<void> {
  if (process.env["PLATFORM_EXECUTABLE"] !== undefined) return;
  const script = fileURLToPath(import.meta.resolve("../../scripts/client/build.ts"));
  for (const part of ["module", "dashboard"]) {
    const { exitCode, stderr } = await Bun.$`${process.execPath} ${script} ${part}`.quiet().nothrow();
    if (exitCode !== 0) throw new Error(`The ${part} cannot be built:\n${stderr}`);
  }
}

/** Starts a browser for the tests of this file, and closes it after the last one. Called at the top of a test file. */
export function testBrowser(): TestBrowser {
  let browser: Browser | null = null;
  if (missingBrowser === null) beforeAll(buildPages, BUILD_TIMEOUT_MS);
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
