import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { createClient, memoryStore } from "../../src/client/index.ts";
import { testBrowser } from "../support/browser.ts";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { bundleReact, REACT_VERSIONS, runReact } from "./react-bundle.ts";
import type config from "./react-config.ts";

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
beforeAll(async () => {
  const page = (version: string) =>
    `<!doctype html><title>React ${version}</title><div id="root"></div><script type="module" src="/${version}.js"></script>`;
  const files: Record<string, string> = {};
  for (const version of REACT_VERSIONS) {
    files[`site/${version}.js`] = await bundleReact("react-app.ts", version, "browser");
    files[`site/${version}.html`] = page(version);
    files[`site/states-${version}.js`] = await bundleReact("react-states-app.ts", version, "browser");
    files[`site/states-${version}.html`] = page(`states-${version}`);
  }
  const text = await Bun.file(new URL("react-config.ts", import.meta.url)).text();
  platform = await testPlatform({ config: text, files });
});
afterAll(() => platform.stop());

/** A client beside the page. */
async function other() {
  const client = createClient<typeof config>({ url: platform.url, store: memoryStore() });
  await client.auth.signInAnonymously();
  return client;
}

const shownIn = async (page: Page, id: string) => JSON.parse((await page.locator(`#${id}`).textContent()) ?? "null");
/** Waits until a part of the page shows this, or more than this. */
const untilShown = async (page: Page, id: string, expected: string | object) => {
  let last: unknown;
  try {
    await until(`#${id} is right`, async () => {
      last = (await page.locator(`#${id}`).count()) === 0 ? null : await shownIn(page, id);
      return typeof expected === "object" && typeof last === "object" && last !== null
        ? Bun.deepMatch(expected, last)
        : last === expected;
    });
  } catch {
    expect(last).toMatchObject(Object(expected)); // Names what differs.
  }
};

async function open(version: string, query: Record<string, string> = {}) {
  const profile = await openProfile();
  await profile.page.goto(`${platform.url}/${version}.html?${new URLSearchParams(query)}`);
  await profile.page.click("#sign-in");
  await until("somebody is signed in", async () => (await shownIn(profile.page, "user")) !== null);
  return profile;
}

