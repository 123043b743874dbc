import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

// What the browser tests rely on.

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ site: { directory: "." } }`,
    files: { "index.html": "<!doctype html><title>Here</title><h1>Hello</h1>" },
  });
});
afterAll(() => platform.stop());

browserTest("a browser shows the server's page; tabs of a profile share storage, profiles do not", async () => {
  const { context, page, problems } = await openProfile();
  await page.goto(platform.url);
  expect(await page.getByRole("heading").textContent()).toBe("Hello");
  await page.evaluate('localStorage.setItem("name", "Ann")');
  const second = await context.newPage();
  await second.goto(platform.url);
  expect(await second.evaluate('localStorage.getItem("name")')).toBe("Ann");
  const other = await openProfile();
  await other.page.goto(platform.url);
  expect(await other.page.evaluate('localStorage.getItem("name")')).toBeNull();
  expect(problems).toEqual([]);
});

browserTest("it has what the client uses, reaches nothing else, and can be offline", async () => {
  const { context, page, problems } = await openProfile();
  await page.goto(platform.url);
  const names = ["fetch", "WebSocket", "indexedDB", "BroadcastChannel", "crypto"];
  expect(await page.evaluate(`${JSON.stringify(names)}.filter((name) => !(name in globalThis))`)).toEqual([]);
  const fetched = (url: string) =>
    page.evaluate(`fetch(${JSON.stringify(url)}).then((answer) => answer.status, () => 0)`);
  expect(await fetched("/")).toBe(200);
  expect(await fetched("http://example.com/")).toBe(0);
  await context.setOffline(true);
  expect(await fetched("/")).toBe(0);
  await context.setOffline(false);
  expect(await fetched("/")).toBe(200);
  expect(problems.filter((text) => !text.includes("net::ERR_"))).toEqual([]);
});
