import { afterAll, beforeAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import { testBrowser } from "../support/browser.ts";
import { expectAccessible, LOOKS, openDashboard } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";
import { editorOf, runStatements, writeStatements } from "../support/sql-page.ts";

const ONE_DATABASE = "one-database-key-0123456789abcdefghijklmnop";
const CONFIG = `{
  d1: { reports: {}, archive: {} },
  serviceKeys: { one: { key: "${ONE_DATABASE}", scopes: ["d1:database:archive:*"] } },
}`;
const FILMS = 20_000;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
const sql = (query: string, database = "reports") =>
  platform.service.post<{ results: Record<string, unknown>[] }>(`/api/d1/${database}`, { query });
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  await sql("CREATE TABLE films (id INTEGER PRIMARY KEY, title TEXT, year INTEGER)");
  const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${FILMS})`;
  await sql(`${numbers} INSERT INTO films SELECT i, 'Film ' || i, 1920 + i % 100 FROM n`);
});
afterAll(() => platform.stop());

const open = (path: string, options?: Parameters<typeof openDashboard>[3]) =>
  openDashboard({ openProfile }, platform, path, options);
const grid = (page: Page) => page.getByRole("grid", { name: "Result" });
const cell = (page: Page, text: string) => page.getByRole("gridcell", { name: text, exact: true });

browserTest("[AD43] a statement runs with Ctrl+Enter, and its rows are a grid of any size", async () => {
  const { page, problems } = await open("/admin/sql");
  await page.getByRole("heading", { level: 1, name: "SQL" }).waitFor();
  expect(await page.title()).toBe("SQL");
  await writeStatements(page, "SELECT id, title, NULL AS missing FROM films ORDER BY id");
  await page.keyboard.press("Control+Enter");
  await page.getByText("20,000 rows in").waitFor();
  expect(await grid(page).getAttribute("aria-rowcount")).toBe(String(FILMS + 1));
  expect(await page.getByRole("row").count()).toBeLessThan(80);
  await page.getByRole("columnheader", { name: "title" }).waitFor();
  await cell(page, "NULL").first().waitFor();
  await cell(page, "1").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.press("ArrowLeft");
  await until("the last row is there", () => cell(page, `Film ${FILMS}`).isVisible());
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "title" }).getByText(`Film ${FILMS}`).waitFor();
  // The policy of the page takes the editor's styles.
  expect(problems).toEqual([]);
});

browserTest(
  "[AD43] several statements run in order up to the first that is refused, whose place is marked",
  async () => {
    const { page } = await open("/admin/sql");
    await writeStatements(
      page,
      "CREATE TABLE notes (text TEXT);\nINSERT INTO notes VALUES (';'), ('b');\nSELECT txt FROM notes;\nDROP TABLE notes",
    );
    await page.getByText("3 writes").waitFor();
    await runStatements(page);
    await page.getByRole("alert").getByText("no such column: txt").waitFor();
    expect(await page.locator(".code-marked").allTextContents()).toEqual(["txt"]);
    expect(await page.getByRole("tab").count()).toBe(3);
    await page.getByRole("tab", { name: /INSERT/ }).click();
    await page.getByText("2 rows changed in").waitFor();
    expect((await sql("SELECT count(*) AS n FROM notes")).body.results).toEqual([{ n: 2 }]);
    // What is selected runs alone.
    await writeStatements(page, "SELECT 1 AS one; SELECT 2 AS two");
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("Shift+End");
    for (let n = 0; n < "; SELECT 2 AS two".length; n++) await page.keyboard.press("Shift+ArrowLeft");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("columnheader", { name: "one" }).waitFor();
    expect(await page.getByRole("tab").count()).toBe(0);
  },
);

browserTest("[AD43] tables and columns are completed, also those that were just made", async () => {
  const { page } = await open("/admin/sql");
  await page.getByRole("region", { name: "Tables of the database" }).getByText("films").waitFor();
  await editorOf(page).click();
  await page.keyboard.type("SELECT * FROM fil");
  await page.getByRole("option", { name: "films" }).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.type(" WHERE films.ti");
  await page.getByRole("option", { name: "title" }).waitFor();
  await page.keyboard.press("Escape");
  await writeStatements(page, "CREATE TABLE directors (surname TEXT)");
  await runStatements(page);
  await page.getByRole("button", { name: "directors" }).click();
  await page.getByRole("button", { name: /surname/ }).click();
  await until("its name is inserted", async () => (await editorOf(page).textContent())?.includes(")surname") === true);
});

browserTest("[AD44] the plan of a statement is a tree, and runs nothing", async () => {
  const { page } = await open("/admin/sql");
  await writeStatements(page, "DELETE FROM films WHERE title IN (SELECT title FROM films WHERE id = 3)");
  await page.getByRole("button", { name: "Plan" }).click();
  const plan = page.getByRole("region", { name: "Plan" });
  await plan.getByText("SCAN films").waitFor();
  await plan.getByText("every row").waitFor();
  await plan.getByText(/SEARCH films USING INTEGER PRIMARY KEY/).waitFor();
  expect((await sql("SELECT count(*) AS n FROM films")).body.results).toEqual([{ n: FILMS }]);
});

browserTest("[AD44] a link fills the editor and runs nothing; the history is kept for each database", async () => {
  const query = "DELETE FROM films WHERE id = 1";
  const { page } = await open(`/admin/sql?database=reports&query=${encodeURIComponent(query)}`);
  await editorOf(page).getByText(query).waitFor();
  await page.getByText("One write").waitFor();
  await page.getByText("No results yet").waitFor();
  expect((await sql("SELECT count(*) AS n FROM films")).body.results).toEqual([{ n: FILMS }]);
  await writeStatements(page, "SELECT 'of the history'");
  await runStatements(page);
  await page.getByText("One row in").waitFor();
  expect(new URL(page.url()).searchParams.get("query")).toContain("of the history");
  await page.reload();
  await writeStatements(page, "");
  await page.getByRole("button", { name: "History" }).click();
  await page
    .getByRole("dialog")
    .getByRole("button", { name: /of the history/ })
    .click();
  await editorOf(page).getByText("SELECT 'of the history'").waitFor();
  await page.goto(`${platform.url}/admin/sql?database=archive`);
  await page.getByRole("button", { name: "History" }).click();
  await page.getByText("Nothing has been run yet").waitFor();
});

browserTest("[AD44] a read that takes long is ended by Cancel", async () => {
  const { page } = await open("/admin/sql");
  await writeStatements(
    page,
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
  );
  await runStatements(page);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("alert").getByText("Cancelled").waitFor();
  await page.getByRole("button", { name: "Run" }).waitFor();
});

browserTest("[AD44] statements that wait do not run after their database or page is left", async () => {
  const { page } = await open("/admin/sql");
  const slow = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) SELECT count(*) FROM n";
  const requests: string[] = [];
  page.on("request", (request) => {
    const { query } = request.method() === "POST" ? request.postDataJSON() : {};
    if (typeof query === "string") requests.push(query);
  });
  await writeStatements(page, `${slow}; CREATE TABLE left_behind (id TEXT)`);
  const asked = page.waitForRequest((request) => request.postData()?.includes("RECURSIVE n") === true);
  await runStatements(page);
  const first = await asked;
  await page.getByRole("combobox", { name: "Database" }).click();
  await page.getByRole("option", { name: "archive" }).click();
  await page.getByText("No results yet").waitFor();
  await until("the statement has ended", async () => first.failure() !== null || (await first.response()) !== null);
  await writeStatements(page, "SELECT 'of archive'");
  await runStatements(page);
  await page.getByText("One row in").waitFor();
  expect(requests.filter((query) => query.includes("left_behind"))).toEqual([]);
});

browserTest("[AD43] a key sees the databases of its scopes, and is refused at others", async () => {
  const { page } = await open("/admin/sql", { key: ONE_DATABASE });
  await page.getByRole("combobox", { name: "Database" }).click();
  expect(await page.getByRole("option").allTextContents()).toEqual(["archive"]);
  await page.getByText(/No tables yet/).waitFor();
  await page.goto(`${platform.url}/admin/sql?database=reports`);
  await writeStatements(page, "SELECT 1");
  await runStatements(page);
  await page.getByRole("alert").getByText("Access denied").first().waitFor();
});

for (const { name, options } of LOOKS) {
  browserTest(`[AD30] the SQL page is accessible and fits: ${name}`, async () => {
    const { page } = await open("/admin/sql", options);
    await writeStatements(
      page,
      "-- words, 'texts' and numbers\nSELECT title, 1.5 AS n FROM films LIMIT 50; DELETE FROM films WHERE id < 0; SELECT 'x' FROM nowhere",
    );
    await expectAccessible(page);
    await runStatements(page);
    await page.getByRole("alert").waitFor();
    await expectAccessible(page);
    await page.getByRole("tab").first().click();
    await grid(page).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Plan" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByRole("tab").first().click();
    await page.getByText("SCAN films").waitFor();
    await expectAccessible(page);
  });
}
