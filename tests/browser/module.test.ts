import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

// `/client/index.js` in pages without a build.

const PAGE = (origin: string) => `<!doctype html>
<title>Films</title>
<form><input name="title" required><button>Add</button></form>
<ul></ul>
<script type="module">
  import { createClient } from "${origin}/client/index.js";
  const client = createClient({ url: "${origin}" || location.origin });
  const films = client.db("shared").table("films");
  const show = async () => {
    const { items } = await films.sort("title").list();
    document.querySelector("ul").replaceChildren(...items.map(({ title }) => {
      const item = document.createElement("li");
      item.textContent = title;
      return item;
    }));
  };
  document.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    await films.insert({ title: form.get("title") });
    await show();
  };
  await show();
</script>
`;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
let elsewhere: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      site: { directory: "./web" },
      databases: { shared: { tables: { films: {
        schema: { title: { type: "string", required: true } }, access: { read: true, insert: true },
      } } } },
    }`,
    files: { "web/index.html": PAGE("") },
  });
  elsewhere = await testPlatform({
    config: `{ site: { directory: "./web" } }`,
    files: { "web/index.html": PAGE(platform.url) },
  });
});
afterAll(async () => {
  await platform.stop();
  await elsewhere.stop();
});

for (const [title, server] of [
  ["a page of the server", () => platform],
  ["a page of another origin", () => elsewhere],
] as const) {
  browserTest(`[CP1] ${title} imports the module, lists and inserts`, async () => {
    const { page, problems } = await openProfile();
    await page.goto(server().url);
    await page.locator("input").fill(`Heat, ${title}`);
    await page.getByRole("button").click();
    await page.getByText(`Heat, ${title}`).waitFor();
    expect(problems).toEqual([]);
  });
}
