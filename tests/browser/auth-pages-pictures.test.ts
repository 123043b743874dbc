import { afterAll, beforeAll, expect } from "bun:test";
import { join, resolve } from "node:path";
import { freePort } from "../client/wire.ts";
import { PASSWORD } from "../http/auth/auth-support.ts";
import { testBrowser } from "../support/browser.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

// The picture of the sign-in pages in the guide. PLATFORM_PICTURES=1 writes it to docs/images.

const IMAGE = join(resolve(import.meta.dir, "../.."), "docs/images/sign-in-pages.png");
const PICTURE_MAX_BYTES = 150_000;
const PAGE = { width: 440, height: 700 };

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
let origin: string;
beforeAll(async () => {
  const port = await freePort();
  origin = `http://localhost:${port}`;
  const passkeys = { rpName: "Acme", rpId: "localhost", origin };
  const oauth = { github: { clientId: "id", clientSecret: "secret" } };
  const storage = { buckets: { avatars: {} } };
  const pages = { name: "Acme", accent: "#00a86b", pictures: "avatars" };
  const auth = { magicLink: true, emailOtp: true, passkeys, oauth, pages };
  platform = await testPlatform({
    args: ["--port", String(port)],
    config: { server: { publicUrl: origin }, auth, storage },
  });
}, 60_000);
afterAll(() => platform.stop());

browserTest(
  "[AU433] the picture of the guide is made of the pages, and each of its parts is whole in 440 pixels",
  async () => {
    const parts: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, problems } = await openProfile({ colorScheme, viewport: PAGE });
      const take = async () => {
        expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBe(PAGE.width);
        parts.push((await page.screenshot()).toString("base64"));
      };
      await page.goto(`${origin}/auth/sign-in`);
      await page.getByRole("button", { name: "Sign in with a passkey" }).waitFor();
      await take();
      await page.getByRole("link", { name: /Sign up/ }).click();
      await page.getByLabel("Name").fill("Ann Example");
      await page.getByLabel("Email").fill(`ann.${colorScheme}@example.com`);
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("button", { name: "Sign up" }).click();
      await page.getByRole("button", { name: "Sign out" }).waitFor();
      await take();
      expect(problems).toEqual([]);
    }
    const { page } = await openProfile({ viewport: { width: parts.length * PAGE.width, height: PAGE.height } });
    const images = parts.map((part) => `<img src="data:image/png;base64,${part}">`);
    await page.setContent(`<style>body { margin: 0; display: flex }</style>${images.join("")}`);
    await page.waitForFunction("[...document.images].every((image) => image.complete)");
    const picture = await page.screenshot();
    expect(picture.byteLength).toBeLessThanOrEqual(PICTURE_MAX_BYTES);
    if (process.env["PLATFORM_PICTURES"] === "1") await Bun.write(IMAGE, picture);
  },
  60_000,
);
