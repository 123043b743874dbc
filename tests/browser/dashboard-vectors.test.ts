import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { expectGoodPages, openDashboard } from "../support/dashboard.ts";
import { SERVICE_KEY, type TestPlatform, testPlatform, until } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const COUNT = 120;
const HOSTILE = '<img src=x onerror=ran=1> "quoted" & long '.repeat(5).trim();
/** Timeout of tests that open many pages. */
const LONG_MS = 200_000;

let platform: TestPlatform;
const browser = testBrowser();
const { browserTest } = browser;
const signedIn = (path: string, key = SERVICE_KEY) => openDashboard(browser, platform, path, { key });

const act = async (action: object) => (await platform.service.post("/api/vectorize/films", { ...action })).body;
const stored = async (id: string) =>
  ((await act({ action: "getByIds", ids: [id] }))["vectors"] as { values: number[]; metadata: object }[])[0] ?? null;

beforeAll(async () => {
  platform = await testPlatform({
    config: {
      vectorize: { films: { dimensions: 3 }, none: { dimensions: 2, metric: "euclidean" } },
      serviceKeys: { reader: { key: READER, scopes: ["vectorize:index:films:read"] } },
    },
  });
  const vectors = Array.from({ length: COUNT }, (_, n) => ({
    id: `film-${String(n).padStart(3, "0")}`,
    values: [Math.cos(n / 50), Math.sin(n / 50), 0.1],
    metadata: { title: `Film ${n}`, year: 1950 + n },
  }));
  await act({ action: "upsert", vectors: [...vectors, { id: HOSTILE, values: [-1, -1, 0], metadata: {} }] });
});
afterAll(() => platform.stop());

browserTest("[AD41] indexes show what they hold, and ids are found by their beginning, page by page", async () => {
  const { page, problems } = await signedIn("/admin/vectors");
  await page.getByRole("heading", { level: 1, name: "Vectors" }).waitFor();
  expect(await page.title()).toBe("Vectors");
  await page.getByText("121 vectors, 3 dimensions, cosine").waitFor();
  const ids = page.getByRole("table", { name: "Vectors" }).getByRole("link");
  await ids.first().waitFor();
  expect(await ids.count()).toBe(50);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("link", { name: "film-090" }).waitFor();
  expect(await page.evaluate("window.ran ?? null")).toBeNull();
  await page.getByRole("textbox", { name: "Search" }).fill("film-11");
  await page.getByRole("link", { name: "film-090" }).waitFor({ state: "detached" });
  await until("ten are left", async () => (await ids.count()) === 10);
  await page.getByRole("combobox", { name: "Index" }).click();
  await page.getByRole("option", { name: "none" }).click();
  await page.getByText("No vectors yet").waitFor();
  await page.getByText("0 vectors, 2 dimensions, euclidean").waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD41] a vector shows values, neighbours and metadata, which is edited", async () => {
  const { page } = await signedIn("/admin/vectors?id=film-010");
  const dialog = page.getByRole("dialog");
  const nearest = dialog.getByRole("table", { name: "Nearest" });
  await nearest.getByRole("link", { name: "film-009" }).waitFor();
  expect(await nearest.getByRole("link").count()).toBe(10);
  expect(await nearest.getByRole("link", { name: "film-010" }).count()).toBe(0);
  await dialog.getByLabel("Metadata").fill("[1]");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("This is no JSON object").waitFor();
  await dialog.getByLabel("Metadata").fill('{ "title": "Changed" }');
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("button", { name: "Save" }).waitFor({ state: "detached" });
  const changed = await stored("film-010");
  expect(changed?.metadata).toEqual({ title: "Changed" });
  expect(changed?.values[2]).toBe(0.1);
  await nearest.getByRole("link", { name: "film-009" }).click();
  await dialog.getByRole("heading", { name: "film-009" }).waitFor();
  expect(page.url()).toContain("film-009");
  await page.goto(`${platform.url}/admin/vectors?id=nothing`);
  await page.getByText("There is no such vector").waitFor();
});

