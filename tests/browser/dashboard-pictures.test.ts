import { afterAll, beforeAll, expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { readFilms } from "../../example/films.ts";
import { testBrowser } from "../support/browser.ts";
import { openDashboard } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

// The pictures of the guide, with the data of the film club. PLATFORM_PICTURES=1 writes them to docs/images.

const ROOT = resolve(import.meta.dir, "../..");
const PUBLIC = "example/web/public";
const IMAGES = join(ROOT, "docs/images");
const PICTURE_MAX_BYTES = 150_000;
const START_TIMEOUT_MS = 60_000;
const BATCH = 500;
const DAYS = 30;
const DAY_MS = 86_400_000;
const EVENTS = ["film opened", "film rated", "review written", "lounge joined"];
const FILMS = "/api/db/shared/tables/films";

const browser = testBrowser();
const { browserTest } = browser;
let platform: TestPlatform;
beforeAll(async () => {
  const names = readdirSync(join(ROOT, PUBLIC)).filter((name) => name.includes("."));
  platform = await testPlatform({
    config: readFileSync(join(ROOT, "platform.config.ts"), "utf8"),
    files: Object.fromEntries(
      names.map((name) => [`${PUBLIC}/${name}`, readFileSync(join(ROOT, PUBLIC, name), "utf8")]),
    ),
  });
  const films = await readFilms();
  for (let at = 0; at < films.length; at += BATCH) {
    const { status } = await platform.service.post(`${FILMS}/batch`, { inserts: films.slice(at, at + BATCH) });
    expect(status).toBe(200);
  }
  for (const [name, email] of [
    ["Ada", "ada@example.com"],
    ["Grace", "grace@example.com"],
  ] as const) {
    const body = { email, displayName: name, password: "correct horse battery" };
    expect((await platform.service.post("/api/auth/admin/users", body)).status).toBe(201);
  }
  await trackEvents();
}, START_TIMEOUT_MS);
afterAll(() => platform.stop());

/** A month of events, more of them at its end and at weekends. */
async function trackEvents(): Promise<void> {
  const now = Date.now();
  for (let day = 0; day < DAYS; day++) {
    const count = 20 + (DAYS - day) + (day % 7 < 2 ? 18 : (day * 5) % 9);
    const events = Array.from({ length: count }, (_, n) => ({
      name: EVENTS[(n * n + day) % EVENTS.length] ?? "",
      timestamp: now - day * DAY_MS - n * 1_000,
      properties: { film: `film-${1_000 + ((n * 37 + day) % 900)}`, stars: 1 + ((n + day) % 5) },
    }));
    expect((await platform.service.post("/api/analytics/track", { events })).status).toBe(200);
  }
}

const PICTURES = [
  { name: "dashboard-analytics", path: "/admin/analytics?view=events&range=30d", ready: "canvas" },
  { name: "dashboard-tables", path: "/admin/tables/shared/-/films?sort=imdbRating%3Adesc", ready: "[role=gridcell]" },
  { name: "dashboard-schema", path: "/admin/settings?view=schema", ready: ".react-flow__node", scheme: "dark" },
] as const;

for (const { name, path, ready, ...options } of PICTURES) {
  browserTest(`[AD77] the picture ${name} of the guide is made from the film club`, async () => {
    const { page, problems } = await openDashboard(browser, platform, path, {
      colorScheme: "scheme" in options ? options.scheme : "light",
      viewport: { width: 1200, height: 720 },
    });
    await page.locator(ready).first().waitFor();
    await page.waitForLoadState("networkidle");
    const picture = await page.screenshot();
    expect(picture.byteLength).toBeLessThanOrEqual(PICTURE_MAX_BYTES);
    if (process.env["PLATFORM_PICTURES"] === "1") await Bun.write(join(IMAGES, `${name}.png`), picture);
    expect(problems).toEqual([]);
  });
}
