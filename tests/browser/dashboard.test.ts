import { afterAll, beforeAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import { readFilms } from "../../example/films.ts";
import { testBrowser } from "../support/browser.ts";
import { platformCommand, SERVICE_KEY, signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const CONFIG = `{
  databases: {
    shared: {
      tables: {
        films: {
          schema: {
            title: { type: "string", required: true, max: 200 }, director: { type: "string" }, genre: { type: "string" },
            imdbRating: { type: "number", min: 0, max: 10 }, releaseDate: { type: "date" },
          },
          fts: ["title", "director"],
          indexes: [{ fields: ["imdbRating"] }],
          access: { read: true },
        },
        diaries: { schema: { text: { type: "text" }, ownerId: { type: "string" } }, access: { read: (auth) => auth !== null && [["ownerId", "==", auth.id]] } },
      },
    },
    clubs: { instance: true, access: { create: true, open: true }, tables: { messages: { schema: { text: { type: "string" } } } } },
  },
  serviceKeys: { reader: { key: "${READER}", scopes: ["db:shared:films:read"] } },
}`;
const FILMS = "/api/db/shared/tables/films";
const GRID = "/admin/tables/shared/-/films";

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const films = (await readFilms()).map((film) => {
    const { id, title, director, genre, imdbRating, releaseDate } = film;
    return { ...{ id, title, director, genre, imdbRating, releaseDate } };
  });
  for (let at = 0; at < films.length; at += 500) {
    await platform.service.post(`${FILMS}/batch`, { inserts: films.slice(at, at + 500) as never });
  }
});
afterAll(() => platform.stop());

/** A browser in which an administrator is signed in. */
async function signedIn(path: string, key = SERVICE_KEY, options: Parameters<typeof openProfile>[0] = {}) {
  const profile = await openProfile(options);
  const response = await profile.context.request.post(`${platform.url}/api/admin/session`, { data: { key } });
  expect(response.status()).toBe(204);
  await profile.page.goto(platform.url + path);
  return profile;
}
const cell = (page: Page, text: string) => page.getByRole("gridcell", { name: text, exact: true });
const filmTitle = async (id: string) => (await platform.service.get(`${FILMS}/${id}`)).body["title"];

browserTest("[AD21] a service key signs in, is kept nowhere in the page, and Sign out ends the session", async () => {
  const { page, context, problems } = await openProfile();
  await page.goto(`${platform.url}/admin`);
  await page.getByLabel("Service key").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Invalid service key").waitFor();
  await page.getByLabel("Service key").fill(SERVICE_KEY);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  const kept = await page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])");
  expect(kept).not.toContain(SERVICE_KEY);
  expect(await page.evaluate("document.cookie")).toBe("");
  const [cookie] = await context.cookies(`${platform.url}/api/x`);
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/api" });
  await page.getByRole("button", { name: /^Signed in/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByLabel("Service key").waitFor();
  expect(
    (await context.request.get(`${platform.url}/api/admin/session`, { headers: { "x-platform-admin": "1" } })).status(),
  ).toBe(401);
  // Of the wrong key and of those without a session, and nothing else.
  expect(problems.filter((problem) => !problem.includes("401"))).toEqual([]);
});

