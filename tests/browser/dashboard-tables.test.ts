import { afterAll, beforeAll, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { readFilms } from "../../example/films.ts";
import { testBrowser } from "../support/browser.ts";
import { SERVICE_KEY, type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const CONFIG = `{
  databases: {
    shared: {
      tables: {
        films: {
          schema: {
            title: { type: "string", required: true, max: 200 }, director: { type: "string" },
            imdbRating: { type: "number", min: 0, max: 10 }, released: { type: "date" },
          },
          fts: ["title", "director"],
          indexes: [{ fields: ["imdbRating"] }, { fields: ["director", "released"] }],
          access: { read: true, update: (auth, film, next, { table }) => auth !== null && table("members").get(auth.id)?.role === "editor" && next.title !== "" },
        },
        members: { schema: { role: { type: "string" } } },
        reviews: {
          schema: {
            film: { type: "string", required: true, references: { table: "films", onDelete: "cascade" } },
            stars: { type: "integer", min: 1, max: 5 }, owner: { type: "string" }, tags: { type: "json" },
          },
          access: { read: (auth) => auth !== null && [["owner", "==", auth.id]] },
        },
        plain: { schema: { text: { type: "string" } } },
        loose: {},
      },
    },
  },
  serviceKeys: { reader: { key: "${READER}", scopes: ["db:shared:films:read"] } },
}`;
const T = "/api/db/shared/tables";
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const page = (table: string, query = "") => `/admin/tables/shared/-/${table}${query}`;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const films = (await readFilms()).map((film) => {
    const { id, title, director, imdbRating, releaseDate } = film;
    return { id, title, director, imdbRating, released: releaseDate };
  });
  for (let at = 0; at < films.length; at += 500) {
    await platform.service.post(`${T}/films/batch`, { inserts: films.slice(at, at + 500) as never });
  }
  // From its sources, the server builds the dashboard when it is asked for it.
  expect((await platform.get("/admin")).status).toBe(200);
  ann = await signIn(platform, { email: "ann@example.com" });
  await platform.service.post(`${T}/members`, { id: ann.id, role: "guest" });
  await platform.service.post(`${T}/reviews`, {
    id: "r1",
    film: "film-0001",
    stars: 4,
    owner: ann.id,
    tags: ["quiet"],
  });
  await platform.service.post(`${T}/reviews`, { id: "r2", film: "film-0002", stars: 2, owner: "somebody else" });
});
afterAll(() => platform.stop());

/** A browser in which an administrator is signed in. */
async function signedIn(path: string, key = SERVICE_KEY, options: Parameters<typeof openProfile>[0] = {}) {
  // axe is brought in by the test: the page's own policy allows no such script.
  const profile = await openProfile({ bypassCSP: true, ...options });
  const response = await profile.context.request.post(`${platform.url}/api/admin/session`, { data: { key } });
  expect(response.status()).toBe(204);
  await profile.page.goto(platform.url + path);
  return profile;
}
const cell = (on: Page, text: string) => on.getByRole("gridcell", { name: text, exact: true });
const region = (on: Page, name: string) => on.getByRole("region", { name, exact: true });
const menuItem = async (on: Page, column: string, item: string) => {
  await on.getByRole("columnheader", { name: column }).hover();
  await on.getByRole("button", { name: `Column ${column}`, exact: true }).click();
  await on.getByRole("menuitem", { name: item, exact: true }).click();
  await on.getByRole("menu").waitFor({ state: "detached" });
};
const headers = async (on: Page) =>
  (await on.getByRole("columnheader").allTextContents()).filter((text) => text !== "");

