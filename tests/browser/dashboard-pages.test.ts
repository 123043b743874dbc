import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { expectAccessible, inEveryView, openDashboard, overflowOf, violationsOf } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const CONFIG = `{
  databases: { shared: { tables: { notes: { schema: { text: { type: "string" }, stars: { type: "integer" } }, access: { read: true } } } } },
  kv: { cache: {} }, d1: { reports: {} },
  jobs: { breaks: { retries: 0, run() { throw new Error("it breaks"); } }, mend: { retries: 0, run() { globalThis.runs = (globalThis.runs ?? 0) + 1; if (globalThis.runs < 2) throw new Error("the first try fails"); } } },
  cron: { nightly: { schedule: "0 3 * * *", timezone: "Europe/Berlin", run() {} } },
  routes: (api) => api
    .post("/mend", ({ app }) => app.jobs.enqueue("mend", {}), { access: true })
    .post("/breaks", ({ app }) => app.jobs.enqueue("breaks", {}), { access: true }),
  serviceKeys: { reader: { key: "${READER}", scopes: ["auth:admin:*:read"] } },
}`;

/** Timeout of tests that open many pages. */
const LONG_MS = 120_000;

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  for (let n = 0; n < 3; n++)
    await platform.service.post("/api/db/shared/tables/notes", { text: `note ${n}`, stars: n });
});
afterAll(() => platform.stop());

const signedIn = (path: string, options: Parameters<typeof openDashboard>[3] = {}) =>
  openDashboard(browser, platform, path, options);
const createUser = async (email: string, displayName = "Ada"): Promise<string> => {
  const body = { email, displayName, password: "correct horse battery" };
  return (await platform.service.post<{ user: { id: string } }>("/api/auth/admin/users", body)).body.user.id;
};
const userOf = async (id: string) => (await platform.service.get(`/api/auth/admin/users/${id}`)).body;

browserTest("[AD26] users are found, inserted, edited, disabled and deleted", async () => {
  const id = await createUser("ada@example.com");
  const { page, problems } = await signedIn("/admin/users");
  await page.getByRole("textbox", { name: "Search" }).fill("ada@");
  await page.getByRole("link", { name: "ada@example.com" }).click();
  await page.getByRole("heading", { level: 1, name: "ada@example.com" }).waitFor();
  await page.getByLabel("Role").fill("editor");
  await page.getByRole("region", { name: "Profile" }).getByRole("button", { name: "Save" }).click();
  await until("the role is set", async () => (await userOf(id))["role"] === "editor");
  await page.getByRole("textbox", { name: "Claims" }).fill('{ "team": "red" }');
  await page.getByRole("region", { name: "Claims" }).getByRole("button", { name: "Save" }).click();
  await until(
    "the claims are set",
    async () => JSON.stringify((await userOf(id))["customClaims"]) === '{"team":"red"}',
  );
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Enable" }).waitFor();
  expect((await userOf(id))["disabled"]).toBe(true);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { level: 1, name: "Users" }).waitFor();
  expect((await platform.service.get(`/api/auth/admin/users/${id}`)).status).toBe(404);

  await page.getByRole("button", { name: "Insert" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Email").fill("grace@example.com");
  await dialog.getByRole("textbox", { name: "Password" }).fill("short");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText(/at least/).waitFor();
  await dialog.getByRole("textbox", { name: "Password" }).fill("correct horse battery");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { level: 1, name: "grace@example.com" }).waitFor();
  expect(problems.filter((problem) => !problem.includes("400"))).toEqual([]);
});

browserTest("[AD21] [AD26] a key that may only read sees no button that changes, and no other page", async () => {
  const id = await createUser("linus@example.com", "Linus");
  const { page } = await signedIn(`/admin/users/${id}`, { key: READER });
  await page.getByRole("heading", { level: 1, name: "linus@example.com" }).waitFor();
  for (const name of ["Save", "Disable", "Delete", "End sessions", "View as"]) {
    expect({ name, count: await page.getByRole("button", { name }).count() }).toEqual({ name, count: 0 });
  }
  expect(await page.getByRole("navigation").getByRole("link").allTextContents()).toEqual(["Overview", "Users"]);
});

