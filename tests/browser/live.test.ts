import { afterAll, beforeAll, expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { testBrowser } from "../support/browser.ts";
import { type ListAnswer, type TestPlatform, testPlatform } from "../support/index.ts";
import { until } from "../support/until.ts";

// Live queries and what is kept of them, in a browser.

const PAGE = `<!doctype html><title>Notes</title><p></p><ul></ul><script type="module">
  import { createClient } from "/client/index.js";
  const client = createClient({ url: location.origin, offline: { name: "notes" } });
  await client.auth.ready;
  if (client.auth.user === null && location.hash !== "#visitor") await client.auth.signInAnonymously();
  const notes = client.db("shared").table("notes");
  const live = notes.where("isHidden", "!=", true).sort("title").live();
  const show = () => {
    document.querySelector("p").textContent = live.status;
    document.querySelector("ul").replaceChildren(...live.items.map(({ id, title }) => {
      const item = document.createElement("li");
      item.textContent = title + (live.isPending(id) ? "…" : "");
      return item;
    }));
  };
  live.subscribe(show);
  show();
  Object.assign(globalThis, { client, notes, refused: [] });
  client.offline.onRefused((write, error) => refused.push([write.operations[0].record?.title, error.code]));
  document.title = "Ready";
</script>`;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      site: { directory: "./web" },
      auth: { anonymous: true },
      databases: { shared: { tables: { notes: {
        schema: { title: { type: "string" }, isHidden: { type: "boolean" } },
        access: { read: true, insert: (auth, note) => note.title !== "refused", update: true, delete: true },
      } } } },
    }`,
    files: { "web/index.html": PAGE },
  });
});
afterAll(() => platform.stop());

const ready = (page: Page) => page.waitForFunction('document.title === "Ready"');
const shown = (page: Page) => page.locator("li").allTextContents();
const shows = (page: Page, ...titles: string[]) =>
  until(`the page shows ${titles}`, async () => String(await shown(page)) === String(titles));
const says = (page: Page, status: string) =>
  until(`the page says ${status}`, async () => (await page.locator("p").textContent()) === status);
const stored = async () => {
  const { body } = await platform.get<ListAnswer>("/api/db/shared/tables/notes", { query: { sort: "title" } });
  return body.items.map((item) => item["title"]);
};

async function opened(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto(platform.url);
  await ready(page);
  return page;
}

/** The page and its module still come, as from a service worker; nothing else does. */
async function disconnect(context: BrowserContext): Promise<() => Promise<void>> {
  const api = "**/api/**";
  await context.route(api, (route) => route.abort("internetdisconnected"));
  const sockets = /\/api\/realtime/;
  let isAway = true;
  await context.routeWebSocket(sockets, async (socket) => {
    if (isAway) await socket.close({ code: 1011 });
    else socket.connectToServer();
  });
  return async () => {
    isAway = false;
    await context.unroute(api);
  };
}

browserTest("[TC46] [TC64] tabs of a browser and other clients follow each other", async () => {
  const { context, problems } = await openProfile();
  const [one, other] = [await opened(context), await opened(context)];
  await says(one, "live");
  await says(other, "live");
  await one.evaluate('notes.insert({ id: "a", title: "a" })');
  await shows(other, "a");
  await platform.service.post("/api/db/shared/tables/notes", { id: "b", title: "b" });
  await shows(one, "a", "b");
  await other.evaluate('notes.delete("a").then(() => notes.delete("b"))');
  await shows(one);
  expect(problems).toEqual([]);
});

browserTest("[TC60] [TC61] [TC62] [TC66] writes without a connection outlive the page", async () => {
  const { context } = await openProfile();
  const first = await opened(context);
  await says(first, "live");
  await first.evaluate('notes.insert({ id: "seen", title: "seen" })');
  await shows(first, "seen");
  const isKept = `new Promise((resolve) => {
    const opening = indexedDB.open("platform.notes");
    opening.onsuccess = () => {
      const all = opening.result.transaction("seen").objectStore("seen").getAll();
      all.onsuccess = () => { opening.result.close(); resolve(JSON.stringify(all.result).includes("seen")); };
    };
  })`;
  await until("it is kept", () => first.evaluate<boolean>(isKept));
  const reconnect = await disconnect(context);
  await first.reload();
  await ready(first);
  await shows(first, "seen");
  await says(first, "offline");
  await first.evaluate(`void notes.insert({ title: "new" }).catch(() => {}), void notes.insert({ title: "refused" }).catch(() => {}),
    void notes.update("seen", { title: "seen again" }).catch(() => {})`);
  await shows(first, "new…", "refused…", "seen again…");
  const other = await opened(context);
  await shows(other, "new…", "refused…", "seen again…");
  await first.close();
  expect(await stored()).toEqual(["seen"]);
  await other.reload();
  await ready(other);
  await shows(other, "new…", "refused…", "seen again…");
  await reconnect();
  await shows(other, "new", "seen again");
  await says(other, "live");
  expect(await stored()).toEqual(["new", "seen again"]);
  expect(await other.evaluate<unknown>("refused")).toEqual([["refused", "forbidden"]]);
});

browserTest("[TC65] signing out in one tab empties all of it", async () => {
  const { context } = await openProfile();
  const [one, other] = [await opened(context), await opened(context)];
  await says(one, "live");
  await says(other, "live");
  await one.evaluate("client.auth.signOut()");
  const left = `indexedDB.databases().then(() => new Promise((resolve) => {
    const opening = indexedDB.open("platform.notes");
    opening.onsuccess = () => {
      const names = ["writes", "seen", "owner"];
      const transaction = opening.result.transaction(names);
      const counts = names.map((name) => transaction.objectStore(name).count());
      transaction.oncomplete = () => { opening.result.close(); resolve(counts.reduce((sum, { result }) => sum + result, 0)); };
    };
  }))`;
  // Both tabs read as a visitor now, and what a visitor sees is not kept.
  await until("nothing is left", async () => (await other.evaluate<number>(left)) === 0);
  await says(other, "live");
});

browserTest("[TC66] the database can be deleted while pages have it, and writes go on", async () => {
  const { context, problems } = await openProfile();
  const [one, other] = [await opened(context), await opened(context)];
  await says(one, "live");
  await says(other, "live");
  await one.evaluate('notes.insert({ id: "kept", title: "kept" })');
  const deleted = `new Promise((resolve) => {
    const deleting = indexedDB.deleteDatabase("platform.notes");
    deleting.onsuccess = () => resolve("deleted");
    deleting.onblocked = () => resolve("blocked");
  })`;
  expect(await one.evaluate<string>(deleted)).toBe("deleted");
  await one.evaluate('notes.update("kept", { title: "one" })');
  await other.evaluate('notes.update("kept", { title: "other" })');
  await one.evaluate('notes.delete("kept")');
  expect(await stored()).not.toContain("other");
  expect(problems).toEqual([]);
});
