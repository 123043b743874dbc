import { afterAll, beforeAll, expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { readFilms } from "../../example/films.ts";
import { PAGES_BUILD } from "../../example/web/build.ts";
import { lastMail } from "../http/auth/auth-support.ts";
import { testBrowser } from "../support/browser.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

// The pages of the film club (example/web) with the config of `npm start`.

const ROOT = resolve(import.meta.dir, "../..");
const PUBLIC = "example/web/public";
const AXE = fileURLToPath(import.meta.resolve("axe-core"));
/** Number of records that one batch inserts. */
const FILMS = 500;
const START_TIMEOUT_MS = 60_000;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
beforeAll(async () => {
  const staticFiles = readdirSync(join(ROOT, PUBLIC)).filter((name) => name.includes("."));
  const files = staticFiles.map((name) => [`${PUBLIC}/${name}`, readFileSync(join(ROOT, PUBLIC, name), "utf8")]);
  platform = await testPlatform({
    config: readFileSync(join(ROOT, "platform.config.ts"), "utf8"),
    files: Object.fromEntries(files),
  });
  const built = await Bun.build({ ...PAGES_BUILD, outdir: join(dirname(platform.configFile), PUBLIC, "app") });
  expect(built.success).toBe(true);
  const last = (await readFilms()).slice(-FILMS);
  const inserts = last.map((film, index) => ({ ...film, id: `film-${String(index + 1).padStart(4, "0")}` }));
  const { status } = await platform.service.post("/api/db/shared/tables/films/batch", { inserts });
  expect(status).toBe(200);
}, START_TIMEOUT_MS);
afterAll(() => platform.stop());

const PHONE = { width: 360, height: 740 };
const PASSWORD = "correct horse battery";
let people = 0;

/** A browser in which somebody has signed up. */
async function visitor(name: string, viewport = { width: 1200, height: 860 }) {
  const profile = await openProfile({ viewport });
  const email = `${name.toLowerCase()}-${++people}@example.com`;
  const { page } = profile;
  await page.goto(platform.url);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Sign up" }).click();
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign up" }).click();
  await page.getByRole("button", { name }).waitFor();
  return { ...profile, email };
}

const open = (page: Page, link: string) => page.getByRole("link", { name: link, exact: true }).click();
const send = async (page: Page, field: string, text: string, button: string) => {
  await page.getByPlaceholder(field).fill(text);
  await page.getByRole("button", { name: button, exact: true }).click();
};

browserTest("films can be browsed and searched, and follow the catalogue", async () => {
  const { page, problems } = await openProfile();
  await page.goto(platform.url);
  await page.getByRole("link", { name: /Toy Story 3/ }).waitFor();
  const before = await page.locator(".card").count();
  expect(before).toBeGreaterThan(20);
  await page.getByLabel("Search").fill("the third man");
  await page.getByText("No film has “the third man” in its title.").waitFor();
  const film = { title: "The Third Man", genre: "Thriller/Suspense", imdbRating: 8.1, imdbVotes: 180_000 };
  await platform.service.post("/api/db/shared/tables/films", film);
  await page.getByRole("link", { name: /The Third Man/ }).click();
  await page.getByRole("heading", { name: "The Third Man" }).waitFor();
  expect(new URL(page.url()).pathname).toStartWith("/films/");
  // The address leads to the page also without the one before.
  await page.reload();
  await page.getByRole("heading", { name: "The Third Man" }).waitFor();
  expect(problems).toEqual([]);
});

browserTest("a review and a watch list are there in every tab, and for those who may see them", async () => {
  const { context, page, problems } = await visitor("Ann");
  await page.getByRole("link", { name: /Toy Story 3/ }).click();
  const reader = await openProfile();
  await reader.page.goto(page.url());
  await page.getByRole("button", { name: "Add to my list" }).click();
  await page.getByRole("button", { name: "On my list" }).waitFor();
  await page.locator(".stars label").nth(1).click();
  await send(page, "What did you think?", "The furnace!", "Publish");
  await reader.page.getByText("The furnace!").waitFor();
  expect(await reader.page.getByLabel("4 of 5 stars").count()).toBe(1);
  expect(await reader.page.getByRole("button", { name: "my list" }).count()).toBe(0);

  const second = await context.newPage();
  await second.goto(`${platform.url}/list`);
  await second.getByRole("link", { name: /Toy Story 3/ }).waitFor();
  await page.getByRole("button", { name: "On my list" }).click();
  await second.getByText("Nothing here yet.").waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await reader.page.getByText("The furnace!").waitFor({ state: "detached" });
  expect([...problems, ...reader.problems]).toEqual([]);
});

browserTest("signing out on the account page is seen in every tab", async () => {
  const { context, page, email } = await visitor("Cleo");
  const second = await context.newPage();
  await second.goto(platform.url);
  await second.getByRole("button", { name: "Cleo" }).click();
  await second.getByRole("button", { name: "Open the account" }).click();
  await second.getByText(email).first().waitFor();
  await second.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
});

browserTest("a club has whom its founder invites by mail, and nobody else", async () => {
  const ann = await visitor("Ann");
  const ben = await visitor("Ben", PHONE);
  await open(ann.page, "Clubs");
  await send(ann.page, "Name of a new club", "Film noir", "Found it");
  await ann.page.getByRole("heading", { name: "Film noir" }).waitFor();
  await send(ann.page, "Write to the club", "Friday, eight o'clock?", "Send");
  await open(ben.page, "Clubs");
  await ben.page.getByRole("link", { name: "Film noir" }).click();
  await ben.page.getByText("This club is private.").waitFor();
  expect(await ben.page.getByText("Friday, eight").count()).toBe(0);
  const invited = ann.page.waitForResponse(/\/invitations$/);
  await send(ann.page, "Invite by email", ben.email, "Invite");
  expect((await invited).status()).toBe(200);
  const { subject, link = "" } = lastMail(platform, ben.email);
  expect(subject).toBe("Ann invites you to Film noir");
  const other = await ben.context.newPage();
  await other.goto(link);
  await other.getByLabel("Email").fill(ben.email);
  await other.getByLabel("Password").fill(PASSWORD);
  await other.getByRole("button", { name: "Sign in", exact: true }).click();
  await other.getByRole("button", { name: "Accept" }).click();
  await other.waitForURL(`${platform.url}/`);
  await ben.page.getByText("Friday, eight o'clock?").waitFor();
  await send(ben.page, "Write to the club", "I bring the popcorn", "Send");
  await ann.page.getByText("I bring the popcorn").waitFor();
  await ann.page.getByRole("button", { name: "Remove Ben" }).click();
  await ben.page.getByText("This club is private.").waitFor();
  expect(await ben.page.getByText("popcorn").count()).toBe(0);
});

browserTest("in the lounge all see the same film and the same second, and hear one another", async () => {
  const ann = await visitor("Ann");
  const guest = await openProfile({ viewport: PHONE });
  await open(ann.page, "Lounge");
  await ann.page.getByPlaceholder("Propose a film").fill("toy story");
  await ann.page.getByRole("button", { name: /Toy Story 3/ }).click();
  await ann.page.getByRole("heading", { name: "Toy Story 3" }).waitFor();
  await guest.page.goto(`${platform.url}/lounge`);
  await guest.page.getByRole("button", { name: "Come in as a guest" }).click();
  await guest.page.getByRole("heading", { name: "Toy Story 3" }).waitFor();
  await guest.page.getByRole("button", { name: "For 0" }).click();
  await ann.page.getByRole("button", { name: "For 1" }).waitFor();
  await ann.page.getByRole("button", { name: "Play" }).click();
  await guest.page.getByRole("button", { name: "Pause" }).waitFor();
  await ann.page.getByLabel("Here now").getByText("Guest").waitFor();
  await send(guest.page, "Say something", "Here we go", "Say");
  await ann.page.getByText("Here we go").waitFor();
  expect([...ann.problems, ...guest.problems]).toEqual([]);
});

/** A bitmap of 4 × 6 pixels. */
function picture(): Buffer {
  const bytes = Buffer.alloc(54 + 12 * 6, 0x40);
  bytes.fill(0, 0, 54);
  bytes.write("BM", 0);
  bytes.writeUInt32LE(bytes.length, 2);
  bytes.writeUInt32LE(54, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(4, 18);
  bytes.writeInt32LE(6, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(24, 28);
  return bytes;
}

browserTest("an editor's poster is on every page at once", async () => {
  const editor = await visitor("Eve");
  expect(await editor.page.getByLabel("Upload a poster").count()).toBe(0);
  const { body } = await platform.service.get<{ users: { id: string }[] }>(
    `/api/auth/admin/users?email=${editor.email}`,
  );
  await platform.service.patch(`/api/auth/admin/users/${body.users[0]?.id}`, { role: "editor" });
  const reader = await openProfile();
  await reader.page.goto(platform.url);
  await reader.page.getByRole("link", { name: /Toy Story 3/ }).click();
  await editor.page.goto(reader.page.url());
  await editor.page.getByLabel("Upload a poster").setInputFiles({
    name: "poster.bmp",
    mimeType: "image/bmp",
    buffer: picture(),
  });
  await reader.page.locator("img.poster").waitFor();
  const width = "((image) => image.decode().then(() => image.naturalWidth))(document.querySelector('img.poster'))";
  expect(await reader.page.evaluate(width)).toBe(4);
});

for (const colorScheme of ["light", "dark"] as const) {
  browserTest(`the pages are accessible and fit a phone, ${colorScheme}`, async () => {
    const { page } = await visitor("Dora", PHONE);
    await page.emulateMedia({ colorScheme });
    const film = await page.locator(".card").first().getAttribute("href");
    for (const path of ["/", film ?? "", "/list", "/clubs", "/lounge"]) {
      await page.goto(platform.url + path);
      await page.locator("main :is(h1, .card)").first().waitFor();
      expect([path, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([path, PHONE.width]);
      await page.addScriptTag({ path: AXE });
      const found = await page.evaluate<{ id: string; nodes: { html: string }[] }[]>(
        "axe.run().then(({ violations }) => violations)",
      );
      expect([path, found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)]).toEqual([path, []]);
    }
  });
}