for (const version of REACT_VERSIONS) {
  describe(`React ${version}`, () => {
    test("[TC114] on a server the hooks give what is there without a network, and send nothing", async () => {
      const { html, sent } = JSON.parse(await runReact("react-server.ts", version, join(temporaryDirectory(), "ssr")));
      const text = html.replace(/<[^>]+>/g, "").replaceAll("&quot;", '"');
      expect(JSON.parse(text)).toEqual(["loading", 0, null, 0, "ann", "joining", 0, "idle"]);
      expect(sent).toEqual([]);
    });

    browserTest("[TC115] useAuth follows sign-in and sign-out", async () => {
      const { page, problems } = await open(version);
      await page.click("#sign-out");
      await until("nobody is", async () => (await shownIn(page, "user")) === null);
      expect(problems).toEqual([]);
    });

    browserTest("[TC116] useLive and useRecord follow the server, also after they were away", async () => {
      const client = await other();
      const films = client.db("shared").table("films");
      const old = (await films.list()).items;
      for (const film of old) await films.delete(film.id);
      const b = await films.insert({ title: "B" });
      const { page, problems } = await open(version, { film: b.id });
      await page.click("#show-Films");
      await page.click("#show-Film");
      await untilShown(page, "films", { titles: ["B"], status: "live", hasMore: false });
      await untilShown(page, "film", { title: "B", status: "live" });
      await films.insert({ title: "C" });
      const a = await films.insert({ title: "A" });
      await untilShown(page, "films", { titles: ["A", "B"], hasMore: true });
      await page.click("#more");
      await untilShown(page, "films", { titles: ["A", "B", "C"], hasMore: false });
      await films.update(b.id, { title: "B2" });
      await untilShown(page, "films", { titles: ["A", "B2", "C"], versions: [1, 2, 1] });
      await untilShown(page, "film", { title: "B2" });
      await page.click("#show-Films");
      await films.delete(a.id);
      await page.click("#show-Films");
      await untilShown(page, "films", { titles: ["B2", "C"], status: "live" });
      await films.delete(b.id);
      await untilShown(page, "film", { title: null, status: "live" });
      expect(problems).toEqual([]);
      client.close();
    });

    browserTest("[TC144] useSearch follows the text and the server", async () => {
      const client = await other();
      const films = client.db("shared").table("films");
      const [one, word] = [await films.insert({ title: `blue ${version}` }), `teal${version}`];
      const { page, problems } = await open(version);
      const searches: string[] = [];
      page.on("request", (request) => {
        if (request.url().includes("/search?")) searches.push(request.url());
      });
      await page.click("#show-Found");
      await untilShown(page, "found", { marked: [], status: "loading", hasMore: false });
      await page.fill("#text", " ");
      expect(searches).toEqual([]);
      await page.fill("#text", "blue");
      await untilShown(page, "found", { marked: [`<mark>blue</mark> ${version}`], status: "live" });
      await page.fill("#text", word);
      await untilShown(page, "found", { marked: [], status: "live" });
      const { id } = await films.insert({ title: word });
      await untilShown(page, "found", { marked: [`<mark>${word}</mark>`] });
      await films.update(id, { title: "gone" });
      await untilShown(page, "found", { marked: [], status: "live" });
      for (const film of [one.id, id]) await films.delete(film);
      expect(problems).toEqual([]);
      client.close();
    });

    browserTest("[TC124] every state that a hook returns is shown when it changes alone", async () => {
      const { page, problems } = await openProfile();
      await page.goto(`${platform.url}/states-${version}.html`);
      await page.waitForSelector("#result", { state: "attached" });
      expect(await shownIn(page, "result")).toEqual([]);
      expect(problems).toEqual([]);
    });

    browserTest("[TC124] a write is shown as under way until its answer, also after its change has come", async () => {
      const client = await other();
      const films = client.db("shared").table("films");
      const title = `0 pending ${version}`;
      const { page, problems } = await open(version);
      await page.click("#show-Films");
      await untilShown(page, "films", { status: "live" });
      const others = films.where("title", "==", title).live();
      others.subscribe(() => {});
      const held = Promise.withResolvers<void>();
      await page.route("**/tables/films", async (route) => {
        const answer = await route.fetch();
        await held.promise;
        await route.fulfill({ response: answer });
      });
      await page.fill("#title", title);
      await page.click("#insert");
      await until("others have it", () => others.items.length === 1);
      await untilShown(page, "films", { pending: [title], created: [others.items[0]?.createdAt] });
      held.resolve();
      await until("nothing is under way", async () => (await shownIn(page, "films")).pending.length === 0);
      for (const { id } of others.items) await films.delete(id);
      expect(problems).toEqual([]);
      client.close();
    });

    browserTest("[TC116] a query of another client is another one", async () => {
      const client = await other();
      const { page } = await open(version);
      await page.click("#show-Servers");
      await untilShown(page, "films", { status: "live" });
      await page.click("#change-server");
      const title = `0 of ${version}`;
      const { id } = await client.db("shared").table("films").insert({ title });
      await until("it follows", async () => (await shownIn(page, "films")).titles[0] === title);
      await client.db("shared").table("films").delete(id);
      client.close();
    });

    browserTest("[TC116] useLive holds through a component that suspends", async () => {
      const { page, problems } = await open(version);
      await page.click("#show-Suspended");
      await untilShown(page, "slow", "ready");
      await untilShown(page, "suspended", "live");
      expect(problems).toEqual([]);
    });

    browserTest("[TC117] useRoom joins once, though React mounts twice, and leaves when it is gone", async () => {
      const id = `room-${version}`;
      const client = await other();
      const watched = await client.rooms("quiz").join(id);
      const { page, problems } = await open(version, { room: id });
      await page.click("#show-Quiz");
      await untilShown(page, "room", { status: "joined", players: 2, joins: 2, leaves: 0 });
      await page.click("#add");
      await untilShown(page, "room", { count: 1 });
      await watched.act("add", { by: 2 });
      await untilShown(page, "room", { count: 3, joins: 2 });
      await page.click("#show-Quiz");
      await until("it has left", () => watched.shared["leaves"] === 1);
      await page.click("#show-Quiz");
      await untilShown(page, "room", { status: "joined", joins: 3 });
      expect(problems).toEqual([]);
      client.close();
    });

    browserTest("[TC117] useRoom joins as whoever signs in", async () => {
      const { page, problems } = await openProfile();
      await page.goto(`${platform.url}/${version}.html?${new URLSearchParams({ room: `visited-${version}` })}`);
      await page.click("#show-Quiz");
      await untilShown(page, "room", { status: "refused", error: "unauthenticated" });
      await page.click("#sign-in");
      await untilShown(page, "room", { status: "joined", error: null, players: 1 });
      await page.click("#sign-out");
      await untilShown(page, "room", { status: "left", error: "unauthenticated" });
      await page.click("#sign-in");
      await untilShown(page, "room", { status: "joined", error: null });
      // Another one at once.
      await page.click("#sign-in");
      await untilShown(page, "room", { status: "joined", error: null, joins: 3 });
      // Refused without a user, which browsers report by themselves.
      expect(problems.filter((problem) => !problem.includes("401") && !problem.includes("WebSocket"))).toEqual([]);
    });

    browserTest("[TC117] a room that refuses says so", async () => {
      const { page } = await open(version, { room: "secret" });
      await page.click("#show-Quiz");
      await untilShown(page, "room", { status: "refused", error: "forbidden" });
    });

    browserTest("[TC118] usePresence shows the others, and this client while it is there", async () => {
      const client = await other();
      const channel = `lobby-${version}`;
      const watched = client.presence<{ mood: string }>(channel);
      watched.subscribe(() => {});
      const moods = () => watched.users.map(({ state }) => state.mood).join();
      const { page, problems } = await open(version, { channel });
      await page.click("#show-People");
      await untilShown(page, "people", { moods: ["fine"], status: "live", error: null });
      await until("it is seen", () => moods() === "fine");
      await page.click("#better");
      await until("the change is seen", () => moods() === "better");
      await client.presence(channel).track({ mood: "here" });
      await untilShown(page, "people", { moods: ["better", "here"] });
      await page.click("#show-People");
      await until("it is gone", () => moods() === "here");
      expect(problems).toEqual([]);
      client.close();
    });

    browserTest("[TC118] usePresence shows this client as whoever signs in", async () => {
      const client = await other();
      const channel = `visited-${version}`;
      const watched = client.presence<{ mood: string }>(channel);
      watched.subscribe(() => {});
      const { page, problems } = await openProfile();
      await page.goto(`${platform.url}/${version}.html?${new URLSearchParams({ channel })}`);
      await page.click("#show-People");
      await page.click("#sign-in");
      await until("somebody is signed in", async () => (await shownIn(page, "user")) !== null);
      const user = await shownIn(page, "user");
      await until("the user is seen", () => watched.users.some(({ userId }) => userId === user));
      expect(problems).toEqual([]);
      client.close();
    });

    browserTest("[TC118] a channel that refuses says so", async () => {
      const { page } = await open(version, { channel: "staff" });
      await page.click("#show-People");
      await untilShown(page, "people", { status: "denied", error: "forbidden" });
    });

    browserTest("[TC119] useUpload shows its progress and its end, and can be cancelled", async () => {
      const { page, problems } = await open(version);
      await page.click("#show-Upload");
      const file = (name: string, size: number) => ({ name, mimeType: "video/mp4", buffer: Buffer.alloc(size, 7) });
      await page.setInputFiles("input", file("small", 1_000));
      await untilShown(page, "upload", { status: "done", loaded: 1_000, total: 1_000, stored: 1_000, error: null });
      await page.setInputFiles("input", file("large", 9_000_000));
      await untilShown(page, "upload", { status: "done", loaded: 9_000_000, stored: 9_000_000 });
      const slow = await page.context().newCDPSession(page);
      await slow.send("Network.emulateNetworkConditions", {
        ...{ offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 200_000 },
      });
      await page.setInputFiles("input", file("slow", 9_000_000));
      await until("it is under way", async () => (await shownIn(page, "upload")).status === "uploading");
      await page.click("#cancel");
      await untilShown(page, "upload", { status: "idle", error: null });
      expect(problems).toEqual([]);
    });

    browserTest("[TC377] useSave shows the progress of a record's files, its record and its error", async () => {
      const { page, problems } = await open(version);
      await page.click("#show-Save");
      const file = (name: string, size: number) => ({ name, mimeType: "video/mp4", buffer: Buffer.alloc(size, 7) });
      await page.setInputFiles("input", file("small", 1_000));
      await untilShown(page, "save", { status: "done", loaded: 1_000, total: 1_000, image: "small", back: null });
      await page.setInputFiles("input", file("again", 2_000));
      await untilShown(page, "save", { status: "done", loaded: 4_000, total: 4_000, image: "again", back: "again" });
      const slow = await page.context().newCDPSession(page);
      await slow.send("Network.emulateNetworkConditions", {
        ...{ offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 200_000 },
      });
      await page.setInputFiles("input", file("slow", 9_000_000));
      await until("it is under way", async () => (await shownIn(page, "save")).status === "uploading");
      await page.click("#cancel");
      await untilShown(page, "save", { status: "idle", error: null, image: null });
      await page.context().setOffline(true);
      await page.setInputFiles("input", file("offline", 1_000));
      await untilShown(page, "save", { status: "failed", error: "network", image: null });
      expect(problems).toEqual([]);
    });
  });
}

