import { afterAll, beforeAll, expect } from "bun:test";
import type { BrowserContext, Page, Request } from "playwright-core";
import { testBrowser } from "../support/browser.ts";
import { openDashboard } from "../support/dashboard.ts";
import { SERVICE_KEY, signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";

// What was typed or begun, while answers are late, others change things, and sessions end.

const OTHER = "other-key-0123456789abcdefghijklmnopqrstuv";
const CONFIG = `{
  databases: {
    shared: { tables: {
      notes: { schema: {
        text: { type: "string" }, amount: { type: "number" }, whole: { type: "integer" }, extra: { type: "json" },
        isDone: { type: "boolean" }, kind: { type: "string", default: "usual" },
      } },
      others: { schema: { text: { type: "string" } } },
      many: { schema: { text: { type: "string" } } },
      loose: {},
    } },
    clubs: { instance: true, access: { create: true, open: true }, tables: { messages: { schema: { text: { type: "string" } } } } },
  },
  serviceKeys: { other: { key: "${OTHER}", scopes: ["db:*:*:read", "db:*:*:delete", "storage:*:*:*"] } },
  storage: { buckets: { papers: {} } }, kv: { cache: {} }, d1: { reports: {} },
  vectorize: { points: { dimensions: 2, metric: "cosine" } },
}`;
const T = "/api/db/shared/tables";
const NOTES = "/admin/tables/shared/-/notes";
/** Delay of an answer that comes after something else was begun. */
const LATE_MS = 1_500;

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const open = (path: string) => openDashboard(browser, platform, path);
const insert = async (table: string, ...inserts: object[]): Promise<void> => {
  expect((await platform.service.post(`${T}/${table}/batch`, { inserts: inserts as never })).status).toBe(200);
};
const change = (id: string, changes: object) => platform.service.patch(`${T}/notes/${id}`, changes as never);
const note = async (id: string) => (await platform.service.get(`${T}/notes/${id}`)).body;
const cell = (page: Page, name: string) => page.getByRole("gridcell", { name, exact: true });
const filtered = (...conditions: unknown[]) => `${NOTES}?filter=${encodeURIComponent(JSON.stringify(conditions))}`;

/** Sends these requests late. Resolves when the first one has been answered. */
async function delay(page: Page, path: string, isMeant: (request: { method: string; body: string }) => boolean) {
  const isOne = (request: Request) => isMeant({ method: request.method(), body: request.postData() ?? "" });
  await page.route(`**${path}`, async (route) => {
    if (isOne(route.request())) await Bun.sleep(LATE_MS);
    await route.continue();
  });
  const answer = page.waitForResponse((response) => response.url().endsWith(path) && isOne(response.request()));
  // A promise that nobody waits for yet.
  return { answered: () => answer };
}
/** Time in which what an answer brings about is seen. */
const settle = () => Bun.sleep(300);

async function signOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Signed in/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
}
async function signInAs(page: Page, key: string): Promise<void> {
  await page.getByLabel("Service key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

browserTest(
  "[AD58] a cell is edited, and changes of others are seen, beside a summary, which follows them",
  async () => {
    await insert("notes", { id: "s1", text: "summed", amount: 5 });
    const { page, problems } = await open(`${filtered(["id", "==", "s1"])}&summary=amount`);
    const sum = page.getByRole("region", { name: "Summary of amount" });
    await sum.getByText("5", { exact: true }).first().waitFor();
    await cell(page, "summed").dblclick();
    await page.getByRole("textbox", { name: "text" }).fill("edited");
    await page.keyboard.press("Enter");
    await cell(page, "edited").waitFor();
    await change("s1", { amount: 7 });
    await cell(page, "7").waitFor();
    await sum.getByText("7", { exact: true }).first().waitFor();
    expect(problems).toEqual([]);
  },
);

browserTest("[AD24] a record that a change lets into the filter appears, and one that leaves it goes", async () => {
  await insert("notes", { id: "in", text: "stays not", amount: 100 }, { id: "out", text: "comes", amount: 1 });
  const { page } = await open(filtered(["amount", ">=", 100]));
  await cell(page, "stays not").waitFor();
  await until("the table is followed", async () => {
    await change("in", { kind: `${Math.random()}` });
    return (await page.locator(".is-flashing").count()) > 0;
  });
  await change("in", { amount: 2 });
  await change("out", { amount: 101 });
  await cell(page, "comes").waitFor();
  await cell(page, "stays not").waitFor({ state: "detached" });
});

browserTest("[AD23] the late answer to one form closes no other one", async () => {
  await insert("notes", { id: "slow", text: "slow" }, { id: "quick", text: "quick" });
  const { page } = await open(`${NOTES}?record=slow`);
  const { answered } = await delay(page, "/notes/slow", ({ method }) => method === "PATCH");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("text", { exact: true }).fill("saved late");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.keyboard.press("Escape");
  await cell(page, "quick").first().click();
  await dialog.getByLabel("text", { exact: true }).fill("a draft");
  await answered();
  await settle();
  expect(await dialog.getByLabel("text", { exact: true }).inputValue()).toBe("a draft");
  expect((await note("slow"))["text"]).toBe("saved late");
});

browserTest("[AD23] the late answer to one cell closes no other one, and a late refusal is said", async () => {
  await insert("notes", { id: "first", whole: 11 }, { id: "second", whole: 22 });
  const { page } = await open(filtered(["id", "in", ["first", "second"]]));
  const editor = page.getByRole("textbox", { name: "whole" });
  for (const [typed, said] of [
    ["12", null],
    ["no number", "whole was not saved"],
  ] as const) {
    const { answered } = await delay(page, "/notes/first", ({ method }) => method === "PATCH");
    await page.locator('[data-row="0"][data-column="3"]').dblclick();
    await editor.fill(typed);
    await page.keyboard.press("Enter");
    await cell(page, "22").dblclick();
    expect(await editor.inputValue()).toBe("22");
    await editor.fill("23");
    await answered();
    await settle();
    expect(await editor.inputValue()).toBe("23");
    if (said !== null) await page.getByText(said).waitFor();
    await page.unroute("**/notes/first");
    await page.keyboard.press("Escape");
  }
  expect((await note("first"))["whole"]).toBe(12);
});

browserTest(
  "[AD23] what is typed in a cell stays while the row is scrolled away, and when its record leaves the list",
  async () => {
    await insert(
      "many",
      ...Array.from({ length: 300 }, (_, index) => ({ id: `m${1000 + index}`, text: `text ${index}` })),
    );
    const { page } = await open("/admin/tables/shared/-/many");
    const editor = page.getByRole("textbox", { name: "text" });
    await cell(page, "text 3").dblclick();
    await editor.fill("a long draft");
    await page.mouse.move(600, 500);
    await page.mouse.wheel(0, 4_000);
    await cell(page, "text 120").waitFor();
    await page.mouse.wheel(0, -6_000);
    await cell(page, "text 0").waitFor();
    expect(await editor.inputValue()).toBe("a long draft");
    await page.keyboard.press("Enter");
    await cell(page, "a long draft").waitFor();
    await insert("notes", { id: "alone", text: "alone", amount: 777 });
    await page.goto(platform.url + filtered(["amount", "==", 777]));
    await cell(page, "alone").first().waitFor();
    await page.locator('[data-row="0"][data-column="1"]').dblclick();
    await editor.fill("kept");
    await change("alone", { amount: 778 });
    await page.getByText("Nothing matches").waitFor();
    expect(await editor.inputValue()).toBe("kept");
    await page.keyboard.press("Enter");
    await editor.waitFor({ state: "detached" });
    expect((await note("alone"))["text"]).toBe("kept");
  },
);

browserTest("[AD23] by keyboard: a refused cell keeps the focus, and the option that a cell has stays", async () => {
  await insert("notes", { id: "keys", whole: 4711, isDone: true });
  const { page } = await open(filtered(["id", "==", "keys"]));
  await cell(page, "4711").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.type("x");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await page.keyboard.press("Backspace");
  await page.keyboard.press("End");
  await page.keyboard.type("0");
  await page.keyboard.press("Enter");
  // A cell is called by what is typed in it, too.
  await page.getByRole("textbox", { name: "whole" }).waitFor({ state: "detached" });
  await cell(page, "47110").waitFor();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByRole("option", { name: "true" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await settle();
  expect((await note("keys"))["isDone"]).toBe(true);
  await page.keyboard.press("Enter");
  await page.getByRole("option", { name: "false" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await until(
    "the cell has the focus",
    async () => (await page.evaluate("document.activeElement.textContent")) === "false",
  );
  expect((await note("keys"))["isDone"]).toBe(false);
});

browserTest("[AD23] numbers that would become others are refused: in JSON, and in a filter", async () => {
  await insert("notes", { id: "numbers", amount: 9007199254740992, extra: { a: 1 } });
  const { page } = await open(`${NOTES}?record=numbers`);
  const dialog = page.getByRole("dialog");
  for (const [typed, said] of [
    ['{ "a": 9007199254740993 }', "a is an integer that a double cannot hold exactly"],
    ['{ "a": 1e999 }', "a is a number beyond what a double can hold"],
  ] as const) {
    await dialog.getByLabel("extra", { exact: true }).fill(typed);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText(said).waitFor();
  }
  expect((await note("numbers"))["extra"]).toEqual({ a: 1 });
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByRole("combobox", { name: "Field" }).fill("amount");
  await page.getByRole("option", { name: "amount", exact: true }).click();
  for (const typed of ["9007199254740993", "Infinity"]) {
    if (typed === "Infinity") await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByRole("textbox", { name: "Value" }).fill(typed);
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText(`amount == takes a number, got "${typed}"`).waitFor();
    await page.getByRole("button", { name: /^Remove the condition/ }).click();
  }
});

browserTest("[AD23] [AD57] a text of several lines keeps them, and a copy its nulls and empty texts", async () => {
  await insert("notes", { id: "lines", text: "one\ntwo", kind: null });
  const { page } = await open(`${NOTES}?record=lines`);
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("text", { exact: true }).press("Control+End");
  await page.keyboard.type("!");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  expect((await note("lines"))["text"]).toBe("one\ntwo!");
  await change("lines", { text: "" });
  await page.goto(`${platform.url}${NOTES}?record=lines`);
  await dialog.getByRole("button", { name: "Duplicate" }).click();
  await dialog.getByRole("button", { name: "Insert" }).click();
  await dialog.waitFor({ state: "detached" });
  const copies = await platform.service.get<{ items: { text: unknown; kind: unknown }[] }>(
    `${T}/notes?sort=createdAt:desc&limit=1`,
  );
  expect(copies.body.items[0]).toMatchObject({ text: "", kind: null });
});

browserTest("[AD23] a text keeps the line breaks that it has, in a form and in a cell", async () => {
  await insert("notes", { id: "breaks", text: "one\r\ntwo\r\n", kind: "a\rb\r\nc\nd" });
  const { page } = await open(`${filtered(["id", "==", "breaks"])}&record=breaks`);
  const dialog = page.getByRole("dialog");
  const save = async (): Promise<void> => {
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  const text = dialog.getByLabel("text", { exact: true });
  await text.press("Control+End");
  await page.keyboard.type("x");
  await page.keyboard.press("Backspace");
  await dialog.getByLabel("kind", { exact: true }).press("Control+End");
  await page.keyboard.type("!");
  await save();
  expect(await note("breaks")).toMatchObject({ text: "one\r\ntwo\r\n", kind: "a\rb\r\nc\nd!" });
  await cell(page, "one two").dblclick();
  await page.getByRole("textbox", { name: "text" }).press("Control+End");
  await page.keyboard.type("three");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: "text" }).waitFor({ state: "detached" });
  expect((await note("breaks"))["text"]).toBe("one\r\ntwo\r\nthree\r\n");
});

browserTest("[AD23] a record and an instance whose names the addresses of pages use are opened", async () => {
  await insert("notes", { id: "new", text: "called new" });
  const { page } = await open(filtered(["id", "==", "new"]));
  await cell(page, "new").click();
  const dialog = page.getByRole("dialog", { name: "new", exact: true });
  expect(await dialog.getByLabel("text", { exact: true }).inputValue()).toBe("called new");
  expect((await platform.service.post("/api/db/clubs/-/tables/messages", { text: "a dash" })).status).toBe(201);
  await page.goto(`${platform.url}/admin/tables/clubs`);
  await page.getByRole("link", { name: "messages" }).click();
  await cell(page, "a dash").waitFor();
});

browserTest("[AD62] a value of another type than those of the first records is edited as what it is", async () => {
  await insert("loose", ...Array.from({ length: 110 }, (_, index) => ({ id: `a${1000 + index}`, field: "text" })));
  await insert("loose", { id: "b", field: { deep: [1] } });
  const { page } = await open("/admin/tables/shared/-/loose");
  await cell(page, "a1000").focus();
  await page.keyboard.press("Control+End");
  await cell(page, '{"deep":[1]}').dblclick();
  const editor = page.getByRole("textbox", { name: "field" });
  expect(JSON.parse(await editor.inputValue())).toEqual({ deep: [1] });
  await editor.fill('{ "deep": [2] }');
  await page.keyboard.press("Enter");
  await cell(page, '{"deep":[2]}').waitFor();
  expect((await platform.service.get(`${T}/loose/b`)).body["field"]).toEqual({ deep: [2] });
});

browserTest("[AD23] a deletion that waits hides no record of another table", async () => {
  await insert("notes", { id: "shared-id", text: "in notes" });
  await insert("others", { id: "shared-id", text: "in others" });
  const { page } = await open(`${NOTES}?record=shared-id`);
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Tables" }).click();
  await page.getByRole("link", { name: "others" }).click();
  await cell(page, "in others").waitFor();
  expect(await page.locator(".is-hidden").count()).toBe(0);
  await page.getByRole("button", { name: "Undo" }).click();
});

browserTest(
  "[AD21] [AD23] a sign-out finishes deletions with the rights of who began them, not of the next",
  async () => {
    await insert("notes", { id: "doomed", text: "doomed" });
    const { page } = await open(`${NOTES}?record=doomed`);
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await signOut(page);
    await page.getByLabel("Service key").waitFor();
    expect((await platform.service.get(`${T}/notes/doomed`)).status).toBe(404);
    const { body } = await platform.service.get<{
      entries: { action: string; actor: { kind: string; name: string } }[];
    }>("/api/admin/audit?target=db/shared/notes/doomed&action=record.delete");
    expect(body.entries.map(({ actor }) => actor.name)).toEqual(["root"]);
  },
);

browserTest(
  "[AD21] [AD23] a deletion whose session ended before is not carried out by the next key, which is said",
  async () => {
    await insert("notes", { id: "spared", text: "spared" });
    const { page, context } = await open(`${NOTES}?record=spared`);
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    const headers = { "x-platform-admin": "1" };
    expect((await context.request.delete(`${platform.url}/api/admin/session`, { headers })).status()).toBe(204);
    await page.getByRole("link", { name: "Users", exact: true }).click();
    await signInAs(page, OTHER);
    await page.getByText("Not deleted").waitFor();
    await page.getByRole("button", { name: "Undo" }).waitFor({ state: "detached" });
    // Longer than a deletion waits.
    await Bun.sleep(11_000);
    expect((await platform.service.get(`${T}/notes/spared`)).status).toBe(200);
  },
  40_000,
);

/** Ends the session as another tab does, or time. */
async function endSession({ request }: BrowserContext): Promise<void> {
  const answer = await request.delete(`${platform.url}/api/admin/session`, { headers: { "x-platform-admin": "1" } });
  expect(answer.status()).toBe(204);
}

browserTest(
  "[AD21] what was typed in a form is there again for the key whose session has ended meanwhile",
  async () => {
    await insert("notes", { id: "long", text: "before", amount: 1 });
    const { page, context } = await open(`${NOTES}?record=long`);
    const dialog = page.getByRole("dialog");
    const text = dialog.getByLabel("text", { exact: true });
    await text.fill("an hour of work");
    // Just before it is saved: whatever else the page asks for would show the sign-in, and no button to save with.
    const save = `**${T}/notes/long`;
    await page.route(save, async (route) => {
      if (route.request().method() === "PATCH") await endSession(context);
      await route.continue();
    });
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByLabel("Service key").waitFor();
    await page.unroute(save);
    expect(await dialog.isVisible()).toBe(false);
    expect(await page.getByRole("main").count()).toBe(1);
    await signInAs(page, SERVICE_KEY);
    expect(await text.inputValue()).toBe("an hour of work");
    expect(await page.title()).toBe("notes");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await cell(page, "an hour of work").waitFor();
    expect((await note("long"))["text"]).toBe("an hour of work");
  },
);

browserTest("[AD21] what was typed in a cell is there again after the session has ended", async () => {
  await insert("notes", { id: "cell", text: "a cell" });
  const { page, context } = await open(filtered(["id", "==", "cell"]));
  await cell(page, "a cell").dblclick();
  const editor = page.getByRole("textbox", { name: "text" });
  await editor.fill("typed");
  await endSession(context);
  await page.keyboard.press("Enter");
  await signInAs(page, SERVICE_KEY);
  expect(await editor.inputValue()).toBe("typed");
  await editor.press("Enter");
  await editor.waitFor({ state: "detached" });
  expect((await note("cell"))["text"]).toBe("typed");
});

browserTest("[AD21] [AD31] a value stays as typed after the session has ended, and replaces no newer one", async () => {
  const set = (value: number) =>
    platform.service.post("/api/kv/cache", { action: "set", key: "draft", value } as never);
  await set(1);
  const { page, context } = await open("/admin/key-value?key=draft");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Value").fill("2");
  await endSession(context);
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByLabel("Service key").waitFor();
  await set(3);
  // As long as who signs in needs at least: nothing that the page shows is forgotten meanwhile.
  await settle();
  await signInAs(page, SERVICE_KEY);
  await page.waitForLoadState("networkidle");
  expect(await dialog.getByLabel("Value").inputValue()).toBe("2");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("The value has changed meanwhile").waitFor();
  await dialog.getByRole("button", { name: "Replace" }).click();
  await dialog.waitFor({ state: "detached" });
});

browserTest("[AD21] what was typed is not there for another key, nor after a sign-out", async () => {
  await insert("notes", { id: "secret", text: "stored" });
  for (const end of ["session", "sign-out"]) {
    const { page, context } = await open(`${NOTES}?record=secret`);
    const dialog = page.getByRole("dialog");
    const text = dialog.getByLabel("text", { exact: true });
    await text.fill("not for others");
    if (end === "session") {
      await endSession(context);
      await dialog.getByRole("button", { name: "Save" }).click();
    } else {
      // What lies behind an open record takes no clicks.
      await page.getByRole("button", { name: /^Signed in/, includeHidden: true }).dispatchEvent("click");
      await page.getByRole("menuitem", { name: "Sign out", includeHidden: true }).dispatchEvent("click");
    }
    await page.getByLabel("Service key").waitFor();
    if (end === "sign-out") expect(await page.getByRole("dialog", { includeHidden: true }).count()).toBe(0);
    await signInAs(page, end === "session" ? OTHER : SERVICE_KEY);
    await dialog.waitFor();
    expect(await text.inputValue()).toBe("stored");
    await context.close();
  }
});

browserTest("[AD21] who signs in in another tab goes on in this one, without what another key has loaded", async () => {
  const { page, context } = await open("/admin/tables");
  await page.getByRole("link", { name: "notes" }).waitFor();
  await endSession(context);
  await page.getByRole("link", { name: "Users", exact: true }).click();
  await page.getByLabel("Service key").waitFor();
  await context.request.post(`${platform.url}/api/admin/session`, { data: { key: OTHER } });
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");
  await page.getByRole("button", { name: "Signed in with the key other" }).waitFor();
});

browserTest("[AD21] the next key sees no uploads of the one before", async () => {
  const { page } = await open("/admin/files");
  await page
    .locator("input[type=file]")
    .setInputFiles({ name: "plan.txt", mimeType: "text/plain", buffer: Buffer.from("x") });
  await page.getByText("1 of 1 uploaded").waitFor();
  await signOut(page);
  await signInAs(page, OTHER);
  await page.getByRole("button", { name: "Upload", exact: true }).waitFor();
  expect(await page.getByRole("region", { name: "Uploads" }).count()).toBe(0);
});

browserTest("[AD31] the late answer to one key closes no other one", async () => {
  for (const key of ["slow", "quick"]) {
    await platform.service.post("/api/kv/cache", { action: "set", key, value: 1 } as never);
  }
  const { page } = await open("/admin/key-value?key=slow");
  const { answered } = await delay(page, "/api/kv/cache", ({ body }) => body.includes('"set"'));
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Value").fill("2");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "quick" }).click();
  await dialog.getByLabel("Value").fill("3");
  await answered();
  await settle();
  expect(await dialog.getByLabel("Value").inputValue()).toBe("3");
});

browserTest("[AD26] [AD42] late answers lead nobody away from the page to which they have gone", async () => {
  const { id } = await signIn(platform);
  const { page } = await open(`/admin/users/${id}`);
  const deletion = await delay(page, `/users/${id}`, ({ method }) => method === "DELETE");
  await page.getByRole("main").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("link", { name: "SQL", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "SQL" }).waitFor();
  await deletion.answered();
  await settle();
  expect(new URL(page.url()).pathname).toBe("/admin/sql");
  await page.goto(`${platform.url}/admin/vectors?insert=true`);
  const insertion = await delay(page, "/api/vectorize/points", ({ body }) => body.includes("upsert"));
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Id").fill("p1");
  await dialog.getByLabel("Values").fill("1 2");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "SQL", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "SQL" }).waitFor();
  await insertion.answered();
  await settle();
  expect(new URL(page.url()).search).toBe("");
});

browserTest("[AD25] whose view it is, is chosen by keyboard", async () => {
  await signIn(platform, { email: "another@example.com" });
  const { id } = await signIn(platform, { email: "keyboard@example.com" });
  const { page } = await open("/admin/tables");
  await page.getByRole("button", { name: "View as" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("option", { name: "Nobody" }).waitFor();
  await page.keyboard.type("keyboard@");
  await page.getByRole("option", { name: "another@example.com" }).waitFor({ state: "detached" });
  await page.getByRole("option", { name: "keyboard@example.com" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "View as keyboard@example.com: end" }).waitFor();
  expect(new URL(page.url()).searchParams.get("as")).toBe(id);
});
