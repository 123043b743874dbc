import { type Browser, chromium, type Page } from "playwright-core";
import { browserProgram } from "../../tests/support/chromium.ts";
import { type TestPlatform, testPlatform } from "../../tests/support/index.ts";
import { quantile } from "../support/statistics.ts";

const [GROUPS, RECORDS, BATCH] = [50, 1_000, 500];
const [CHANGES_PER_SECOND, SECONDS] = [200, 15];
const [OPENINGS, INSERTS] = [40, 300];
const TICK_MS = 10;
const INSERT_EVERY_MS = 25;
const WAIT_MS = 30_000;
const MS_PER_S = 1_000;

const CONFIG = `{
  site: { directory: "./web" },
  rateLimits: { global: { requests: 10000000, window: 60 } },
  databases: { shared: { tables: { tasks: {
    schema: { group: { type: "integer" }, rank: { type: "integer" }, title: { type: "string" }, sentAt: { type: "number" } },
    indexes: [{ fields: ["group", "rank"] }],
    access: { read: true },
  } } } },
}`;

/** Page under test, with the functions that are measured. */
const PAGE = `<!doctype html><title>Bench</title><ul></ul><script type="module">
  import { createClient } from "/client/index.js";
  const now = () => performance.timeOrigin + performance.now();
  const isLive = (live) => new Promise((resolve) => {
    const look = () => live.status === "live" && resolve();
    live.subscribe(look);
    look();
  });
  globalThis.bench = {
    /** From live() until the first items are there, with a client of its own each time. */
    async opening() {
      const client = createClient({ url: location.origin });
      const begun = performance.now();
      const live = client.db("shared").table("tasks").where("group", "==", 1).sort("rank").limit(50).live();
      await isLive(live);
      const ms = performance.now() - begun;
      if (live.items.length !== 50) throw new Error(live.items.length + " items");
      client.close();
      return ms;
    },
    /** Shows a list, and notes how old each new item is when it is in the document. */
    async showing() {
      const tasks = createClient({ url: location.origin }).db("shared").table("tasks");
      const live = tasks.where("group", "==", -1).sort("sentAt", "desc").limit(20).live();
      const list = document.querySelector("ul");
      const seen = new Set();
      globalThis.ages = [];
      const show = () => {
        list.replaceChildren(...live.items.map(({ id, title, sentAt }) => {
          const item = document.createElement("li");
          item.textContent = title;
          if (!seen.has(id)) globalThis.ages.push(now() - sentAt);
          seen.add(id);
          return item;
        }));
      };
      live.subscribe(show);
      await isLive(live);
    },
    /** 50 queries of 1,000 records: of a group each, or all of the same group in different orders. */
    async many(isOfOne) {
      const tasks = createClient({ url: location.origin }).db("shared").table("tasks");
      const all = Array.from({ length: ${GROUPS} }, (_, index) => {
        const query = tasks.where("group", "==", isOfOne ? 0 : index);
        return isOfOne
          ? query.sort(["rank", "title", "id", "updatedAt"][index % 4], index % 8 < 4 ? "asc" : "desc").limit(951 + index).live()
          : query.sort("rank").live();
      });
      let notices = 0;
      globalThis.changed = () => notices;
      for (const live of all) live.subscribe(() => { notices += live.items.length > 0; });
      await Promise.all(all.map(isLive));
      return all.map(({ items }) => items.length);
    },
  };
  document.title = "Ready";
</script>`;

export interface CoreShare {
  /** CPU of the page's process, all threads, relative to one core. */
  process: number;
  changesPerSecond: number;
  notices: number;
}

export interface ClientFigures {
  openingP50Ms: number;
  openingMaxMs: number;
  screenP50Ms: number;
  screenP99Ms: number;
  /** CPU with 50 queries of 1,000 records each; each change affects one of them. */
  apart: CoreShare;
  /** CPU with 50 queries over the same 1,000 records in different orders; each change affects all of them. */
  together: CoreShare;
}

async function opened(browser: Browser, platform: TestPlatform): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(WAIT_MS);
  page.on("pageerror", (error) => {
    throw error;
  });
  await page.goto(platform.url);
  await page.waitForFunction('document.title === "Ready"');
  return page;
}

