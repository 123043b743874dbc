import { afterAll, beforeAll, expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { INSECURE_HOST, testBrowser } from "../support/browser.ts";
import { type TestPlatform, temporaryDirectory, testPlatform, until } from "../support/index.ts";

// The client in a real browser: tabs, a lost connection, an upload over a reload. The page has `client` as a global.

const CONFIG = `{
  site: { directory: "./web" },
  databases: { shared: { tables: { notes: {
    schema: { text: { type: "string", required: true } },
    access: { read: true, insert: (auth) => auth !== null, delete: true },
  } } } },
  storage: { buckets: { files: { maxFileSize: 64 * 1024 * 1024, access: { read: true, write: (auth) => auth !== null } } } },
}`;

const PAGE = `<!doctype html>
<title>Notes</title>
<p id="user"></p>
<p id="status"></p>
<ul></ul>
<input type="file">
<script type="module">
  import { createClient } from "/client/index.js";
  const client = createClient({ url: location.origin });
  globalThis.client = client;
  const showUser = () => { document.querySelector("#user").textContent = client.auth.user?.email ?? "nobody"; };
  client.auth.subscribe(showUser);
  showUser();
  const live = client.db("shared").table("notes").sort("text").live();
  const show = () => {
    document.querySelector("#status").textContent = live.status;
    document.querySelector("ul").replaceChildren(...live.items.map(({ text }) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }));
  };
  live.subscribe(show);
  show();
  document.querySelector("input").onchange = async (event) => {
    const done = document.createElement("b");
    const { key } = await client.storage("files").upload("film.bin", event.target.files[0]);
    done.textContent = key;
    document.body.append(done);
  };
  document.body.dataset.ready = "yes";
</script>
`;

const PASSWORD = "correct horse battery";

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG, files: { "web/index.html": PAGE } });
});
afterAll(() => platform.stop());

/** Each test has a name of its own for what it writes. */
let names = 0;
const newName = (): string => `note-${++names}`;

async function load(page: Page, url = platform.url): Promise<void> {
  await page.goto(url);
  await page.locator("body[data-ready]").waitFor();
}

async function signUp(page: Page): Promise<string> {
  const email = `${newName()}@example.com`;
  await page.evaluate(`client.auth.signUp(${JSON.stringify({ email, password: PASSWORD })})`);
  return email;
}

const insert = (page: Page, text: string) =>
  page.evaluate(`client.db("shared").table("notes").insert(${JSON.stringify({ text })}).then(() => true)`);
const userOf = (page: Page) => page.locator("#user").textContent();
const isShown = (page: Page, text: string) => page.getByText(text, { exact: true }).waitFor();

browserTest("[TC24] signing in and out in one tab does so in all", async () => {
  const { context, page, problems } = await openProfile();
  await load(page);
  const other = await context.newPage();
  await load(other);
  expect(await userOf(other)).toBe("nobody");
  const email = await signUp(page);
  await isShown(other, email);
  await other.reload();
  await isShown(other, email);
  await other.evaluate("client.auth.signOut()");
  await isShown(page, "nobody");
  expect(problems).toEqual([]);
});

browserTest("[TC46] a live list follows what another browser writes", async () => {
  const [ann, ben] = [await openProfile(), await openProfile()];
  await load(ann.page);
  await load(ben.page);
  await signUp(ben.page);
  await until("Ann's list is live", async () => (await ann.page.locator("#status").textContent()) === "live");
  const text = newName();
  await insert(ben.page, text);
  await isShown(ben.page, text);
  await isShown(ann.page, text);
  expect([...ann.problems, ...ben.problems]).toEqual([]);
});

browserTest("[TC47] a list says that it is offline, and has everything when the connection is back", async () => {
  const [ann, ben] = [await openProfile(), await openProfile()];
  await load(ann.page);
  await load(ben.page);
  await signUp(ben.page);
  const statusIs = (status: string) =>
    until(`Ann's list is ${status}`, async () => (await ann.page.locator("#status").textContent()) === status);
  await statusIs("live");
  await ann.context.setOffline(true);
  await statusIs("offline");
  const text = newName();
  await insert(ben.page, text);
  expect(await ann.page.getByText(text, { exact: true }).count()).toBe(0);
  await ann.context.setOffline(false);
  await isShown(ann.page, text);
  await statusIs("live");
});