browserTest("[AD21] a sign-out that the server does not hear of is said, and the session goes on", async () => {
  const { page } = await signedIn("/admin");
  await page.route("**/api/admin/session", (route) =>
    route.request().method() === "DELETE" ? route.abort() : route.continue(),
  );
  await page.getByRole("button", { name: /^Signed in/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByText("Not signed out").waitFor();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
});

browserTest("[AD21] who signs in after a session has ended sees nothing that another key has loaded", async () => {
  const { page, context } = await signedIn("/admin/tables");
  await page.getByRole("link", { name: "diaries" }).waitFor();
  const headers = { "x-platform-admin": "1" };
  expect((await context.request.delete(`${platform.url}/api/admin/session`, { headers })).status()).toBe(204);
  await page.getByRole("link", { name: "Users", exact: true }).click();
  await page.getByLabel("Service key").fill(READER);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Tables", exact: true }).click();
  await page.getByRole("link", { name: "films" }).waitFor();
  expect(await page.getByRole("link", { name: "diaries" }).count()).toBe(0);
});

browserTest("[AD21] a sign-out, and a sign-in with another key, hold in all tabs at once", async () => {
  const { page, context } = await signedIn("/admin/tables");
  await page.getByRole("link", { name: "diaries" }).waitFor();
  const other = await context.newPage();
  await other.goto(`${platform.url}/admin`);
  await other.getByRole("button", { name: /^Signed in/ }).click();
  await other.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByLabel("Service key").waitFor();
  await other.getByLabel("Service key").fill(READER);
  await other.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Signed in with the key reader" }).waitFor();
  expect(await page.getByRole("link", { name: "diaries" }).count()).toBe(0);
  // A link of admin-link signs in over the session of another key.
  const child = Bun.spawn([...platformCommand(), "admin-link", "--data", platform.dataDirectory], { stdout: "pipe" });
  await other.goto((await new Response(child.stdout).text()).trim());
  await page.getByRole("button", { name: "Signed in with the key root" }).waitFor();
});

browserTest("[AD15] [AD22] a link of admin-link signs in once, and leaves no code in the address", async () => {
  const child = Bun.spawn([...platformCommand(), "admin-link", "--data", platform.dataDirectory], { stdout: "pipe" });
  const link = (await new Response(child.stdout).text()).trim();
  expect(link).toStartWith(`${platform.url}/admin#code=`);
  const { page } = await openProfile();
  await page.goto(link);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  expect(page.url()).toBe(`${platform.url}/admin`);
  const other = await openProfile();
  await other.page.goto(link);
  await other.page.getByLabel("Service key").waitFor();
  await other.page.getByText("The link does not sign in").waitFor();
});

browserTest("[AD22] a link signs in where the sign-in is open already, whose address has no code then", async () => {
  const { page } = await openProfile();
  await page.goto(`${platform.url}/admin/tables`);
  await page.getByLabel("Service key").waitFor();
  const child = Bun.spawn([...platformCommand(), "admin-link", "--data", platform.dataDirectory], { stdout: "pipe" });
  const link = (await new Response(child.stdout).text()).trim();
  // Browsers load no page where the addresses differ in the fragment alone.
  await page.goto(link.replace("/admin#", "/admin/tables#"));
  await page.getByRole("heading", { level: 1, name: "Tables" }).waitFor();
  expect(page.url()).toBe(`${platform.url}/admin/tables`);
});

browserTest("[AD20] no inline script and no foreign source can run, and no page frames it", async () => {
  const { page } = await signedIn("/admin");
  const { headers } = await platform.get("/admin");
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy).toContain("script-src 'self';");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(headers.get("x-frame-options")).toBe("DENY");
  await page.evaluate(`{
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
  }`);
  expect(await page.evaluate("window.ran")).toBeUndefined();
});

browserTest("[AD21] the navigation shows what the scopes of the key allow", async () => {
  const names = async (key: string) => {
    const { page } = await signedIn("/admin/tables", key);
    await page.getByRole("heading", { level: 1 }).waitFor();
    return page.getByRole("navigation").getByRole("link").allTextContents();
  };
  expect(await names(SERVICE_KEY)).toContain("Tables");
  expect(await names(SERVICE_KEY)).toContain("Overview");
  expect(await names(READER)).toContain("Tables");
});

browserTest("[AD23] tables, instances and thousands of records are found by clicks", async () => {
  await platform.service.post("/api/db/clubs/noir/tables/messages", { text: "hello" });
  const { page, problems } = await signedIn("/admin/tables");
  await page.getByRole("link", { name: "films" }).click();
  await page.getByRole("heading", { level: 1, name: "films" }).waitFor();
  expect(await page.title()).toBe("films");
  await page.getByText("3,201 records").waitFor();
  await cell(page, "The Land Girls").waitFor();
  // To the end: only what is on the screen is there.
  await page.evaluate(`document.querySelector(".grid").scrollTo(0, 1e9)`);
  await cell(page, "film-3201").waitFor();
  expect(await page.getByRole("row").count()).toBeLessThan(80);
  await page.goto(`${platform.url}/admin/tables`);
  await page.getByRole("link", { name: "Instances" }).click();
  await page.getByRole("link", { name: "messages" }).click();
  await cell(page, "hello").waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD23] a search, a filter and a sort are in the address, and a link shows the same", async () => {
  const { page } = await signedIn(GRID);
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByRole("combobox", { name: "Field" }).click();
  await page.getByRole("option", { name: "imdbRating" }).click();
  await page.getByRole("combobox", { name: "Operator" }).click();
  await page.getByRole("option", { name: ">=", exact: true }).click();
  await page.getByLabel("Value").fill("9");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("imdbRating >= 9").waitFor();
  await page.getByRole("button", { name: "imdbRating", exact: true }).click();
  await page.getByRole("columnheader", { name: "imdbRating" }).waitFor();
  const titles = async () => (await page.getByRole("row").allTextContents()).slice(1);
  const total = (await platform.service.get(`${FILMS}/count`, { query: { filter: '[["imdbRating",">=",9]]' } })).body[
    "total"
  ];
  await page.getByText(`${total} records`).waitFor();
  const shown = await titles();
  const address = page.url();
  const other = await page.context().newPage();
  await other.goto(address);
  await other.getByText("imdbRating >= 9").waitFor();
  await other.getByText(`${total} records`).waitFor();
  expect((await other.getByRole("row").allTextContents()).slice(1)).toEqual(shown);
});