browserTest("[AD27] a job that failed shows its error, and is run again", async () => {
  expect((await platform.post("/api/functions/mend")).status).toBe(200);
  const { page } = await signedIn("/admin/jobs?state=failed");
  await page.getByRole("button", { name: "mend" }).click();
  await page.getByText("the first try fails").waitFor();
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByText("No failed jobs").waitFor();
});

browserTest("[AD28] logs are narrowed by level and words, and the audit shows who did what", async () => {
  const { page } = await signedIn("/admin/logs");
  await page.getByRole("heading", { level: 1, name: "Logs" }).waitFor();
  await page.getByRole("textbox", { name: "Search" }).fill("no line has these words");
  await page.getByText("No lines").waitFor();
  await platform.service.post("/api/db/shared/tables/notes", { text: "for the audit" });
  await page.goto(`${platform.url}/admin/audit?target=db/shared/notes`);
  await page
    .getByRole("button", { name: /insert/ })
    .first()
    .click();
  await page.locator("pre", { hasText: "for the audit" }).waitFor();
});

browserTest("[AD28] equal entries of the audit log are each shown once when newer ones come", async () => {
  const notes = "/api/db/shared/tables/notes";
  await platform.service.post(notes, { id: "twice", text: "at first" });
  const update = { table: "notes", action: "update", id: "twice", data: { stars: 1 } };
  const operations = [update, { ...update, data: { stars: 2 } }];
  expect((await platform.service.post("/api/db/shared/transaction", { operations })).status).toBe(200);
  const { page } = await signedIn("/admin/audit?target=db/shared/notes/twice");
  const count = () => page.getByRole("button", { name: /^record/ }).count();
  await until("all are shown", async () => (await count()) === 3);
  await platform.service.patch(`${notes}/twice`, { stars: 3 });
  // As if the administrator came back to the page after a while, which loads again what is shown.
  await page.evaluate(
    "{ const now = Date.now; Date.now = () => now() + 60_000; window.dispatchEvent(new Event('visibilitychange')); }",
  );
  await until("the newer one is shown", async () => (await count()) > 3);
  expect(await count()).toBe(4);
});

browserTest("[AD29] settings show keys with their scopes, schedules, and the sources of rules", async () => {
  const { page } = await signedIn("/admin/settings");
  await page.getByText("auth:admin:*:read", { exact: true }).waitFor();
  await page.getByText("0 3 * * *", { exact: true }).waitFor();
  expect(await page.getByRole("region", { name: "Rules" }).textContent()).toContain("shared / notes");
  expect(await page.content()).not.toContain(READER);
});

browserTest("[AD31] keys are found by prefix, inserted, changed and deleted", async () => {
  const { page } = await signedIn("/admin/key-value");
  await page.getByRole("button", { name: "Insert" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Key").fill("weather/berlin");
  await dialog.getByLabel("Value").fill("{ degrees: 21 }");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("This is no JSON").waitFor();
  await dialog.getByLabel("Value").fill('{ "degrees": 21 }');
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "weather/berlin" }).click();
  await dialog.getByLabel("Value").fill('{ "degrees": 22 }');
  await dialog.getByRole("button", { name: "Save" }).click();
  const value = async () =>
    (await platform.service.post("/api/kv/cache", { action: "get", key: "weather/berlin" })).body["value"];
  await until("the value is set", async () => JSON.stringify(await value()) === '{"degrees":22}');
  await page.getByRole("textbox", { name: "Search" }).fill("nothing");
  await page.getByText("No key begins so").waitFor();
  await page.getByRole("textbox", { name: "Search" }).fill("wea");
  await page.getByRole("button", { name: "weather/berlin" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Delete the key weather/berlin?").waitFor();
  await page.getByRole("dialog", { name: "Delete" }).getByRole("button", { name: "Delete" }).click();
  await page.getByText("No key begins so").waitFor();
  expect(await value()).toBeNull();
});

browserTest(
  "[AD31] a value that is there already, or was changed by others meanwhile, is replaced after a question",
  async () => {
    const kv = (action: Record<string, string | number>) => platform.service.post("/api/kv/cache", action);
    const value = async () => (await kv({ action: "get", key: "limits" })).body["value"];
    await kv({ action: "set", key: "limits", value: 1 });
    const { page } = await signedIn("/admin/key-value");
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Insert" }).click();
    await dialog.getByLabel("Key").fill("limits");
    await dialog.getByLabel("Value").fill("2");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("The key has this value already").waitFor();
    expect(await value()).toBe(1);
    await dialog.getByRole("button", { name: "Replace" }).click();
    await until("it is replaced", async () => (await value()) === 2);
    await page.getByRole("button", { name: "limits" }).click();
    await until("the value is shown", async () => (await dialog.getByLabel("Value").inputValue()) === "2");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "hidden" });
    await kv({ action: "set", key: "limits", value: 3 });
    // A form never begins with what was loaded before.
    await page.getByRole("button", { name: "limits" }).click();
    await dialog.getByLabel("Value").waitFor();
    expect(await dialog.getByLabel("Value").inputValue()).toBe("3");
    await kv({ action: "set", key: "limits", value: 4 });
    await dialog.getByLabel("Value").fill("5");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("The value has changed meanwhile").waitFor();
    expect(await value()).toBe(4);
    await dialog.getByRole("button", { name: "Replace" }).click();
    await until("it is replaced", async () => (await value()) === 5);
  },
);

