import { afterAll, beforeAll, expect } from "bun:test";
import { freePort } from "../client/wire.ts";
import { testBrowser } from "../support/browser.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";

// The recipe of the guide for a page that is reloaded without a network, as it is written there.

const CONFIG = `{
  auth: { anonymous: true },
  site: { directory: "./web" },
  databases: { shared: { tables: { notes: {
    schema: { text: { type: "string", required: true } },
    access: { read: true, insert: (auth) => auth !== null },
  } } } },
}`;

const BUILD_TIMEOUT_MS = 120_000;

const countOf = (store: "seen" | "writes") => `new Promise((resolve) => {
  indexedDB.open("platform.notes").onsuccess = ({ target: { result } }) => {
    result.transaction("${store}").objectStore("${store}").count().onsuccess = ({ target }) => {
      result.close();
      resolve(target.result);
    };
  };
})`;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
beforeAll(async () => {
  const guide = await Bun.file(new URL("../../docs/client-live.md", import.meta.url)).text();
  const section = guide.split("### A page that is reloaded offline")[1] ?? "";
  const [worker = "", registration = ""] = [...section.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code);
  const page = `<!doctype html>
<title>Notes</title>
<ul></ul>
<script type="module">
  import { createClient } from "/client/index.js";
  const client = createClient({ url: location.origin, offline: { name: "notes" } });
  globalThis.client = client;
  const live = client.db("shared").table("notes").sort("text").live();
  const show = () => document.querySelector("ul").replaceChildren(...live.items.map(({ text }) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  live.subscribe(show);
  ${registration}
  document.body.dataset.kept = "yes";
</script>`;
  const files = { "web/index.html": page, "web/sw.js": worker };
  // It comes back at the same address.
  platform = await testPlatform({ config: CONFIG, files, args: ["--port", String(await freePort())] });
  // From its sources, a server builds it when it is asked for it.
  await platform.fetch("/client/index.js");
}, BUILD_TIMEOUT_MS);
afterAll(() => platform.stop());

browserTest("[TC126] a page that is reloaded without a server shows what was seen, and takes writes", async () => {
  const { page } = await openProfile();
  const insert = (text: string) =>
    page.evaluate(`void client.db("shared").table("notes").insert({ text: ${JSON.stringify(text)} })`);
  const texts = () => page.locator("li").allTextContents();
  await page.goto(platform.url);
  await page.evaluate("client.auth.signInAnonymously()");
  await insert("online");
  await page.locator("body[data-kept]").waitFor();
  // What was seen is stored soon after; a write that waits is stored before it is sent.
  await until("the note is there", async () => String(await texts()) === "online");
  await page.reload();
  await page.locator("body[data-kept]").waitFor();
  await until("what was seen is stored", async () => (await page.evaluate(countOf("seen"))) === 1);
  await platform.kill("SIGKILL");
  await page.reload();
  await until("what was seen is shown", async () => String(await texts()) === "online");
  await insert("written without a server");
  await until("it is shown", async () => (await texts()).length === 2);
  await until("it is stored", async () => (await page.evaluate(countOf("writes"))) === 1);
  await page.reload();
  await until("it is still shown", async () => (await texts()).length === 2);
  await platform.restart();
  await until("it has been sent", async () => {
    const { body } = await platform.get<{ items: { text: string }[] }>("/api/db/shared/tables/notes");
    return body.items.length === 2;
  });
  expect(await texts()).toEqual(["online", "written without a server"]);
});