browserTest(
  "[AD23] a double click edits a cell; Escape cancels; what the server refuses is said at the cell",
  async () => {
    const { page } = await signedIn(`${GRID}?q=${encodeURIComponent('"Casablanca"')}`);
    const title = cell(page, "Casablanca");
    await title.dblclick();
    await page.getByRole("textbox", { name: "title" }).fill("Elsewhere");
    await page.keyboard.press("Escape");
    await title.waitFor();
    await title.dblclick();
    await page.getByRole("textbox", { name: "title" }).fill("x".repeat(201));
    await page.keyboard.press("Enter");
    await page
      .getByRole("alert")
      .getByText(/at most 200/)
      .waitFor();
    await page.getByRole("textbox", { name: "title" }).fill("Casablanca!");
    await page.keyboard.press("Enter");
    // While it is saved its cell has the same name.
    await until("it is saved", async () => (await filmTitle("film-0214")) === "Casablanca!");
    await cell(page, "Casablanca!").waitFor();
  },
);

browserTest(
  "[AD23] what is typed in a cell is for its record, also when others appear above it meanwhile",
  async () => {
    const { page } = await signedIn(`${GRID}?sort=createdAt%3Adesc`);
    const { body: edited } = await platform.service.post(FILMS, { title: "To be edited" });
    await cell(page, "To be edited").dblclick();
    await page.getByRole("textbox", { name: "title" }).fill("Edited");
    const { body: above } = await platform.service.post(FILMS, { title: "Above it" });
    // It has moved down by one.
    await cell(page, "To be edited").waitFor();
    await page.keyboard.press("Enter");
    await until("it is saved", async () => (await filmTitle(String(edited["id"]))) === "Edited");
    await cell(page, "Above it").waitFor();
    expect(await filmTitle(String(above["id"]))).toBe("Above it");
  },
);

browserTest("[AD23] records are inserted, and deleted after ten seconds unless that is undone", async () => {
  const { page } = await signedIn(`${GRID}?sort=createdAt%3Adesc`);
  await page.getByRole("button", { name: "Insert" }).click();
  await page.getByRole("dialog").getByLabel("title").fill("A new film");
  await page.getByRole("dialog").getByRole("button", { name: "Insert" }).click();
  await cell(page, "A new film").waitFor();
  const count = async () =>
    (
      await platform.service.get<{ total: number }>(`${FILMS}/count`, {
        query: { filter: '[["title","==","A new film"]]' },
      })
    ).body.total;
  expect(await count()).toBe(1);
  const choose = async () => {
    const row = page.getByRole("row").filter({ hasText: "A new film" });
    await row.getByRole("checkbox").check();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("One record deleted").waitFor();
  };
  await choose();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("One record deleted").waitFor({ state: "detached" });
  expect(await count()).toBe(1);
  await choose();
  // Leaving the page does not lose it.
  await page.goto(`${platform.url}/admin/tables`);
  await until("it is deleted", async () => (await count()) === 0);
});

browserTest("[AD24] a change by somebody else is shown, and so are new records", async () => {
  const { page } = await signedIn(`${GRID}?sort=createdAt%3Adesc`);
  await page.getByRole("row").nth(1).waitFor();
  const { body } = await platform.service.post(FILMS, { title: "Just now" });
  await cell(page, "Just now").waitFor();
  await platform.service.patch(`${FILMS}/${body["id"]}`, { title: "A moment later" });
  await cell(page, "A moment later").waitFor();
  await platform.service.delete(`${FILMS}/${body["id"]}`);
  await cell(page, "A moment later").waitFor({ state: "detached" });
});

browserTest("[AD25] View as shows what a user sees, and is for the root key alone", async () => {
  const [ann, bob] = [await signIn(platform), await signIn(platform)];
  for (const { id, email } of [ann, bob]) {
    await platform.service.post("/api/db/shared/tables/diaries", { text: `of ${email}`, ownerId: id });
  }
  const { page } = await signedIn("/admin/tables/shared/-/diaries");
  await cell(page, `of ${bob.email}`).waitFor();
  await page.getByRole("button", { name: "View as" }).click();
  await page.getByRole("textbox", { name: "View as" }).fill(ann.email);
  await page.getByRole("option").filter({ hasText: ann.id }).click();
  await cell(page, `of ${bob.email}`).waitFor({ state: "detached" });
  await cell(page, `of ${ann.email}`).waitFor();
  expect(page.url()).toContain(`as=${ann.id}`);
  // What ann may not delete, who views as her does not delete either.
  await page.getByRole("checkbox").first().check();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.goto(`${platform.url}/admin/tables/shared/-/diaries`);
  await cell(page, `of ${ann.email}`).waitFor();
  const scoped = await signedIn("/admin/tables", READER);
  await scoped.page.getByRole("heading", { level: 1 }).waitFor();
  expect(await scoped.page.getByRole("button", { name: "View as" }).count()).toBe(0);
});

browserTest("[AD23] the grid works with the keyboard alone", async () => {
  const { page } = await signedIn(GRID);
  await cell(page, "The Land Girls").click();
  await page.keyboard.press("ArrowDown");
  expect(await page.evaluate("document.activeElement.textContent")).toBe("First Love, Last Rites");
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: "title" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  await page.getByRole("dialog").getByRole("textbox", { name: "Search" }).fill("diar");
  await page.getByRole("dialog").getByText("diaries").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "diaries" }).waitFor();
});
