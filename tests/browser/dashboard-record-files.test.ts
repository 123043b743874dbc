import { afterAll, beforeAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import { png } from "../http/storage/pictures.ts";
import { type RecordFile, sendForm } from "../http/tables/tables-files-support.ts";
import { testBrowser } from "../support/browser.ts";
import { expectAccessible, LOOKS, openDashboard } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";

// Fields of files in the form of a record and in the grid.

const CONFIG = `{
  storage: { buckets: { files: {} } },
  databases: { shared: { tables: { docs: { schema: {
    title: { type: "string", required: true },
    cover: { type: "file", bucket: "files", types: ["image/*"] },
    papers: { type: "file", bucket: "files", many: 3 },
  } } } } },
}`;
const DOCS = "/api/db/shared/tables/docs";
const PAGE = "/admin/tables/shared/-/docs";

interface Doc {
  [field: string]: unknown;
  id: string;
  cover: RecordFile | null;
  papers: RecordFile[];
}

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  expect((await platform.get("/admin")).status).toBe(200);
});
afterAll(() => platform.stop());

const stored = async (id: string): Promise<Doc> => (await platform.service.get<Doc>(`${DOCS}/${id}`)).body;
const namesOf = (files: readonly RecordFile[]) => files.map(({ name }) => name);
const insert = async (title: string): Promise<Doc> => {
  const files = [
    { field: "cover", content: png(60, 40), name: "cover.png", type: "image/png" },
    { field: "papers", content: "one", name: "one.txt" },
    { field: "papers", content: "two", name: "two.txt" },
  ];
  return (await sendForm<Doc>(platform.service, DOCS, { record: { title }, files })).body;
};
/** Chooses files by a button. */
const choose = async (page: Page, button: string, files: { name: string; mimeType: string; buffer: Buffer }[]) => {
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: button, exact: true }).click();
  await (await chooser).setFiles(files);
};
const text = (name: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(name) });
const click = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

browserTest("[AD118] a new record is inserted with its files", async () => {
  const { page, problems } = await openDashboard(browser, platform, PAGE);
  await click(page, "Insert");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "title" }).fill("new");
  const picture = { name: "a.png", mimeType: "image/png", buffer: Buffer.from(png(20, 20)) };
  await choose(page, "Choose file of cover", [picture]);
  await choose(page, "Add files of papers", [text("a.txt"), text("b.txt")]);
  await dialog.getByText("a.txt").waitFor();
  await dialog.getByRole("button", { name: "Insert" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("gridcell", { name: "a.txt, b.txt" }).waitFor();
  const { items } = (await platform.service.get<{ items: Doc[] }>(DOCS)).body;
  const doc = items.find(({ title }) => title === "new");
  expect([doc?.cover?.name, namesOf(doc?.papers ?? [])]).toEqual(["a.png", ["a.txt", "b.txt"]]);
  expect(problems).toEqual([]);
});

browserTest("[AD118] files are shown, put in order, added and removed, and a refusal is at the field", async () => {
  const { id } = await insert("old");
  const { page } = await openDashboard(browser, platform, `${PAGE}?record=${id}`);
  const dialog = page.getByRole("dialog");
  await dialog.locator("img").waitFor();
  await until("the picture is there", () =>
    page.evaluate<boolean>(
      `[...document.querySelectorAll("[role=dialog] img")].some((one) => one.naturalWidth === 60)`,
    ),
  );
  const opened = page.context().waitForEvent("page");
  await dialog.getByRole("link", { name: "one.txt" }).click();
  expect((await opened).url()).toContain(`/files/papers/`);
  await click(page, "Move two.txt up");
  await choose(page, "Add files of papers", [text("three.txt")]);
  await page.getByRole("button", { name: "Add files of papers" }).waitFor({ state: "detached" });
  await click(page, "Remove one.txt");
  await choose(page, "Replace file of cover", [text("no.txt")]);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText(/cover must be image/).waitFor();
  expect(namesOf((await stored(id)).papers)).toEqual(["one.txt", "two.txt"]);
  await click(page, "Remove no.txt");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  const doc = await stored(id);
  expect([doc.cover, namesOf(doc.papers)]).toEqual([null, ["two.txt", "three.txt"]]);
});

browserTest("[AD118] a duplicate begins without files, and a cell of files opens the form", async () => {
  const { id } = await insert("twice");
  const { page } = await openDashboard(browser, platform, `${PAGE}?record=${id}`);
  const dialog = page.getByRole("dialog");
  await click(page, "Duplicate");
  await dialog.getByText("New record in docs").waitFor();
  await dialog.getByRole("button", { name: "Insert" }).click();
  await dialog.waitFor({ state: "detached" });
  const { items } = (await platform.service.get<{ items: Doc[] }>(DOCS)).body;
  const copies = items.filter(({ title }) => title === "twice");
  expect(copies.map(({ papers }) => papers.length).sort()).toEqual([0, 2]);
  await page.getByRole("gridcell", { name: "one.txt, two.txt" }).first().dblclick();
  await dialog.getByRole("link", { name: "one.txt" }).waitFor();
});

browserTest("[AD118] the form is accessible and fits, light and dark, on a phone", async () => {
  const { id } = await insert("looks");
  for (const { name, options } of LOOKS) {
    const { page } = await openDashboard(browser, platform, `${PAGE}?record=${id}`, options);
    await page.getByRole("dialog").locator("img").waitFor();
    await expectAccessible(page);
    const directory = process.env["PLATFORM_PICTURES"];
    if (directory !== undefined) await page.screenshot({ path: `${directory}/${name}.png` });
  }
});