for (const [place, host] of [
  ["a secure page, with locks", "127.0.0.1"],
  ["a page over plain HTTP, without them", INSECURE_HOST],
] as const) {
  browserTest(`[TC22] two tabs refresh a session once: ${place}`, async () => {
    const url = platform.url.replace("127.0.0.1", host);
    const { context, page, problems } = await openProfile();
    await load(page, url);
    expect(await page.evaluate('"locks" in navigator')).toBe(host === "127.0.0.1");
    await signUp(page);
    const other = await context.newPage();
    await load(other, url);
    const refreshes: string[] = [];
    context.on("request", (request) => {
      if (request.url().endsWith("/api/auth/refresh")) refreshes.push(request.url());
    });
    // As if the token had come long ago.
    await page.evaluate(`for (const [key, text] of Object.entries(localStorage)) {
      if (key.startsWith("platform.session")) localStorage.setItem(key, JSON.stringify({ ...JSON.parse(text), takenAt: 0 }));
    }`);
    const tabs = [page, other];
    await Promise.all(tabs.map((tab) => load(tab, url)));
    await Promise.all(tabs.map((tab) => insert(tab, newName())));
    expect(refreshes).toHaveLength(1);
    expect(problems).toEqual([]);
  });
}

browserTest("[TC84] an upload goes on after a reload", async () => {
  const file = join(temporaryDirectory(), "film.bin");
  const bytes = Buffer.alloc(24 * 1024 * 1024, "film");
  writeFileSync(file, bytes);
  const { page } = await openProfile();
  await load(page);
  await signUp(page);

  const PART = /\/multipart\/upload-part\?/;
  const parts: string[] = [];
  page.on("requestfinished", (request) => {
    if (PART.test(request.url())) parts.push(request.url());
  });
  // The first parts arrive; the others hang until the page goes.
  let passed = 0;
  let isHeld = true;
  await page.route(PART, async (route) => {
    if (!isHeld || ++passed <= 2) await route.continue();
  });
  await page.locator("input").setInputFiles(file);
  await until("two parts have arrived", () => parts.length === 2);
  await page.reload();
  await page.locator("body[data-ready]").waitFor();
  isHeld = false;
  const before = new Set(parts);
  await page.locator("input").setInputFiles(file);
  await page.locator("b").waitFor();
  const again = parts.slice(before.size);
  expect(again.length).toBeGreaterThan(0);
  expect(again.filter((url) => before.has(url))).toEqual([]);
  const stored = await platform.fetch("/api/storage/files/film.bin");
  expect(Buffer.compare(Buffer.from(await stored.arrayBuffer()), bytes)).toBe(0);
});

browserTest(
  "[TC104] events of a page that is left before their code has come are recorded once, as whose they are",
  async () => {
    const { page } = await openProfile();
    await load(page);
    const userId = await page.evaluate<string>(
      `client.auth.signUp({ email: "early@example.com", password: "a long password 1" }).then(({ user }) => user.id)`,
    );
    // The code of the client that has not been loaded comes when the page has gone.
    await page.route(/chunk-/, async (route) => {
      await Bun.sleep(2_000);
      await route.abort().catch(() => {});
    });
    await page.evaluate(
      `client.analytics.track("left early", { n: 1 }), client.analytics.track("left early", { n: 2 })`,
    );
    await page.goto("about:blank");
    type Events = { events: { eventName: string; userId: string | null; properties: { n: number } }[] };
    const early = async () =>
      (await platform.service.get<Events>("/api/analytics/events?limit=1000")).body.events.filter(
        ({ eventName }) => eventName === "left early",
      );
    await until("both are recorded", async () => (await early()).length >= 2);
    const events = await early();
    expect(events.map(({ properties }) => properties.n).sort()).toEqual([1, 2]);
    expect(events.map((event) => event.userId)).toEqual([userId, userId]);
  },
);

browserTest(
  "[TC104] events that are more than a browser sends after a page has gone are sent while it is there",
  async () => {
    const { page } = await openProfile();
    await load(page);
    // Their characters take three bytes each; the last one is more than the server takes.
    await page.evaluate(`(async () => {
    for (let n = 0; n < 100; n++) client.analytics.track("a long text", { n, text: "漢".repeat(400) });
    client.analytics.track("too long", { text: "x".repeat(70_000) });
    client.analytics.track("the last one");
    await client.analytics.flush();
  })()`);
    const { events } = (
      await platform.service.get<{ events: { eventName: string }[] }>("/api/analytics/events?limit=1000")
    ).body;
    const names = events.map(({ eventName }) => eventName);
    expect(names.filter((name) => name === "a long text")).toHaveLength(100);
    expect([names.includes("too long"), names.includes("the last one")]).toEqual([false, true]);
  },
);
