import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { SERVICE_KEY, type TestPlatform, testPlatform } from "../support/index.ts";

const CONFIG = `{
  databases: { shared: {
    tables: { films: { schema: { title: { type: "string", required: true }, genre: { type: "string" } } } },
    views: { genres: {
      sql: "SELECT genre AS id, count(*) AS films FROM films WHERE genre IS NOT NULL GROUP BY genre",
      schema: { films: { type: "integer", required: true } }, live: ["films"],
    } },
  } },
}`;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  const inserts = ["Comedy", "Comedy", "Drama"].map((genre, n) => ({ title: `Film ${n}`, genre }));
  expect((await platform.service.post("/api/db/shared/tables/films/batch", { inserts })).status).toBe(200);
  expect((await platform.get("/admin")).status).toBe(200);
});
afterAll(() => platform.stop());

browserTest("[TB873] the dashboard shows a view that follows its tables, and offers no change of it", async () => {
  const { page, context, problems } = await openProfile();
  await context.request.post(`${platform.url}/api/admin/session`, { data: { key: SERVICE_KEY } });
  await page.goto(`${platform.url}/admin/tables/shared/-/genres`);
  const cell = (name: string) => page.getByRole("gridcell", { name, exact: true });
  await cell("Comedy").waitFor();
  await cell("2").waitFor();
  expect(await page.getByRole("button", { name: "Insert" }).count()).toBe(0);
  await platform.service.post("/api/db/shared/tables/films", { title: "Film 3", genre: "Comedy" });
  await cell("3").waitFor();
  await cell("3").dblclick();
  expect(await page.getByRole("gridcell").getByRole("textbox").count()).toBe(0);
  await page.goto(`${platform.url}/admin/tables/shared/-/genres?record=Comedy`);
  await page.getByRole("tab", { name: "JSON" }).click();
  await page.getByText('"films": 3').waitFor();
  expect(await page.getByRole("tab", { name: "Rules" }).count()).toBe(0);
  expect(await page.getByRole("button", { name: "Delete" }).count()).toBe(0);
  await page.goto(`${platform.url}/admin/tables/shared/-/genres?tab=schema`);
  await page.getByText("This is a view").waitFor();
  expect(await page.getByRole("region", { name: "Size" }).count()).toBe(0);
  expect(problems).toEqual([]);
});