async function fill(platform: TestPlatform): Promise<void> {
  for (let group = 0; group < GROUPS; group++) {
    for (let from = 0; from < RECORDS; from += BATCH) {
      const inserts = Array.from({ length: BATCH }, (_, index) => {
        const rank = from + index;
        return { id: `g${group}-${rank}`, group, rank, title: `Task ${(rank * 7_919) % RECORDS}` };
      });
      const { status } = await platform.service.post("/api/db/shared/tables/tasks/batch", { inserts });
      if (status !== 200) throw new Error(`batch: ${status}`);
    }
  }
}

/** Returns the CPU seconds of the page's process so far. */
async function usage(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  // Other pages are closed, so the busiest renderer is this page's.
  return Math.max(...processInfo.filter(({ type }) => type === "renderer").map(({ cpuTime }) => cpuTime));
}

/** Changes records at a constant rate, one request each. */
async function change(platform: TestPlatform, isOfOne: boolean): Promise<number> {
  const begunAt = performance.now();
  const requests: Promise<unknown>[] = [];
  let count = 0;
  while (performance.now() - begunAt < SECONDS * MS_PER_S) {
    const due = ((performance.now() - begunAt) / MS_PER_S) * CHANGES_PER_SECOND;
    for (; count < due; count++) {
      const group = isOfOne ? 0 : count % GROUPS;
      const rank = (count * 7_919) % RECORDS;
      requests.push(
        platform.service.patch(`/api/db/shared/tables/tasks/g${group}-${rank}`, { rank: (count * 104_729) % RECORDS }),
      );
    }
    await Bun.sleep(TICK_MS);
  }
  await Promise.all(requests);
  return count / SECONDS;
}

async function coreShare(browser: Browser, platform: TestPlatform, isOfOne: boolean): Promise<CoreShare> {
  const page = await opened(browser, platform);
  const lengths = await page.evaluate<number[]>(`bench.many(${isOfOne})`);
  if (lengths.length !== GROUPS || Math.min(...lengths) < 951) throw new Error(`lengths: ${lengths}`);
  const before = await usage(browser);
  const begunAt = performance.now();
  const changesPerSecond = await change(platform, isOfOne);
  const seconds = (performance.now() - begunAt) / MS_PER_S;
  const after = await usage(browser);
  const notices = await page.evaluate<number>("changed()");
  await page.context().close();
  return {
    process: (after - before) / seconds,
    changesPerSecond,
    notices: notices / seconds,
  };
}

async function openings(browser: Browser, platform: TestPlatform): Promise<number[]> {
  const page = await opened(browser, platform);
  const times: number[] = [];
  for (let index = 0; index < OPENINGS; index++) times.push(await page.evaluate<number>("bench.opening()"));
  await page.context().close();
  return times;
}

/** Measures the time from another program's request until the new item is in the page's document. */
async function screenAges(browser: Browser, platform: TestPlatform): Promise<number[]> {
  const page = await opened(browser, platform);
  await page.evaluate("bench.showing()");
  for (let index = 0; index < INSERTS; index++) {
    const sentAt = performance.timeOrigin + performance.now();
    const record = { group: -1, rank: index, title: `New ${index}`, sentAt };
    const { status } = await platform.service.post("/api/db/shared/tables/tasks", record);
    if (status !== 201) throw new Error(`insert: ${status}`);
    await Bun.sleep(INSERT_EVERY_MS);
  }
  const ages = await page.evaluate<number[]>("ages");
  await page.context().close();
  if (ages.length !== INSERTS) throw new Error(`${ages.length} of ${INSERTS} were shown`);
  return ages;
}

/** Measures live queries in a real Chromium on the server's machine. */
export async function measureClientInBrowser(note: (text: string) => void): Promise<ClientFigures> {
  const platform = await testPlatform({ config: CONFIG, files: { "web/index.html": PAGE } });
  const { path, env } = await browserProgram();
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  const browser = await chromium.launch({ executablePath: path, args, env: { ...process.env, ...env } as never });
  try {
    await fill(platform);
    note("first results");
    const opening = await openings(browser, platform);
    note("inserts of another client");
    const ages = await screenAges(browser, platform);
    note("50 queries, apart");
    const apart = await coreShare(browser, platform, false);
    note("50 queries, together");
    const together = await coreShare(browser, platform, true);
    return {
      openingP50Ms: quantile(opening, 0.5),
      openingMaxMs: Math.max(...opening),
      screenP50Ms: quantile(ages, 0.5),
      screenP99Ms: quantile(ages, 0.99),
      apart,
      together,
    };
  } finally {
    await browser.close();
    await platform.stop();
  }
}