browserTest("[AD55] a record's rules are tried as a user: which decides, and what it looked up", async () => {
  const { page: on, problems } = await signedIn(page("films", "?record=film-0001"));
  await on.getByRole("tab", { name: "Rules" }).click();
  await region(on, "Read").getByText("Allowed").waitFor();
  await region(on, "Update").getByText("Denied, 401").waitFor();
  await region(on, "Delete").getByText("There is no rule for delete").waitFor();
  await on.getByRole("combobox", { name: "Try as" }).click();
  await on.getByRole("option", { name: "ann@example.com" }).click();
  await region(on, "Update").getByText("Denied, 403").waitFor();
  expect(await region(on, "Update").textContent()).toContain(`get ${ann.id}`);
  expect(await region(on, "Update").textContent()).toContain('next.title !== ""');
  await platform.service.patch(`${T}/members/${ann.id}`, { role: "editor" });
  await on.getByRole("button", { name: "Run" }).click();
  await region(on, "Update").getByText("Allowed").waitFor();
  await on.getByRole("textbox", { name: "Changes of the update" }).fill('{ "title": "" }');
  await on.getByRole("button", { name: "Run" }).click();
  await region(on, "Update").getByText("Denied, 403").waitFor();
  await on.getByRole("textbox", { name: "Changes of the update" }).fill('{ "imdbRating": 11 }');
  await on.getByRole("button", { name: "Run" }).click();
  await on.getByText(/imdbRating must be at most 10/).waitFor();
  expect((await platform.service.get(`${T}/films/film-0001`)).body["imdbRating"]).toBe(6.1);
  // The address shows the same to whom it is sent.
  const other = await on.context().newPage();
  await other.goto(on.url());
  await region(other, "Update").getByText("Allowed").waitFor();
  expect(problems.filter((problem) => !problem.includes("400"))).toEqual([]);
});

browserTest(
  "[AD55] whoever views as a user sees why a record is hidden; other keys than root try nothing",
  async () => {
    const { page: on } = await signedIn(page("reviews", `?as=${ann.id}&record=r2`));
    await on.getByRole("alert").getByText("There is no record").waitFor();
    await on.getByRole("tab", { name: "Rules" }).click();
    await region(on, "Read").getByText("Denied, 404").waitFor();
    await region(on, "Read").getByText(`[["owner","==","${ann.id}"]]`).waitFor();
    const scoped = await signedIn(page("films", "?record=film-0001&panel=rules"), READER);
    await scoped.page.getByRole("tab", { name: "JSON" }).waitFor();
    expect(await scoped.page.getByRole("tab").allTextContents()).toEqual(["Records", "Schema", "Fields", "JSON"]);
    for (const name of ["Save", "Duplicate", "Delete"]) {
      expect(await scoped.page.getByRole("button", { name }).count()).toBe(0);
    }
  },
);

browserTest(
  "[AD56] the schema of a table: fields, indexes, references that are followed, rules and sizes",
  async () => {
    const { page: on, problems } = await signedIn(page("films"));
    await on.getByRole("tab", { name: "Schema" }).click();
    await region(on, "Size").getByText("3,201").waitFor();
    const fields = await region(on, "Fields").textContent();
    for (const text of ["title", "required", "at most 200 characters", "searched", "datetime"])
      expect(fields).toContain(text);
    const indexes = await region(on, "Indexes").textContent();
    for (const text of ["imdbRating", "director, released", "full-text search"]) expect(indexes).toContain(text);
    expect(await region(on, "Rules").textContent()).toContain('table("members")');
    await region(on, "Referred to by").getByRole("link", { name: "reviews.film" }).click();
    await on.getByRole("heading", { level: 1, name: "reviews" }).waitFor();
    await region(on, "Fields").getByRole("link", { name: "films" }).click();
    await on.getByRole("heading", { level: 1, name: "films" }).waitFor();
    expect(problems).toEqual([]);
    // A key without the right to the config's rules does not see them.
    const scoped = await signedIn(page("films", "?tab=schema"), READER);
    await region(scoped.page, "Size").getByText("3,201").waitFor();
    expect(await region(scoped.page, "Rules").count()).toBe(0);
    expect(await scoped.page.content()).not.toContain("members");
  },
);

