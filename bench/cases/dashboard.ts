import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { buildDashboard } from "../../scripts/dashboard/bundle.ts";
import { browserProgram } from "../../tests/support/chromium.ts";
import { SERVICE_KEY, type TestPlatform, testPlatform } from "../../tests/support/index.ts";
import { quantile } from "../support/statistics.ts";

const [RECORDS, BATCH] = [100_000, 500];
const ROUNDS = 4;
const FRAMES = 300;
const SCROLL_PX = 200;
const SMOOTH_MS = 20;
const SETTLED_MS = 2_000;
const WAIT_MS = 30_000;
const [WIDTH, HEIGHT] = [1_440, 900];

const CONFIG = `{
  databases: { shared: { tables: { tasks: {
    schema: { title: { type: "string" }, rank: { type: "integer" }, done: { type: "boolean" }, note: { type: "text" } },
    indexes: [{ fields: ["rank"] }],
  } } } },
}`;

export interface DashboardFigures {
  /** Size of all files of the pages, as embedded in the executable. */
  embeddedBytes: number;
  /** Bytes over the wire, with headers and without data: the sign-in page, and the Overview with its charts. */
  signInBytes: number;
  overviewBytes: number;
  /** Time from a click on a link to its page's data. */
  clickP50Ms: number;
  clickMaxMs: number;
  /** Frame time while scrolling through a table of 100,000 records, 200 pixels a frame. */
  frameP50Ms: number;
  frameP95Ms: number;
  smoothShare: number;
}

async function fill(platform: TestPlatform): Promise<void> {
  const note = "A paragraph of text that says what happened, to whom, and what came of it in the end.";
  for (let from = 0; from < RECORDS; from += BATCH) {
    const inserts = Array.from({ length: BATCH }, (_, index) => {
      const rank = from + index;
      return {
        id: `t${String(rank).padStart(6, "0")}`,
        title: `Task ${(rank * 7_919) % RECORDS}`,
        rank,
        done: rank % 3 === 0,
        note,
      };
    });
    const { status } = await platform.service.post("/api/db/shared/tables/tasks/batch", { inserts });
    if (status !== 200) throw new Error(`batch: ${status}`);
  }
}

/** Returns the bytes of the pages' own files that a browser without a cache loads at an address. */
async function bytesOf(context: BrowserContext, url: string): Promise<number> {
  const page = await context.newPage();
  // Excludes pages that are preloaded once the first one is shown.
  await page.addInitScript("Object.defineProperty(navigator, 'connection', { value: { saveData: true } })");
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  const own = new Set<string>();
  let bytes = 0;
  session.on("Network.responseReceived", ({ requestId, response }) => {
    if (new URL(response.url).pathname.startsWith("/admin")) own.add(requestId);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (own.has(requestId)) bytes += encodedDataLength;
  });
  await page.goto(url);
  await page.waitForLoadState("networkidle");
  await page.waitForTimeout(SETTLED_MS);
  await page.close();
  return bytes;
}

async function signedIn(browser: Browser, platform: TestPlatform): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: WIDTH, height: HEIGHT } });
  context.setDefaultTimeout(WAIT_MS);
  const response = await context.request.post(`${platform.url}/api/admin/session`, { data: { key: SERVICE_KEY } });
  if (response.status() !== 204) throw new Error(`the key does not sign in: ${response.status()}`);
  return context;
}

/** Links to click, each with a text that appears with its data. */
const CLICKS: readonly [link: string, data: string][] = [
  ["Tables", "tasks"],
  ["tasks", "t000000"],
  ["Users", "No users"],
  ["Settings", "shared / tasks"],
];

async function clicks(page: Page): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const [link, data] of CLICKS) {
      const begun = await page.evaluate<number>("performance.now()");
      await page.getByRole("link", { name: link, exact: true }).first().click();
      const shown = page.getByRole("main").getByText(data, { exact: false }).first();
      await shown.waitFor();
      times.push((await page.evaluate<number>("performance.now()")) - begun);
    }
  }
  return times;
}

/** Measures the time of each frame while the grid is scrolled. */
const SCROLL = `new Promise((resolve) => {
  const grid = document.querySelector(".grid");
  const frames = [];
  let last = performance.now();
  const step = (now) => {
    frames.push(now - last);
    last = now;
    grid.scrollBy(0, ${SCROLL_PX});
    if (frames.length > ${FRAMES}) resolve(frames.slice(1));
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})`;

/** Measures the dashboard in a real Chromium, on a server with a table of 100,000 records. */
export async function measureDashboard(note: (text: string) => void): Promise<DashboardFigures> {
  const program = await browserProgram();
  const browser = await chromium.launch({
    executablePath: program.path,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    env: { ...process.env, ...program.env } as never,
  });
  const platform = await testPlatform({ config: CONFIG });
  try {
    note("dashboard: filling");
    await fill(platform);
    note("dashboard: first views");
    const signInBytes = await bytesOf(await browser.newContext(), `${platform.url}/admin`);
    const overviewBytes = await bytesOf(await signedIn(browser, platform), `${platform.url}/admin`);
    note("dashboard: clicks");
    const page = await (await signedIn(browser, platform)).newPage();
    await page.goto(`${platform.url}/admin`);
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    const times = (await clicks(page)).toSorted((one, other) => one - other);
    note("dashboard: scrolling");
    await page.goto(`${platform.url}/admin/tables/shared/-/tasks`);
    await page.getByText("t000000").waitFor();
    const frames = (await page.evaluate<number[]>(SCROLL)).toSorted((one, other) => one - other);
    return {
      embeddedBytes: (await buildDashboard({ isShort: true })).length,
      signInBytes,
      overviewBytes,
      clickP50Ms: quantile(times, 0.5),
      clickMaxMs: times.at(-1) ?? 0,
      frameP50Ms: quantile(frames, 0.5),
      frameP95Ms: quantile(frames, 0.95),
      smoothShare: frames.filter((ms) => ms <= SMOOTH_MS).length / frames.length,
    };
  } finally {
    await browser.close();
    await platform.stop();
  }
}
