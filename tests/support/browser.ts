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

/**
 * Name of this machine, for pages on an insecure origin: over plain HTTP browsers withhold secure-context features, such as
 * locks.
 */
export const INSECURE_HOST = "in-the-lan.test";

const ARGUMENTS = [
  // Test machines run as root, for which Chromium has no sandbox.
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  // Only the server under test is reachable.
  `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1 , MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost`,
];

/** Isolated browser of one user: its tabs share storage and cookies. */
export interface Profile {
  context: BrowserContext;
  /** First tab; `context.newPage()` opens another one. */
  page: Page;
  /** Uncaught errors and console errors of all tabs. */
  problems: string[];
}

export interface TestBrowser {
  /** Defines a test. Skipped with a note on systems without a browser. */
  browserTest: (name: string, run: () => Promise<void>, timeoutMs?: number) => void;
  /** Opens a profile. It is closed with the browser, at the end of the test file. */
  openProfile(options?: BrowserContextOptions): Promise<Profile>;
}

/**
 * Builds the pages that a server from sources serves, unless they exist. A build at the first request would use up the time of
 * the first test, and a timed-out test takes the server and the browser of its file with it.
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