browserTest("[AD57] a reference is picked by a search, in a form and in a cell, and followed", async () => {
  const { page: on } = await signedIn(page("reviews", "?record="));
  const dialog = on.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "film" }).fill("the land g");
  await on.getByRole("option", { name: /The Land Girls/ }).click();
  expect(await dialog.getByRole("textbox", { name: "film" }).inputValue()).toBe("film-0001");
  await dialog.getByRole("textbox", { name: "stars" }).fill("3");
  await dialog.getByRole("button", { name: "Insert" }).click();
  await on.getByText("3 records").waitFor();
  /** A reference is shown as the title of its record, with the id as its tooltip. */
  const reference = (id: string) => on.getByRole("gridcell").filter({ has: on.locator(`[title=${id}]`) });
  await reference("film-0002").dblclick();
  // Not how it begins, but a word in it.
  await on.getByRole("textbox", { name: "film" }).fill("casablanca");
  await on
    .getByRole("option", { name: /Casablanca/ })
    .first()
    .waitFor();
  await on.keyboard.press("ArrowDown");
  await on.keyboard.press("Enter");
  const filmOfReview = async () => (await platform.service.get(`${T}/reviews/r2`)).body["film"];
  await until("it is saved", async () => (await filmOfReview()) === "film-0214");
  await on.getByRole("textbox", { name: "film" }).waitFor({ state: "detached" });
  await reference("film-0214").focus();
  await on.keyboard.press("Alt+Enter");
  await on.getByRole("heading", { level: 1, name: "films" }).waitFor();
  expect(await on.getByRole("dialog").getByRole("textbox", { name: "title" }).inputValue()).toBe("Casablanca");
});

browserTest("[AD57] a record is duplicated under a new id", async () => {
  const { page: on } = await signedIn(page("films", "?record=film-0007"));
  await on.getByRole("dialog").getByRole("button", { name: "Duplicate" }).click();
  const title = on.getByRole("dialog").getByRole("textbox", { name: "title" });
  await on.getByRole("dialog").getByText("New record in films").waitFor();
  expect(await title.inputValue()).toBe("Following");
  await title.fill("Following again");
  await on.getByRole("dialog").getByRole("button", { name: "Insert" }).click();
  await until("it is inserted", async () => {
    const query = { filter: '[["title","==","Following again"]]' };
    const { items } = (await platform.service.get<{ items: Record<string, unknown>[] }>(`${T}/films`, { query })).body;
    return items.length === 1 && items[0]?.["director"] === "Christopher Nolan" && items[0]["id"] !== "film-0007";
  });
  await platform.service.post(`${T}/films/batch-by-filter`, {
    action: "delete",
    filter: [["title", "==", "Following again"]],
  } as never);
});

/** Acts as if the administrator came back to the page after a while, which loads again what is shown. */
const comeBack = (on: Page) =>
  on.evaluate(
    "{ const now = Date.now; Date.now = () => now() + 60_000; window.dispatchEvent(new Event('visibilitychange')); }",
  );

browserTest(
  "[AD23] a form keeps what was typed when the record is changed meanwhile, and saves that alone",
  async () => {
    const film = { id: "formed", title: "Before", director: "Ann" };
    expect((await platform.service.post(`${T}/films`, film)).status).toBe(201);
    const { page: on } = await signedIn(page("films", "?record=formed"));
    const title = on.getByRole("dialog").getByRole("textbox", { name: "title" });
    await title.fill("Typed");
    await platform.service.patch(`${T}/films/formed`, { director: "Bob" });
    const loaded = on.waitForResponse(`**${T}/films/formed`);
    await comeBack(on);
    await (await loaded).finished();
    await on.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
    expect(await title.inputValue()).toBe("Typed");
    await on.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await title.waitFor({ state: "detached" });
    expect((await platform.service.get(`${T}/films/formed`)).body).toMatchObject({ title: "Typed", director: "Bob" });
    // A form begins with what is stored now.
    await on.goBack();
    await until("it is shown", async () => (await title.inputValue()) === "Typed");
    await platform.service.delete(`${T}/films/formed`);
  },
);