browserTest("[AD32] analytics shows requests by endpoint and table", async () => {
  await platform.service.get("/api/db/shared/tables/notes");
  const { page } = await signedIn("/admin/analytics?range=1h");
  await until("the request is counted", async () => {
    await page.reload();
    await page.getByRole("region", { name: "Endpoints" }).getByRole("row").nth(1).waitFor();
    return (await page.getByRole("region", { name: "Endpoints" }).textContent())?.includes("notes") === true;
  });
});

browserTest("[AD78] parameters of an address that somebody has written break no page", async () => {
  await platform.service.post("/api/kv/cache", { action: "set", key: "5", value: "of the key" });
  const { page, problems } = await signedIn("/admin/key-value?key=5&prefix=5");
  await page.getByText('"of the key"').waitFor();
  await page.goto(`${platform.url}/admin/sql?query=5`);
  await page.getByRole("textbox", { name: "Statements" }).getByText("5").waitFor();
  await page.goto(`${platform.url}/admin/realtime?channel=5&q=5`);
  await page.getByRole("dialog").getByText("5", { exact: true }).waitFor();
  await page.goto(`${platform.url}/admin/tables/shared/-/notes?filter=abc&orFilter=[1]`);
  await page.getByRole("gridcell", { name: "note 0", exact: true }).waitFor();
  await page.goto(`${platform.url}/admin/analytics?range=ever`);
  await page.getByText("Median").waitFor();
  for (const [path, text] of [
    ["tables/shared/-/constructor", "There is no such table"],
    ["tables/toString/-/valueOf", "There is no such table"],
    ["tables/shared/-/notes?sort=5&summary=toString&record={}", "Insert"],
    ["settings?view=schema&namespace=constructor", "No tables"],
    ["settings?view=none", "Service keys"],
    ["jobs?view=none&state=none", "Schedules"],
    ["jobs?view=5", "waiting"],
    ["push?view=5", "Devices"],
    ["push?view=log&user={}", "Log"],
    ["analytics?view=none", "Median"],
    ["logs?level=none", "Pause"],
    ["realtime?sort=none", "Most subscribers"],
    ["vectors?near=[1,2]&insert=none", "Vectors"],
    ["sql?database=[1]", "SQL"],
    ["users?as={}", "Insert"],
    ["audit?as=anonymous&more=1", "signin"],
  ] as const) {
    await page.goto(`${platform.url}/admin/${path}`);
    await page.getByRole("main").getByText(text).first().waitFor();
    await page.waitForLoadState("networkidle");
    expect([path, await page.getByRole("heading", { level: 1 }).count()]).toEqual([path, 1]);
  }
  // What the server says of them is no fault of the page.
  expect(problems.filter((problem) => !problem.startsWith("Failed to load resource"))).toEqual([]);
});

