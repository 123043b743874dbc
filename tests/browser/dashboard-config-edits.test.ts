import { afterAll, beforeAll, expect } from "bun:test";
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { testBrowser } from "../support/browser.ts";
import { expectAccessible, inEveryView, openDashboard } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";

// The config is edited where its tables are looked at.

const CONFIG = `import { defineConfig } from "platform";

export default defineConfig({
  serviceKeys: { limited: { key: "a-key-of-at-least-32-characters-123", scopes: ["db:*:*:*", "system:*:*:read"] } },
  databases: {
    shared: {
      tables: {
        // Kept as it is.
        notes: {
          schema: {
            title: { type: "string", required: true, max: 200 },
            ownerId: { type: "string" },
            text: { type: "text" },
          },
          access: { read: true },
        },
      },
    },
  },
});
`.trim();

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;

/** Returns a port that nobody uses: the page stays where it is while dev restarts. */
function freePort(): number {
  const server = Bun.serve({ port: 0, fetch: () => new Response() });
  const { port } = server;
  server.stop(true);
  return port ?? 0;
}

beforeAll(async () => {
  platform = await testPlatform({ command: "dev", config: CONFIG, args: ["--port", String(freePort())] });
  await platform.service.post("/api/db/shared/tables/notes", { title: "first", text: "x" });
});
afterAll(() => platform.stop());

const text = (): string => readFileSync(platform.configFile, "utf8");
const starts = (): number => [...platform.stdout().matchAll(/listening on/g)].length;
const SCHEMA = "/admin/tables/shared/-/notes?tab=schema";