browserTest("[AD41] who saves metadata leaves the values and members that others have changed meanwhile", async () => {
  await act({ action: "upsert", vectors: [{ id: "edited", values: [1, 0, 0], metadata: { title: "Old", year: 1 } }] });
  const { page } = await signedIn("/admin/vectors?id=edited");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Metadata").fill('{ "title": "New", "year": 1 }');
  await act({ action: "upsert", vectors: [{ id: "edited", values: [0, 1, 0], metadata: { title: "Old", year: 2 } }] });
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("button", { name: "Save" }).waitFor({ state: "detached" });
  expect(await stored("edited")).toMatchObject({ values: [0, 1, 0], metadata: { title: "New", year: 2 } });
  await act({ action: "delete", ids: ["edited"] });
});

browserTest("[AD41] the neighbours of a pasted vector are found, narrowed by a filter", async () => {
  const { page } = await signedIn("/admin/vectors");
  await page.getByRole("button", { name: "Nearest" }).click();
  const dialog = page.getByRole("dialog");
  const search = () => dialog.getByRole("button", { name: "Search" }).click();
  await dialog.getByLabel("Vector").fill("1 2");
  await search();
  await dialog.getByText("The index has 3 dimensions, these are 2").waitFor();
  await dialog.getByLabel("Vector").fill("1 2 x");
  await search();
  await dialog.getByText('"x" is no number').waitFor();
  await dialog.getByLabel("Vector").fill("[1, 0, 0.1]");
  await search();
  await dialog.getByRole("link", { name: "film-000" }).waitFor();
  await dialog.getByLabel("Filter").fill('{ "year": { "$gte": 2000 } }');
  await search();
  await dialog.getByRole("link", { name: "film-050" }).waitFor();
  expect(await dialog.getByRole("link", { name: "film-000" }).count()).toBe(0);
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByRole("link", { name: "film-050" }).last().waitFor();
  await dialog.getByLabel("Filter").fill('{ "year": { "$odd": 1 } }');
  await search();
  await dialog.getByRole("alert").getByText(/\$odd/).waitFor();
});

browserTest("[AD42] vectors are inserted, and deleted after ten seconds unless that is undone", async () => {
  const { page } = await signedIn("/admin/vectors?q=new");
  await page.getByRole("button", { name: "Insert" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Id").fill("new one");
  await dialog.getByLabel("Values").fill("0 0 0");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog
    .getByRole("alert")
    .getByText(/must not be all zeros/)
    .waitFor();
  await dialog.getByLabel("Values").fill("0, 1, 0.5");
  await dialog.getByLabel("Metadata").fill('{ "title": "New" }');
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("heading", { name: "new one" }).waitFor();
  expect(await stored("new one")).toMatchObject({ values: [0, 1, 0.5], metadata: { title: "New" } });
  const remove = async () => {
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("One vector deleted").waitFor();
    await page.getByRole("link", { name: "new one" }).waitFor({ state: "detached" });
  };
  await remove();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("One vector deleted").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "new one" }).click();
  await remove();
  expect(await stored("new one")).not.toBeNull();
  // Leaving the page does not lose it.
  await page.goto(`${platform.url}/admin/vectors`);
  await until("it is deleted", async () => (await stored("new one")) === null);
});

browserTest("[AD21] [AD41] a key that may only read inserts, deletes and edits nothing", async () => {
  const { page } = await signedIn("/admin/vectors?id=film-001&insert=true", READER);
  await page.getByRole("dialog").getByRole("table", { name: "Nearest" }).waitFor();
  for (const name of ["Insert", "Delete", "Save"]) {
    const count = await page.getByRole("button", { name, exact: true, includeHidden: true }).count();
    expect({ name, count }).toEqual({ name, count: 0 });
  }
  expect(await page.getByRole("dialog").getByLabel("Metadata").getAttribute("readonly")).not.toBeNull();
});

browserTest(
  "[AD30] the page Vectors is accessible and fits",
  () =>
    expectGoodPages(browser, platform, [
      "/admin/vectors",
      "/admin/vectors?index=none",
      "/admin/vectors?id=film-001",
      "/admin/vectors?near=%221%200%200%22",
      "/admin/vectors?insert=true",
    ]),
  LONG_MS,
);
