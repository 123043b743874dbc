import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { expectAccessible, openDashboard } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

// Places and several references in the dashboard.

const READER = "reader-of-records-0123456789abcdefghij";
const CONFIG = `{
  serviceKeys: { reader: { key: "${READER}", scopes: ["db:*:*:read"] } },
  databases: { shared: { tables: {
    labels: { schema: { name: { type: "string" } }, fts: ["name"] },
    tasks: {
      schema: {
        title: { type: "string" }, at: { type: "geo" },
        mainId: { references: "labels" },
        labelIds: { type: "references", references: "labels", max: 8 },
      },
    },
  } } },
}`;
const TABLES = "/api/db/shared/tables";
const NAMES = ["Design", "Urgent", "Later", "Bug", "Idea", "Docs", "Wish"];

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const inserts = NAMES.map((name) => ({ id: `l-${name.toLowerCase()}`, name }));
  await platform.service.post(`${TABLES}/labels/batch`, { inserts });
});
afterAll(() => platform.stop());

const stored = async (id: string) => (await platform.service.get(`${TABLES}/tasks/${id}`)).body;

browserTest("[AD123] a place is two numbers, and what the server refuses of them is shown there", async () => {
  await platform.service.post(`${TABLES}/tasks`, { id: "place", title: "Somewhere", at: { lat: 48.2, lng: 16.37 } });
  const { page, problems } = await openDashboard(browser, platform, "/admin/tables/shared/-/tasks?record=place");
  const drawer = page.getByRole("dialog");
  const [lat, lng] = [drawer.getByLabel("at: latitude"), drawer.getByLabel("at: longitude")];
  await lat.waitFor();
  expect([await lat.inputValue(), await lng.inputValue()]).toEqual(["48.2", "16.37"]);
  await lat.fill("95");
  await drawer.getByRole("button", { name: "Save" }).click();
  await drawer.getByText("lat", { exact: false }).filter({ hasText: "90" }).first().waitFor();
  // A dot at the end is on the way to a number.
  await lat.fill("");
  await lat.pressSequentially("-33.5");
  expect(await lat.inputValue()).toBe("-33.5");
  await lng.fill("151.2");
  await drawer.getByRole("button", { name: "Save" }).click();
  await drawer.waitFor({ state: "hidden" });
  expect(await stored("place")).toMatchObject({ at: { lat: -33.5, lng: 151.2 } });

  await page.goto(`${platform.url}/admin/tables/shared/-/tasks?record=place`);
  await lat.fill("");
  await lng.fill("");
  await drawer.getByRole("button", { name: "Save" }).click();
  await drawer.waitFor({ state: "hidden" });
  expect(await stored("place")).toMatchObject({ at: null });
  expect(problems.filter((problem) => !problem.includes("400"))).toEqual([]);
});

browserTest("[AD124] several references are chips with titles, which are added by a search and removed", async () => {
  const labelIds = ["l-design", "l-later"];
  await platform.service.post(`${TABLES}/tasks`, { id: "many", title: "Labelled", labelIds, mainId: "l-idea" });
  const { page, problems } = await openDashboard(browser, platform, "/admin/tables/shared/-/tasks?record=many");
  const drawer = page.getByRole("dialog");
  const chips = drawer.getByRole("group", { name: "labelIds" });
  await chips.getByText("Design", { exact: true }).waitFor();
  await chips.getByText("Later", { exact: true }).waitFor();
  await drawer.getByRole("link", { name: "Open Idea in labels" }).waitFor();
  await chips.getByLabel("Add to labelIds").fill("Urg");
  await page.getByRole("option", { name: "Urgent" }).click();
  await chips.getByText("Urgent", { exact: true }).waitFor();
  await chips.getByRole("button", { name: "Remove Design" }).click();
  await drawer.getByRole("button", { name: "Save" }).click();
  await drawer.waitFor({ state: "hidden" });
  expect(await stored("many")).toMatchObject({ labelIds: ["l-later", "l-urgent"] });
  // The grid has their titles.
  await page.getByText("Later, Urgent", { exact: true }).waitFor();

  await platform.service.patch(`${TABLES}/tasks/many`, { labelIds: NAMES.map((name) => `l-${name.toLowerCase()}`) });
  await page.goto(`${platform.url}/admin/tables/shared/-/tasks`);
  await page.getByText(`${NAMES.slice(0, 5).join(", ")}, +2`, { exact: true }).waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD123] [AD124] both inputs are accessible, and read-only for a key that may not write", async () => {
  await platform.service.post(`${TABLES}/tasks`, { id: "seen", at: { lat: 1, lng: 2 }, labelIds: ["l-bug"] });
  const options = { key: READER, bypassCSP: true };
  const { page } = await openDashboard(browser, platform, "/admin/tables/shared/-/tasks?record=seen", options);
  const drawer = page.getByRole("dialog");
  await drawer.getByText("Bug", { exact: true }).waitFor();
  expect(await drawer.getByLabel("at: latitude").isEditable()).toBe(false);
  expect(await drawer.getByLabel("Add to labelIds").count()).toBe(0);
  expect(await drawer.getByRole("button", { name: "Remove Bug" }).count()).toBe(0);
  await expectAccessible(page);
});