browserTest("[AD23] a number that would become none is refused at its cell", async () => {
  const { page: on } = await signedIn(page("reviews"));
  await cell(on, "4").dblclick();
  // JSON has no infinity: it would be null.
  await on.getByRole("textbox", { name: "stars" }).fill("1e999");
  await on.keyboard.press("Enter");
  await on.getByRole("alert").waitFor();
  expect((await platform.service.get(`${T}/reviews/r1`)).body["stars"]).toBe(4);
});

browserTest("[AD57] a search marks what it found, and texts with tags stay texts", async () => {
  await platform.service.post(`${T}/films`, { id: "tagged", title: "<mark>Zanzibar</mark> & <b>more</b>" });
  const { page: on } = await signedIn(page("films", "?q=zanzi"));
  const found = cell(on, "<mark>Zanzibar</mark> & <b>more</b>");
  await found.waitFor();
  expect(await found.locator("mark").allTextContents()).toEqual(["Zanzibar"]);
  await platform.service.delete(`${T}/films/tagged`);
});

browserTest("[AD58] the summary of a column follows the filter, and is in the address", async () => {
  const { page: on } = await signedIn(page("films"));
  await cell(on, "The Land Girls").waitFor();
  await menuItem(on, "imdbRating", "Summary");
  const summary = region(on, "Summary of imdbRating");
  await summary.getByText("3,201").waitFor();
  const expected = async (filter: string) => {
    const query = { select: "count(),sum(imdbRating),avg(imdbRating),min(imdbRating),max(imdbRating)", filter };
    const { groups } = (
      await platform.service.get<{ groups: Record<string, number>[] }>(`${T}/films/aggregate`, { query })
    ).body;
    return Object.values(groups[0] ?? {}).map((value) => new Intl.NumberFormat("en").format(value));
  };
  for (const value of await expected("[]")) expect(await summary.textContent()).toContain(value);
  const filter = '[["imdbRating",">=",9]]';
  await on.goto(`${on.url()}&filter=${encodeURIComponent(filter)}`);
  const [count = "", ...values] = await expected(filter);
  await summary.getByText(count, { exact: true }).waitFor();
  for (const value of values) expect(await summary.textContent()).toContain(value);
  await summary.getByRole("button", { name: "Close the summary" }).click();
  await summary.waitFor({ state: "detached" });
  expect(on.url()).not.toContain("summary");
});

browserTest("[AD61] conditions of which one must match narrow the list beside those that all must", async () => {
  const all = encodeURIComponent('[["imdbRating",">=",8]]');
  const { page: on } = await signedIn(page("films", `?filter=${all}&summary=imdbRating`));
  const add = async (operator: string, value: string) => {
    await on.getByRole("button", { name: "Filter" }).click();
    await on.getByRole("combobox", { name: "Field" }).click();
    await on.getByRole("option", { name: "director" }).click();
    await on.getByRole("combobox", { name: "Operator" }).click();
    await on.getByRole("option", { name: operator, exact: true }).click();
    await on.getByLabel("Value").fill(value);
    await on.getByText("One of several").click();
    await on.getByRole("button", { name: "Apply" }).click();
  };
  await add("icontains", "kubrick");
  await add("==", "Ridley Scott");
  await on.getByText("and one of").waitFor();
  const any = '[["director","icontains","kubrick"],["director","==","Ridley Scott"]]';
  const query = { filter: '[["imdbRating",">=",8]]', orFilter: any };
  const { total } = (await platform.service.get<{ total: number }>(`${T}/films/count`, { query })).body;
  expect(total).toBeGreaterThan(2);
  await on.getByText(`shared, ${total} records`).waitFor();
  await region(on, "Summary of imdbRating").getByText(String(total), { exact: true }).waitFor();
  await on.getByRole("button", { name: "Remove the condition director == Ridley Scott" }).click();
  await on.getByText("director == Ridley Scott").waitFor({ state: "detached" });
  expect(JSON.parse(new URL(on.url()).searchParams.get("orFilter") ?? "")).toEqual([
    ["director", "icontains", "kubrick"],
  ]);
});

