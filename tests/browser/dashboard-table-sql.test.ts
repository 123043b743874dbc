/** Tests the SQL page for the tables of namespaces, saved queries, and what is made of a result. */

import { afterAll, beforeAll, expect } from "bun:test";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { testBrowser } from "../support/browser.ts";
import { expectAccessible, LOOKS, openDashboard } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";
import { editorOf, runStatements, writeStatements } from "../support/sql-page.ts";

const READER = "reads-tables-key-0123456789abcdefghijklmnop";
const CONFIG = `{
  databases: {
    shop: { tables: {
      customers: { schema: { name: { type: "string" } } },
      orders: { schema: { customer: { type: "string", references: "customers" }, total: { type: "number" } } },
      notes: {},
    } },
    boards: { instance: true, tables: { cards: { schema: { title: { type: "string" } } } } },
  },
  serviceKeys: { reader: { key: "${READER}", scopes: ["db:*:*:read", "d1:database:*:*"] } },
}`;
const JOIN =
  "SELECT c.name, sum(o.total) AS total FROM customers AS c JOIN orders AS o ON o.customer = c.id GROUP BY c.id ORDER BY c.name";

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const insert = async (path: string, record: JsonObject) => {
    expect((await platform.service.post(`/api/db/${path}`, record)).status).toBe(201);
  };
  const names = { c1: "Ada", c2: "=SUM(A1)", c3: "\u05d0\u05d1\u05d2 ".repeat(40) };
  for (const [id, name] of Object.entries(names)) {
    await insert("shop/tables/customers", { id, name });
    for (const total of [5, 7.5]) await insert("shop/tables/orders", { customer: id, total });
  }
  await insert("boards/b1/tables/cards", { title: "of b1" });
  await insert("boards/b2/tables/cards", { title: "of b2" });
});
afterAll(() => platform.stop());

const open = (path: string, options?: Parameters<typeof openDashboard>[3]) =>
  openDashboard({ openProfile }, platform, path, options);
const cell = (page: Page, text: string) => page.getByRole("gridcell", { name: text, exact: true });

browserTest("[AD160] the tables of a namespace are joined, and nothing is changed", async () => {
  const { page, problems } = await open("/admin/sql?namespace=shop");
  const tables = page.getByRole("region", { name: "Tables of the database" });
  await tables.getByText("orders").waitFor();
  await tables.getByRole("button", { name: "notes" }).click();
  await tables.getByRole("button", { name: /_platform_document/ }).waitFor();
  await writeStatements(page, JOIN);
  await runStatements(page);
  await cell(page, "Ada").waitFor();
  await cell(page, "12.5").first().waitFor();
  expect(problems).toEqual([]);
  await writeStatements(page, "DELETE FROM orders");
  await runStatements(page);
  await page.getByRole("alert").getByText("Only queries of the declared tables").waitFor();
});

browserTest("[AD160] an instance is chosen by the beginning of its id, and stands in the address", async () => {
  const { page } = await open("/admin/sql");
  await page.getByRole("combobox", { name: "Database" }).click();
  await page.getByRole("option", { name: "boards" }).click();
  await page.getByText("Choose an instance").waitFor();
  await page.getByRole("combobox", { name: "Instance" }).fill("b2");
  await page.getByRole("option", { name: "b2" }).click();
  await writeStatements(page, "SELECT title FROM cards");
  await runStatements(page);
  await cell(page, "of b2").waitFor();
  const { searchParams } = new URL(page.url());
  expect([searchParams.get("namespace"), searchParams.get("instance")]).toEqual(["boards", "b2"]);
  await page.reload();
  await editorOf(page).getByText("SELECT title FROM cards").waitFor();
});

browserTest("[AD160] a key with scopes is offered no tables", async () => {
  const { page } = await open("/admin", { key: READER });
  const navigation = page.getByRole("navigation", { name: "Pages" });
  await navigation.getByRole("link", { name: "Tables", exact: true }).waitFor();
  await until("SQL is not in the navigation", async () => {
    return (await navigation.getByRole("link", { name: "SQL", exact: true }).count()) === 0;
  });
  await page.goto(`${platform.url}/admin/sql?namespace=shop`);
  await page.getByText("No databases are declared").waitFor();
});