browserTest("[TC86] in a browser progress goes on within one request", async () => {
  const { page } = await open("19");
  await page.click("#show-Upload");
  const session = await page.context().newCDPSession(page);
  await session.send("Network.emulateNetworkConditions", {
    ...{ offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 2_000_000 },
  });
  const seen = new Set<number>();
  await page.setInputFiles("input", { name: "one", mimeType: "video/mp4", buffer: Buffer.alloc(3_000_000, 7) });
  await until("it is stored", async () => {
    const { status, loaded } = await shownIn(page, "upload");
    seen.add(loaded);
    return status === "done";
  });
  expect([...seen].filter((loaded) => loaded > 0 && loaded < 3_000_000).length).toBeGreaterThan(1);
});

browserTest("[TC84] a large file goes on after the page was reloaded in the middle", async () => {
  const { page } = await open("19");
  const path = join(temporaryDirectory(), "film.mp4");
  await Bun.write(path, Buffer.alloc(24_000_000, 7));
  await page.click("#show-Upload");
  const slow = await page.context().newCDPSession(page);
  await slow.send("Network.emulateNetworkConditions", {
    ...{ offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 4_000_000 },
  });
  await page.setInputFiles("input", path);
  let stored = 0;
  await until("some parts are there", async () => {
    stored = (await shownIn(page, "upload")).loaded;
    return stored > 13_000_000;
  });
  await page.reload();
  await page.click("#show-Upload");
  await page.setInputFiles("input", path);
  // What the server has already counts at once.
  await until("it goes on", async () => (await shownIn(page, "upload")).loaded >= 4_194_304);
  await untilShown(page, "upload", { status: "done", stored: 24_000_000 });
});