browserTest(
  "[AD62] a table without a schema shows the fields that its records have, and edits them as JSON",
  async () => {
    await platform.service.post(`${T}/loose`, { id: "l1", name: "first", tags: ["a"], count: 3 });
    const { page: on, problems } = await signedIn(page("loose"));
    await cell(on, '["a"]').waitFor();
    expect(await headers(on)).toEqual(["id", "name", "tags", "count", "createdAt", "updatedAt"]);
    await cell(on, "3").dblclick();
    await on.getByRole("textbox", { name: "count" }).fill("4");
    await on.keyboard.press("Enter");
    await cell(on, "4").waitFor();
    await cell(on, "l1").click();
    const dialog = on.getByRole("dialog");
    await dialog.getByRole("textbox", { name: "Fields" }).fill('{ "name": "second", "place": { "x": 1 }, "count": 4 }');
    await dialog.getByRole("button", { name: "Save" }).click();
    await cell(on, '{"x":1}').waitFor();
    const { name, place, count, tags } = (await platform.service.get(`${T}/loose/l1`)).body;
    expect({ name, place, count, tags }).toEqual({ name: "second", place: { x: 1 }, count: 4, tags: undefined });
    await on.getByRole("button", { name: "Insert" }).click();
    await dialog.getByRole("textbox", { name: "Fields" }).fill("[1]");
    await dialog.getByRole("button", { name: "Insert" }).click();
    await dialog.getByText("The fields are a JSON object").waitFor();
    await dialog.getByRole("textbox", { name: "Fields" }).fill('{ "name": "third" }');
    await dialog.getByRole("button", { name: "Insert" }).click();
    await cell(on, "third").waitFor();
    expect(problems).toEqual([]);
  },
);

browserTest("[AD59] columns are pinned, moved and hidden, which this browser keeps for the table", async () => {
  const { page: on } = await signedIn(page("films"));
  await cell(on, "The Land Girls").waitFor();
  expect(await headers(on)).toEqual(["id", "title", "director", "imdbRating", "released", "createdAt", "updatedAt"]);
  await menuItem(on, "released", "Move left");
  await menuItem(on, "director", "Hide");
  await menuItem(on, "imdbRating", "Pin");
  const chosen = ["id", "imdbRating", "title", "released", "createdAt", "updatedAt"];
  expect(await headers(on)).toEqual(chosen);
  await on.reload();
  await cell(on, "The Land Girls").waitFor();
  expect(await headers(on)).toEqual(chosen);
  await menuItem(on, "imdbRating", "Move left");
  expect((await headers(on)).slice(0, 2)).toEqual(["imdbRating", "id"]);
  await on.goto(`${platform.url}${page("plain")}`);
  await on.goto(`${platform.url}${page("films")}`);
  await cell(on, "The Land Girls").waitFor();
  await on.getByRole("button", { name: "Columns" }).click();
  await on.getByRole("button", { name: "As declared" }).click();
  expect((await headers(on)).slice(0, 3)).toEqual(["id", "title", "director"]);
});

/** Chooses a file in the dialog of imports. */
async function chooseFile(on: Page, name: string, text: string): Promise<void> {
  await on.getByRole("button", { name: "Import and export" }).click();
  await on.getByRole("menuitem", { name: "Import a file" }).click();
  await on.locator("input[type=file]").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
}

