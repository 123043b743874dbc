/** Tests of the continuous backup in the dashboard. */
import { afterAll, beforeAll, expect } from "bun:test";
import { join } from "node:path";
import { until } from "../http/storage/storage-support.ts";
import { testBrowser } from "../support/browser.ts";
import { inEveryView, openDashboard, overflowOf, violationsOf } from "../support/dashboard.ts";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../support/index.ts";

const SCOPED = "backups-key-0123456789abcdefghijklmnopqrst";
const VIEW = "/admin/settings?view=backups";
const MESSAGES = "/api/db/clubs/chess/tables/messages";

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  const folder = JSON.stringify(join(temporaryDirectory(), "store"));
  platform = await testPlatform({
    config: `{
      databases: { clubs: { instance: true, tables: { messages: { schema: { text: { type: "string" } } } } } },
      serviceKeys: { backups: { key: "${SCOPED}", scopes: ["backups:*:*:*"] } },
      backups: { continuous: { to: { folder: ${folder} }, everyMs: 250, verify: false } },
    }`,
  });
  await add("first");
  await untilStored();
}, 60_000);
afterAll(() => platform.stop());

async function add(text: string): Promise<void> {
  expect((await platform.service.post(MESSAGES, { text })).status).toBe(201);
}

const untilStored = (): Promise<unknown> =>
  until(
    "everything is stored",
    async () => {
      const { body } = await platform.service.get<{ lagMs: number; history: object | null }>(
        "/api/admin/backups/continuous?file=clubs/chess",
      );
      return body.lagMs === 0 && body.history !== undefined && body.history !== null;
    },
    40_000,
  );

const textsOf = async (): Promise<string[]> => {
  const { body } = await platform.service.get<{ items: { text: string }[] }>(`${MESSAGES}?sort=text`);
  return body.items.map(({ text }) => text);
};

/** Returns the local time of the browser, in seconds, as its input takes it. */
const inputTime = (at: number): string => new Date(at).toISOString().slice(0, "2024-05-06T00:00:00".length);

browserTest(
  "[AD156] an instance gets the content of an earlier moment, after a preview of its records",
  async () => {
    // The input has seconds: the moment is the next whole one.
    const moment = Math.ceil(Date.now() / 1000) * 1000;
    await until("the second is over", async () => Date.now() > moment + 1);
    await add("second");
    await add("third");
    await untilStored();
    const { page, problems } = await openDashboard(browser, platform, VIEW, { timezoneId: "UTC" });
    const section = page.getByRole("region", { name: "Restore an instance" });
    await section.getByRole("textbox", { name: "Instance" }).fill("chess");
    await section.getByLabel("Moment, in your time zone").fill(inputTime(moment));
    await section.getByRole("button", { name: "Preview" }).click();
    const counts = section.getByRole("table", { name: "Records then and now" });
    await counts.waitFor({ timeout: 30_000 });
    expect(await counts.getByRole("row").last().getByRole("cell").allTextContents()).toEqual([
      "messages",
      "1",
      "3",
      "−2",
    ]);
    await section.getByRole("img", { name: /^Moments of chess: from .* no gap$/ }).waitFor();
    expect(await textsOf()).toEqual(["first", "second", "third"]);
    await section.getByRole("button", { name: "Restore" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
    await page.getByText(/^chess is as it was at/).waitFor({ timeout: 30_000 });
    expect(await textsOf()).toEqual(["first"]);
    expect(problems).toEqual([]);
  },
  120_000,
);

browserTest("[AD156] a moment before the first says what can be restored", async () => {
  const { page } = await openDashboard(browser, platform, VIEW, { timezoneId: "UTC" });
  const section = page.getByRole("region", { name: "Restore an instance" });
  await section.getByRole("textbox", { name: "Instance" }).fill("chess");
  await section.getByLabel("Moment, in your time zone").fill("2020-01-01T00:00:00");
  await section.getByRole("button", { name: "Preview" }).click();
  await section.getByRole("alert").getByText("before the first moment").waitFor({ timeout: 30_000 });
});

browserTest(
  "[AD157] the line of time, and whether everything is stored, are shown, without a restore for scoped keys",
  async () => {
    const { page, problems } = await openDashboard(browser, platform, VIEW, { key: SCOPED });
    const section = page.getByRole("region", { name: "Continuous backup" });
    await section.getByRole("img", { name: /^Moments that can be restored: from / }).waitFor({ timeout: 30_000 });
    await section.getByText(/^(Everything is stored|Stored but for the last )/).waitFor();
    await section.getByText("Not verified yet").waitFor();
    expect(await page.getByRole("region", { name: "Restore an instance" }).count()).toBe(0);
    await section.getByRole("button", { name: "Verify now" }).click();
    await section.getByText(/^Verified /).waitFor({ timeout: 60_000 });
    expect(problems).toEqual([]);
  },
  120_000,
);

browserTest(
  "[AD30] the continuous backup is accessible and fits",
  async () => {
    await inEveryView(async (options) => {
      const { page, context } = await openDashboard(browser, platform, VIEW, options);
      await page.getByRole("img", { name: /^Moments that can be restored/ }).waitFor({ timeout: 30_000 });
      const section = page.getByRole("region", { name: "Restore an instance" });
      await section.getByRole("textbox", { name: "Instance" }).fill("chess");
      await section.getByLabel("Moment, in your time zone").fill(inputTime(Date.now() + 86_400_000));
      await section.getByRole("button", { name: "Preview" }).click();
      await section.getByRole("table", { name: "Records then and now" }).waitFor({ timeout: 30_000 });
      expect(await violationsOf(page)).toEqual([]);
      expect(await overflowOf(page)).toBe(0);
      const pictures = process.env["PLATFORM_PICTURES"];
      if (pictures !== undefined) {
        const name = `${options.colorScheme}-${options.viewport?.width}.png`;
        await page.screenshot({ path: join(pictures, name), fullPage: true });
      }
      await context.close();
    });
  },
  180_000,
);

browserTest("[AD174] the commands of a restore of the server have the moment that is chosen, in UTC", async () => {
  const { page } = await openDashboard(browser, platform, VIEW, { timezoneId: "Europe/Vienna", key: SCOPED });
  const section = page.getByRole("region", { name: "Restore the server" });
  const commands = section.getByRole("region", { name: "Commands of a restore" });
  await commands.waitFor();
  expect(await commands.textContent()).not.toContain("--at");
  await section.getByLabel("Moment, in your time zone").fill("2026-11-26T15:03:19");
  expect(await commands.textContent()).toContain(" --at 2026-11-26T14:03:19.000Z\n");
  expect(await commands.textContent()).toContain("platform start --drill --data ./restored");
});
