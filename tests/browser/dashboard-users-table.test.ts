import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { openDashboard } from "../support/dashboard.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../support/index.ts";

// The table of users in the dashboard, and references to it.

const CONFIG = `{
  auth: { users: { in: "shared", schema: { bio: { type: "text" } } } },
  databases: { shared: { tables: {
    posts: { schema: { title: { type: "string" }, authorId: { references: "users", onDelete: "setNull" } } },
    docs: { schema: { editorIds: { type: "references", references: "users", onDelete: "remove" } } },
  } },
  far: { tables: { notes: { schema: { byId: { references: "shared/users", onDelete: "setNull" } } } } },
  boards: { instance: true, tables: { cards: { schema: { guestIds: { type: "references", references: "shared/users", onDelete: "remove" } } } } } },
}`;

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
let ann: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
  await ann.patch("/api/auth/me", { displayName: "Ann" });
});
afterAll(() => platform.stop());

const TABLES = "/api/db/shared/tables";

browserTest(
  "[TB883] users are not inserted or deleted there; their names can be changed, and addresses are read-only",
  async () => {
    const { page, problems } = await openDashboard(browser, platform, "/admin/tables/shared/-/users");
    await page.getByText("Ann", { exact: true }).first().waitFor();
    expect(await page.getByRole("button", { name: "Insert" }).count()).toBe(0);
    await page.goto(`${platform.url}/admin/tables/shared/-/users?record=${ann.id}`);
    const drawer = page.getByRole("dialog");
    const name = drawer.getByLabel("displayName");
    await name.waitFor();
    expect(await drawer.getByRole("button", { name: "Delete" }).count()).toBe(0);
    expect(await drawer.getByRole("button", { name: "Duplicate" }).count()).toBe(0);
    expect(await drawer.getByLabel("email").isEditable()).toBe(false);
    await name.fill("Anna");
    await drawer.getByRole("button", { name: "Save" }).click();
    await page.getByText("Anna", { exact: true }).first().waitFor();
    const { body } = await ann.get<{ user: { displayName: string } }>("/api/auth/me");
    expect(body.user.displayName).toBe("Anna");
    await page.goto(`${platform.url}/admin/tables/shared/-/users?record=${ann.id}`);
    await drawer.getByRole("link", { name: "Account" }).click();
    await page.waitForURL(`**/admin/users/${ann.id}`);
    expect(problems).toEqual([]);
  },
);

browserTest("[TB883] a reference is picked by the name of a user, and counted on the page of the account", async () => {
  await ann.patch("/api/auth/me", { displayName: "Ann" });
  const post = await platform.service.post<{ id: string }>(`${TABLES}/posts`, { title: "first" });
  await platform.service.post(`${TABLES}/docs`, { editorIds: [ann.id] });
  const { page, problems } = await openDashboard(
    browser,
    platform,
    `/admin/tables/shared/-/posts?record=${post.body.id}`,
  );
  const drawer = page.getByRole("dialog");
  await drawer.getByLabel("authorId").fill("An");
  await page.getByRole("option", { name: "Ann" }).click();
  await drawer.getByRole("button", { name: "Save" }).click();
  await page.getByText("Ann", { exact: true }).first().waitFor();
  const { body } = await platform.service.get(`${TABLES}/posts/${post.body.id}`);
  expect(body["authorId"]).toBe(ann.id);
  await page.goto(`${platform.url}/admin/users/${ann.id}`);
  const records = page.getByRole("table", { name: "Referred by" });
  for (const name of ["shared / posts", "shared / docs"]) await records.getByRole("link", { name }).waitFor();
  await records.getByRole("link", { name: "shared / docs" }).click();
  await page.waitForURL("**/docs?**");
  await page.getByText("1 records").waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD125] a record shows which records of other files refer to it, those of instances too", async () => {
  const user = await signIn(platform);
  const noted = () => platform.service.post<{ id: string }>("/api/db/far/tables/notes", { byId: user.id });
  const [note] = [await noted(), await noted()];
  await platform.service.post("/api/db/boards/red/tables/cards", { guestIds: [ann.id, user.id] });
  const { page, problems } = await openDashboard(browser, platform, `/admin/tables/shared/-/users?record=${user.id}`);
  await page.getByRole("dialog").getByRole("tab", { name: "Referred by" }).click();
  const found = page.getByRole("table", { name: "Referred by" });
  await found.getByRole("row", { name: "far / notes byId 2" }).waitFor();
  await found.getByRole("row", { name: "boards / red / cards guestIds 1" }).waitFor();
  expect(await found.getByRole("row").count()).toBe(2);
  await found.getByRole("link", { name: "boards / red / cards" }).click();
  await page.waitForURL("**/tables/boards/red/cards?**");
  await page.getByText("1 records").waitFor();
  // The page of the account says the same, and the schema names the tables.
  await page.goto(`${platform.url}/admin/users/${user.id}`);
  await found.getByRole("row", { name: "far / notes byId 2" }).waitFor();
  await page.goto(`${platform.url}/admin/tables/shared/-/users?tab=schema`);
  await page.getByText("far/notes.byId").waitFor();
  await page.getByText("boards/cards.guestIds").waitFor();
  // No table refers to notes: there is no tab.
  await page.goto(`${platform.url}/admin/tables/far/-/notes?record=${note.body.id}`);
  await page.getByRole("dialog").getByRole("tab", { name: "JSON" }).waitFor();
  expect(await page.getByRole("tab", { name: "Referred by" }).count()).toBe(0);
  expect(problems).toEqual([]);
});

browserTest("[AD143] deleting a user says what has ended", async () => {
  const bob = await signIn(platform);
  await platform.service.post(`${TABLES}/posts`, { title: "second", authorId: bob.id });
  await platform.service.post(`${TABLES}/posts`, { title: "third", authorId: bob.id });
  const { page, problems } = await openDashboard(browser, platform, `/admin/users/${bob.id}`);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("Ended: sessions: 1, records of shared/posts: 2").waitFor();
  await page.waitForURL("**/admin/users");
  expect(problems).toEqual([]);
});