browserTest(
  "[AD30] a long key, an error and a long statement are accessible and fit",
  async () => {
    const key = "k".repeat(300);
    await platform.service.post("/api/kv/cache", { action: "set", key, value: 1 });
    expect((await platform.post("/api/functions/breaks")).status).toBe(200);
    await inEveryView(async (options) => {
      const { page } = await signedIn(`/admin/key-value?prefix=${key}`, options);
      await page.getByRole("button", { name: key }).waitFor();
      await expectAccessible(page);
      await page.getByRole("button", { name: key }).click();
      const close = page.getByRole("dialog").getByRole("button", { name: "Close" });
      await close.click();
      await page.goto(`${platform.url}/admin/jobs?state=failed`);
      await page.getByRole("button", { name: "breaks" }).click();
      await page.getByText("it breaks").waitFor();
      await expectAccessible(page);
      await page.goto(`${platform.url}/admin/sql?query=${encodeURIComponent(`SELECT '${"z".repeat(3_000)}'`)}`);
      await page.getByRole("textbox", { name: "Statements" }).getByText("zzz").waitFor();
      await expectAccessible(page);
    });
  },
  LONG_MS,
);

browserTest("[AD30] the state of a job is not cut where its name and its error are long", async () => {
  expect((await platform.post("/api/functions/breaks")).status).toBe(200);
  for (const width of [1440, 360]) {
    const { page } = await signedIn("/admin", { viewport: { width, height: 800 } });
    await page.route("**/api/admin/jobs?**", async (route) => {
      const answer = await route.fetch();
      const text = (await answer.text()).replaceAll('"it breaks"', `"${"it breaks ".repeat(100)}"`);
      await route.fulfill({ response: answer, body: text.replaceAll('"breaks"', `"${"breaks".repeat(12)}"`) });
    });
    await page.goto(`${platform.url}/admin/jobs?state=failed`);
    await page.getByRole("button", { name: "breaksbreaks" }).first().click();
    await page.getByText("it breaks it breaks").waitFor();
    const hidden = `Array.from(document.querySelectorAll("td .mantine-Badge-label"), (one) => one.scrollWidth - one.clientWidth)`;
    expect(new Set(await page.evaluate<number[]>(hidden))).toEqual(new Set([0]));
    const error = await page.getByText("it breaks it breaks").boundingBox();
    expect((error?.x ?? 0) + (error?.width ?? Number.POSITIVE_INFINITY)).toBeLessThan(width);
  }
});

browserTest("[AD28] what an entry of the audit log is about is read as a whole on a phone", async () => {
  const key = `audit-${"long-".repeat(40)}end`;
  await platform.service.post("/api/kv/cache", { action: "set", key, value: { a: "x".repeat(500) } });
  await platform.service.post("/api/kv/cache", { action: "delete", key });
  const { page } = await signedIn("/admin/audit?action=kv", { viewport: { width: 360, height: 800 } });
  await page.getByRole("button", { name: "kv" }).first().click();
  const target = page.locator(".wide-detail").getByText(key);
  await target.waitFor();
  const box = await target.boundingBox();
  expect((box?.x ?? 0) + (box?.width ?? Number.POSITIVE_INFINITY)).toBeLessThan(360);
});

const PAGES = [
  ...[
    "",
    "/tables",
    "/tables/shared/-/notes",
    "/users",
    "/key-value",
    "/sql",
    "/rooms",
    "/realtime",
    "/jobs",
    "/analytics",
    "/logs",
    "/audit",
  ],
  "/settings",
];

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [1440, 360]) {
    browserTest(
      `[AD30] every page is accessible and fits: ${colorScheme}, ${width} px`,
      async () => {
        const { page } = await signedIn("/admin", { bypassCSP: true, colorScheme, viewport: { width, height: 800 } });
        for (const path of PAGES) {
          await page.goto(`${platform.url}/admin${path}`);
          await page.getByRole("heading", { level: 1 }).waitFor();
          await page.waitForLoadState("networkidle");
          expect({ path, violations: await violationsOf(page) }).toEqual({ path, violations: [] });
          expect(await page.getByRole("main").count()).toBe(1);
          expect({ path, overflow: await overflowOf(page) }).toEqual({ path, overflow: 0 });
        }
      },
      LONG_MS,
    );
  }
}