browserTest("[AD60] a CSV file is shown before it is imported, and what is refused names its line", async () => {
  const { page: on } = await signedIn(page("plain"));
  const rows = Array.from(
    { length: 1200 },
    (_, index) => `p${String(index).padStart(4, "0")},"text, ${index}\nof two lines"`,
  );
  await chooseFile(on, "plain.csv", `id,text\n${rows.join("\n")}\n`);
  const dialog = on.getByRole("dialog");
  await region(on, "Preview").getByText("p0009").waitFor();
  expect(await region(on, "Preview").getByText("p0010").count()).toBe(0);
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog.getByText("1,200 records imported into plain").waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await on.getByText("1,200 records").waitFor();
  expect((await platform.service.get(`${T}/plain/p1199`)).body["text"]).toBe("text, 1199\nof two lines");

  // The same ids again: nothing of a refused batch is there.
  await chooseFile(on, "more.csv", `id,text\nnew,1\np0001,2\n`);
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog
    .getByRole("alert")
    .getByText(/line 3/)
    .waitFor();
  await dialog.getByText("0 records of the file are in plain.").waitFor();
  expect((await platform.service.get(`${T}/plain/new`)).status).toBe(404);
  await dialog.getByRole("checkbox", { name: "Update records whose id exists" }).check();
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog.getByText("2 records imported into plain").waitFor();
  expect((await platform.service.get(`${T}/plain/p0001`)).body["text"]).toBe("2");
});

browserTest("[AD60] NDJSON and JSON are imported, and mistakes in a file are said before", async () => {
  const { page: on } = await signedIn(page("reviews"));
  const dialog = on.getByRole("dialog");
  await chooseFile(on, "a.ndjson", `{"id":"n1","film":"film-0003","tags":{"a":[1]}}\n\n{"id":"n2","film":"film-0004"}`);
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog.getByText("2 records imported into reviews").waitFor();
  expect((await platform.service.get(`${T}/reviews/n1`)).body["tags"]).toEqual({ a: [1] });
  await dialog.locator("input[type=file]").waitFor({ state: "attached" });
  const choose = (name: string, text: string, encoding: BufferEncoding = "utf8") =>
    on.locator("input[type=file]").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text, encoding) });
  await choose("b.json", `[{"id":"j1","film":"film-0003"}, 7]`);
  await dialog.getByText("element 2: must be a JSON object").waitFor();
  await choose("c.ndjson", `{"id":"c1","film":"film-0003"}\n{"id":`);
  await dialog.getByText(/line 2: is not valid JSON/).waitFor();
  await choose("d.csv", "id,film,colour\nd1,film-0003,red\n");
  await dialog.getByText("The table has no field colour").waitFor();
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog
    .getByRole("alert")
    .getByText(/line 2: .*colour/)
    .waitFor();
  await choose("e.csv", 'id,film\n"d1,film-0003\n');
  await dialog
    .getByRole("alert")
    .getByText(/line 1/)
    .waitFor();
  await choose("f.csv", "id,film\nd1\n");
  await dialog.getByText("line 2: has 1 cell, but the first line names 2 fields").waitFor();
  await choose("long.json", `[{"id":"j1","film":"film-0003","tags":12345678901234567890}]`);
  await dialog.getByText(/0\.tags is an integer that a double cannot hold exactly/).waitFor();
  // As spreadsheets save it: imported as UTF-8 it would lose letters.
  await choose("latin.csv", "id,owner\nd1,Zoë\n", "latin1");
  await dialog.getByText("latin.csv is not encoded as UTF-8").waitFor();
  await choose("g.json", `[{"id":"j1","film":"film-0003","stars":5}]`);
  await dialog.getByRole("button", { name: "Import", exact: true }).click();
  await dialog.getByText("1 record imported into reviews").waitFor();
  await platform.service.post(`${T}/reviews/batch`, { deletes: ["n1", "n2", "j1"] });
});

