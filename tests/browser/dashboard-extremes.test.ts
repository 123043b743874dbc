import { afterAll, beforeAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import { testBrowser } from "../support/browser.ts";
import { openDashboard } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

// Large values, texts that run from right to left, a browser that is offline, and files of other programs.

const CONFIG = `{
  databases: { shared: { tables: {
    large: { schema: { text: { type: "string" }, extra: { type: "json" } } },
    notes: { schema: { text: { type: "string" }, amount: { type: "integer" }, extra: { type: "json" } } },
  } } },
}`;
const T = "/api/db/shared/tables";
const LARGE = { count: 30, characters: 400_000 };
const ARABIC = "مرحبا بالعالم، هذا نص طويل باللغة العربية (اختبار).";

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const open = (table: string) => openDashboard(browser, platform, `/admin/tables/shared/-/${table}`);
const cell = (page: Page, name: string) => page.getByRole("gridcell", { name, exact: true });

browserTest("[AD23] records that are more than the server sends at once are shown, a few at a time", async () => {
  const extra = { text: "x".repeat(LARGE.characters) };
  for (let n = 0; n < LARGE.count; n++) {
    const id = `l${String(n).padStart(2, "0")}`;
    expect((await platform.service.post(`${T}/large`, { id, text: `large ${n}`, extra })).status).toBe(201);
  }
  const { page } = await open("large");
  await cell(page, "large 0").waitFor();
  await page.getByText(`shared, ${LARGE.count} records`).waitFor();
  await cell(page, "large 0").focus();
  await page.keyboard.press("Control+End");
  await cell(page, `large ${LARGE.count - 1}`).waitFor();
  expect(await page.getByRole("alert").count()).toBe(0);
});

browserTest(
  "[AD81] a text that runs from right to left is shown from its beginning, in a cell and a form",
  async () => {
    await platform.service.post(`${T}/notes`, { id: "arabic", text: ARABIC });
    const { page } = await open("notes");
    const shown = cell(page, ARABIC);
    await shown.waitFor();
    // Where the text does not fit, its end is left out.
    const letter = await page.evaluate<{ left: number; right: number; cellLeft: number; cellRight: number }>(`(() => {
    const cell = document.querySelector('[data-row="0"][data-column="1"]');
    const range = document.createRange();
    range.setStart(cell.firstChild, 0);
    range.setEnd(cell.firstChild, 1);
    const [letter, box] = [range.getBoundingClientRect(), cell.getBoundingClientRect()];
    return { left: letter.left, right: letter.right, cellLeft: box.left, cellRight: box.right };
  })()`);
    expect(letter.left).toBeGreaterThan(letter.cellLeft);
    expect(letter.right).toBeLessThan(letter.cellRight);
    await cell(page, "arabic").click();
    await page.getByRole("dialog").getByLabel("text", { exact: true }).focus();
    expect(await page.evaluate<string>("getComputedStyle(document.activeElement).unicodeBidi")).toBe("plaintext");
  },
);

browserTest("[AD75] a browser that is offline says so, and what was typed stays and can be saved again", async () => {
  await platform.service.post(`${T}/notes`, { id: "offline", text: "before" });
  const { page, context } = await open("notes");
  await cell(page, "before").dblclick();
  const editor = page.getByRole("textbox", { name: "text" });
  await editor.fill("typed offline");
  await context.setOffline(true);
  await page.keyboard.press("Enter");
  await page.getByText("Cannot reach").waitFor();
  await page.getByText("The server does not answer").waitFor();
  expect(await editor.inputValue()).toBe("typed offline");
  await context.setOffline(false);
  await page.getByText("The server does not answer").waitFor({ state: "detached" });
  await editor.press("Enter");
  await cell(page, "typed offline").waitFor();
  expect((await platform.service.get(`${T}/notes/offline`)).body["text"]).toBe("typed offline");
});

browserTest("[AD60] a CSV file with semicolons is refused, and no column is left out, whatever its name", async () => {
  const { page } = await open("notes");
  await page.getByRole("button", { name: "Import and export" }).click();
  await page.getByRole("menuitem", { name: "Import a file" }).click();
  const choose = (text: string) =>
    page.locator("input[type=file]").setInputFiles({ name: "a.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  const dialog = page.getByRole("dialog");
  await choose("id;text;amount\nc1;x;1\n");
  await dialog.getByText("The first line has semicolons between its names: save the file with commas").waitFor();
  await choose("id,__proto__,constructor\nc1,one,two\n");
  await dialog.getByText("The table has no field __proto__, constructor").waitFor();
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog.getByText("0 records of the file are in notes.").waitFor();
  expect((await platform.service.get(`${T}/notes/c1`)).status).toBe(404);
});

browserTest("[AD61] a condition that is there already is not added again", async () => {
  const { page } = await open("notes");
  for (let n = 0; n < 2; n++) {
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByRole("textbox", { name: "Value" }).fill("arabic");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("button", { name: "Apply" }).waitFor({ state: "detached" });
  }
  expect(await page.getByRole("button", { name: /^Remove the condition/ }).count()).toBe(1);
});