/** Clicks Write in the open dialog, and waits until the page shows the new server's answer. */
async function write(page: Page): Promise<void> {
  const before = starts();
  await page.getByRole("dialog").getByRole("button", { name: "Write" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until("the server has started again", () => starts() > before);
}

browserTest("[AD150] a field is added, changed and undone, after a look at what changes", async () => {
  const { page, problems } = await openDashboard(browser, platform, SCHEMA);
  await page.getByRole("button", { name: "New field" }).click();
  const dialog = page.getByRole("dialog", { name: "New field of notes" });
  await dialog.getByRole("textbox", { name: "Name" }).fill("title");
  await dialog.getByRole("button", { name: "Review" }).click();
  await dialog.getByRole("alert").getByText('has a field "title" already').waitFor();
  await dialog.getByRole("textbox", { name: "Name" }).fill("state");
  await dialog.getByLabel("Only these values").first().fill("open");
  await page.keyboard.press("Enter");
  await dialog.getByRole("button", { name: "Review" }).click();
  await dialog
    .getByRole("region", { name: "What changes" })
    .getByText('+ state: { type: "string", enum: ["open"] }')
    .waitFor();
  await dialog.getByText(/All stored records stay as they are/).waitFor();
  await write(page);
  expect(text()).toContain('            state: { type: "string", enum: ["open"] },');
  expect(text()).toContain("// Kept as it is.");
  const fields = page.getByRole("region", { name: "Fields" });
  await fields.getByText("one of open").waitFor();

  await fields.getByRole("button", { name: "Change title" }).click();
  await page.getByRole("menuitem", { name: "Change" }).click();
  const change = page.getByRole("dialog", { name: "Field title" });
  await change.getByRole("textbox", { name: "Characters at most" }).fill("3");
  await change.getByRole("button", { name: "Review" }).click();
  await change
    .getByRole("alert")
    .getByText(/1 records have another value/)
    .waitFor();
  expect(await change.getByRole("button", { name: "Write" }).isDisabled()).toBe(true);
  await change.getByRole("button", { name: "Back" }).click();
  await change.getByRole("textbox", { name: "Characters at most" }).fill("300");
  await change.getByRole("button", { name: "Review" }).click();
  await write(page);
  await fields.getByText("at most 300 characters").waitFor();

  await page.getByRole("button", { name: "Undo" }).click();
  await fields.getByText("at most 200 characters").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await fields.getByText("one of open").waitFor({ state: "detached" });
  expect(text()).toBe(CONFIG);
  expect(problems.filter((problem) => !/Failed to load resource|Failed to fetch|WebSocket/.test(problem))).toEqual([]);
});

browserTest("[AD151] rules are set by templates and as a function, whose members are completed", async () => {
  const { page } = await openDashboard(browser, platform, SCHEMA);
  await page.getByRole("button", { name: "Change the rule of update" }).click();
  const dialog = page.getByRole("dialog", { name: "Who may update in notes" });
  await dialog
    .getByRole("combobox", { name: "Who may update" })
    .or(dialog.getByLabel("Who may update"))
    .first()
    .click();
  await page.getByRole("option", { name: "The owner" }).click();
  await dialog.getByLabel("Field with the owner's id").first().click();
  await page.getByRole("option", { name: "ownerId" }).click();
  await dialog.getByRole("button", { name: "Review" }).click();
  await write(page);
  expect(text()).toContain(
    "update: (auth, record, next) => auth !== null && record.ownerId === auth.id && next.ownerId === auth.id",
  );

  await page.getByRole("button", { name: "Change the rule of delete" }).click();
  const second = page.getByRole("dialog", { name: "Who may delete in notes" });
  await second.getByLabel("Who may delete").first().click();
  await page.getByRole("option", { name: "A function" }).click();
  const editor = second.getByRole("textbox", { name: "The rule of delete" });
  await editor.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("(auth, note) => note.own");
  await page.getByRole("option", { name: "ownerId" }).waitFor();
  await page.keyboard.type("er === auth?.id");
  await second.getByRole("button", { name: "Review" }).click();
  await second.getByRole("alert").getByText('reads "owner", which the record does not have').waitFor();
  await second.getByRole("button", { name: "Cancel" }).click();
  expect(text()).not.toContain("note.owner");
});

browserTest(
  "[AD152] tables and namespaces are added on their page, and a scoped key sees no such buttons",
  async () => {
    const { page } = await openDashboard(browser, platform, "/admin/tables");
    await page.getByRole("button", { name: "New table" }).click();
    const dialog = page.getByRole("dialog", { name: "New table in shared" });
    await dialog.getByRole("textbox", { name: "Name" }).fill("tasks");
    await dialog.getByRole("button", { name: "Review" }).click();
    await write(page);
    await page.getByRole("link", { name: "tasks" }).waitFor();
    await page.getByRole("button", { name: "New namespace" }).click();
    const second = page.getByRole("dialog", { name: "New namespace" });
    await second.getByRole("textbox", { name: "Name" }).fill("teams");
    await second.getByRole("checkbox", { name: "One file per instance" }).check();
    await second.getByRole("button", { name: "Review" }).click();
    await write(page);
    await page.getByRole("region", { name: "teams" }).waitFor();

    const scoped = await openDashboard(browser, platform, SCHEMA, { key: "a-key-of-at-least-32-characters-123" });
    await scoped.page.getByRole("region", { name: "Fields" }).waitFor();
    expect(await scoped.page.getByRole("button", { name: /New field|Undo|Change/ }).count()).toBe(0);
  },
);

browserTest("[AD153] under start the same pages show what to copy, and write nothing", async () => {
  const started = await testPlatform({ config: CONFIG });
  const { page } = await openDashboard(browser, started, SCHEMA);
  await page.getByRole("button", { name: "New index" }).click();
  const dialog = page.getByRole("dialog", { name: "New index of notes" });
  await dialog.getByLabel("Fields").first().click();
  await page.getByRole("option", { name: "ownerId" }).click();
  await page.keyboard.press("Escape");
  await dialog.getByRole("button", { name: "Review" }).click();
  await dialog.getByText('+ indexes: [{ fields: ["ownerId"] }],').waitFor();
  await dialog.getByRole("button", { name: "Copy" }).waitFor();
  expect(await dialog.getByRole("button", { name: "Write" }).count()).toBe(0);
  expect(readFileSync(started.configFile, "utf8")).toBe(CONFIG);
  await started.stop();
});

browserTest("[AD154] the forms and the review are accessible and fit in every view", async () => {
  await inEveryView(async (options) => {
    const { page } = await openDashboard(browser, platform, SCHEMA, options);
    await page.getByRole("button", { name: "New field" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Name" }).fill("state");
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Review" }).click();
    await dialog.getByRole("region", { name: "What changes" }).waitFor();
    await expectAccessible(page);
    if (process.env["PLATFORM_PICTURES"] !== undefined) {
      const { width } = page.viewportSize() ?? { width: 0 };
      await page.screenshot({ path: `${process.env["PLATFORM_PICTURES"]}/${options.colorScheme}-${width}.png` });
    }
  });
});