browserTest("[AD60] what filter and search leave is exported, and imported again as it was", async () => {
  const { page: on, problems } = await signedIn(
    page("films", `?filter=${encodeURIComponent('[["imdbRating",">=",9]]')}&sort=title:desc`),
  );
  await on.getByRole("row").nth(1).waitFor();
  const exported = async (item: string) => {
    await on.getByRole("button", { name: "Import and export" }).click();
    const [download] = await Promise.all([
      on.waitForEvent("download"),
      on.getByRole("menuitem", { name: item }).click(),
    ]);
    return { name: download.suggestedFilename(), text: await Bun.file((await download.path()) ?? "").text() };
  };
  const query = { filter: '[["imdbRating",">=",9]]', sort: "title:desc", limit: 100 };
  const { items } = (await platform.service.get<{ items: { id: string; title: string }[] }>(`${T}/films`, { query }))
    .body;
  const ndjson = await exported("Export as NDJSON");
  expect(ndjson.name).toBe("films.ndjson");
  expect(
    ndjson.text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual(items);
  const csv = await exported("Export as CSV");
  expect(csv.name).toBe("films.csv");
  expect(csv.text.split("\r\n")[0]).toBe("id,title,director,imdbRating,released,createdAt,updatedAt");
  await chooseFile(on, "films.csv", csv.text);
  await on.getByRole("checkbox", { name: "Update records whose id exists" }).check();
  await on.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click();
  await on.getByText(`${items.length} records imported into films`).waitFor();
  const again = (await platform.service.get<{ items: { id: string }[] }>(`${T}/films`, { query })).body.items;
  const withoutTime = (records: object[]) => records.map((record) => ({ ...record, updatedAt: null }));
  expect(withoutTime(again)).toEqual(withoutTime(items));
  await on.goto(`${platform.url}${page("films", "?q=casablanca")}`);
  await cell(on, "Casablanca").waitFor();
  const found = await exported("Export as NDJSON");
  expect(found.text).toContain('"title":"Casablanca"');
  expect(found.text).not.toContain("highlights");
  // More than one page.
  await on.goto(`${platform.url}${page("films")}`);
  await cell(on, "The Land Girls").waitFor();
  expect((await exported("Export as NDJSON")).text.trim().split("\n").length).toBe(3201);
  expect(problems).toEqual([]);
  const scoped = await signedIn(page("films"), READER);
  await scoped.page.getByRole("button", { name: "Import and export" }).click();
  expect(await scoped.page.getByRole("menuitem").allTextContents()).toEqual(["Export as CSV", "Export as NDJSON"]);
});

browserTest(
  "[AD30] [AD55] [AD56] axe finds nothing, at 360 pixels nothing is wider than the screen, in both themes",
  async () => {
    const paths = [
      page("films", `?summary=imdbRating&q=land&filter=${encodeURIComponent('[["imdbRating",">=",1]]')}`),
      page("films", "?tab=schema"),
      page("films", `?record=film-0001&panel=rules&tryAs=${ann.id}`),
      page("reviews", "?record=r1"),
    ];
    for (const colorScheme of ["light", "dark"] as const) {
      for (const width of [1280, 360]) {
        const { page: on } = await signedIn("/admin", SERVICE_KEY, { colorScheme, viewport: { width, height: 740 } });
        for (const path of paths) {
          await on.goto(platform.url + path);
          const isRules = path.includes("panel=rules");
          if (path.includes("tab=schema")) await region(on, "Size").getByText("kB").first().waitFor();
          else if (isRules) await region(on, "Delete").waitFor();
          else
            await cell(on, path.includes("reviews") ? "r1" : "film-0001")
              .first()
              .waitFor({ state: "attached" });
          await on.waitForFunction("document.getAnimations().every((one) => one.playState !== 'running')");
          await on.evaluate(AXE);
          const { violations } = (await on.evaluate(
            "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'] })",
          )) as { violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] };
          const found = violations.map(({ id, nodes }) => ({
            id,
            nodes: nodes.slice(0, 3).map((node) => node.html.slice(0, 300) + node.failureSummary),
          }));
          expect({ path, colorScheme, width, found }).toEqual({ path, colorScheme, width, found: [] });
          expect(await on.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
        }
      }
    }
  },
  120_000,
);