browserTest("[AD161] a result is a chart of bars or a line, and a CSV file without formulas", async () => {
  const { page, problems } = await open("/admin/sql?namespace=shop");
  await writeStatements(page, JOIN);
  await runStatements(page);
  await page.getByText("3 rows in").waitFor();
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "CSV" }).click();
  const file = await saving;
  expect(file.suggestedFilename()).toBe("result.csv");
  const lines = readFileSync((await file.path()) ?? "", "utf8")
    .trimEnd()
    .split(/\r?\n/);
  expect(lines.slice(0, 3)).toEqual(["name,total", "'=SUM(A1),12.5", "Ada,12.5"]);
  await page.getByText("Chart", { exact: true }).click();
  await page.getByRole("img", { name: "total by name, 3 rows" }).locator("canvas").waitFor();
  await page.getByText("Line", { exact: true }).click();
  await page.getByRole("combobox", { name: "By" }).click();
  await page.getByRole("option", { name: "total" }).click();
  await page.getByRole("img", { name: "total by total, 3 rows" }).locator("canvas").waitFor();
  // A result without numbers has nothing to draw.
  await writeStatements(page, "SELECT name FROM customers");
  await runStatements(page);
  await page.getByRole("columnheader", { name: "name" }).waitFor();
  expect(await page.getByText("Chart", { exact: true }).count()).toBe(0);
  expect(problems).toEqual([]);
});

browserTest("[AD161] a query is saved under a name, found, and removed", async () => {
  const { page } = await open("/admin/sql?namespace=shop");
  await writeStatements(page, JOIN);
  await page.getByRole("button", { name: "Save" }).click();
  const dialog = page.getByRole("dialog", { name: "Save this query in this browser" });
  await dialog.getByRole("textbox", { name: "Name" }).fill("Totals by customer");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.reload();
  await page.getByRole("button", { name: "History" }).click();
  const saved = page.getByRole("region", { name: "Saved" });
  await page.getByRole("textbox", { name: "Search" }).fill("totals");
  await saved.getByRole("button", { name: /^Totals by customer/ }).click();
  await editorOf(page).getByText("sum").first().waitFor();
  await page.getByRole("button", { name: "History" }).click();
  await saved.getByRole("button", { name: "Delete Totals by customer" }).click();
  await saved.waitFor({ state: "detached" });
});

browserTest("[AD161] no saved query makes way for another one", async () => {
  const { page } = await open("/admin/sql?namespace=shop");
  await writeStatements(page, JOIN);
  const button = page.getByRole("button", { name: "Save", exact: true });
  const dialog = page.getByRole("dialog", { name: "Save this query in this browser" });
  const name = dialog.getByRole("textbox", { name: "Name" });
  await button.click();
  await name.fill("query 0");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.evaluate(`for (const key of Object.keys(localStorage)) if (key.startsWith("platform.sql-saved")) {
    const [one] = JSON.parse(localStorage[key]);
    localStorage[key] = JSON.stringify(Array.from({ length: 100 }, (_, n) => ({ ...one, name: "query " + n })));
  }`);
  await page.reload();
  await writeStatements(page, JOIN);
  await button.click();
  await name.fill("one more");
  await dialog.getByText("100 queries are saved: delete one first").waitFor();
  expect(await dialog.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
  // One of the saved ones is still replaced.
  await name.fill("query 7");
  expect(await dialog.getByRole("button", { name: "Save" }).isDisabled()).toBe(false);
});

for (const { name, options } of LOOKS) {
  browserTest(`[AD30] SQL of tables, its plan and its chart are accessible and fit: ${name}`, async () => {
    const { page } = await open("/admin/sql?namespace=shop", options);
    await writeStatements(page, JOIN);
    await runStatements(page);
    await page.getByText("3 rows in").waitFor();
    await expectAccessible(page);
    await page.getByText("Chart", { exact: true }).click();
    await page.locator("canvas").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Plan" }).click();
    await page.getByRole("region", { name: "Plan" }).waitFor();
    await expectAccessible(page);
    await page.goto(`${platform.url}/admin/sql?namespace=boards`);
    await page.getByText("Choose an instance").waitFor();
    await expectAccessible(page);
  });
}
