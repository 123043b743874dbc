import { afterAll, beforeAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import { freePort } from "../client/wire.ts";
import { nextEmail, PASSWORD, signUp } from "../http/auth/auth-support.ts";
import { testBrowser } from "../support/browser.ts";
import { expectAccessible } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";

// Phones on the pages, in a real browser.

const { browserTest, openProfile } = testBrowser();
let receiver: Bun.Server<unknown>;
let platform: TestPlatform;
let origin: string;
const sent: { to: string; code: string }[] = [];

beforeAll(async () => {
  receiver = Bun.serve({
    port: 0,
    async fetch(request) {
      const text: (typeof sent)[number] = JSON.parse(await request.text());
      sent.push(text);
      return new Response("ok");
    },
  });
  const port = await freePort();
  origin = `http://localhost:${port}`;
  platform = await testPlatform({
    args: ["--port", String(port)],
    config: `import { defineConfig, webhookSender } from "platform";
export default defineConfig({
  server: { publicUrl: "${origin}" },
  auth: {
    mfa: { totp: true, phone: true }, pages: { name: "Acme" },
    phones: { send: webhookSender({ url: "${receiver.url}", secret: "${btoa("the secret of the texts, 32 bytes")}" }), countries: ["AT"] },
  },
});
`,
  });
}, 60_000);
afterAll(async () => {
  await receiver.stop(true);
  await platform.stop();
});

let numbers = 0;
const nextPhone = (): string => `+43660${String(5_234_000 + ++numbers)}`;
/** Returns the code of the text that a press sends. */
async function codeOf(phone: string, press: () => Promise<void>): Promise<string> {
  const texts = () => sent.filter(({ to }) => to === phone);
  const before = texts().length;
  await press();
  await until("the text is sent", () => texts().length > before);
  return texts().at(-1)?.code ?? "";
}
/** Every field that asks for a number or a code says so to password managers and keyboards. */
const fieldsOf = (page: Page) =>
  page.evaluate<{ name: string; type: string; autocomplete: string }[]>(
    `[...document.querySelectorAll("input:not([type=hidden])")].map(({ name, type, autocomplete }) => ({ name, type, autocomplete }))`,
  );

browserTest(
  "[AU430] without JavaScript: a number and its code sign in",
  async () => {
    const { page, problems } = await openProfile({ javaScriptEnabled: false });
    const phone = nextPhone();
    await page.goto(`${origin}/auth/sign-in`);
    await page.getByRole("link", { name: "Text me a code" }).click();
    expect(await page.locator("input[type=tel]").getAttribute("autocomplete")).toBe("tel");
    await page.getByLabel("Phone").fill(phone);
    const code = await codeOf(phone, () => page.getByRole("button", { name: "Text me a code" }).click());
    expect(await page.getByLabel("Code").getAttribute("autocomplete")).toBe("one-time-code");
    await page.getByLabel("Code").fill(code);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(`${origin}/auth/account`);
    await page.getByText(phone).first().waitFor();
    expect(problems).toEqual([]);
  },
  60_000,
);

for (const [locale, colorScheme, width] of [
  ["en", "light", 1440],
  ["de", "dark", 360],
] as const)
  browserTest(
    `[AU430] [AU431] the forms about phones are accessible, in ${locale}, ${colorScheme}, at ${width} pixels`,
    async () => {
      const { page } = await openProfile({ locale, colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
      const [phone, email] = [nextPhone(), nextEmail()];
      const fits = async (): Promise<void> => {
        await expectAccessible(page);
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
      };
      const text = { en: "Text me a code", de: "Code per SMS senden" }[locale];
      const confirm = { en: "Confirm", de: "Bestätigen" }[locale];
      await signUp(platform, email);
      await page.goto(`${origin}/auth/sign-in?with=phone`);
      await fits();
      await page.locator("#phone").fill("12");
      await page.getByRole("button", { name: text }).click();
      await page.getByRole("alert").waitFor();
      await fits();
      const signIn = async (): Promise<void> => {
        await page.goto(`${origin}/auth/sign-in`);
        await page.locator("#email").fill(email);
        await page.locator("#password").fill(PASSWORD);
        await page.locator("form button.main").click();
      };
      await signIn();
      await page.waitForURL(`${origin}/auth/account`);
      await page.locator("#newPhone").fill(phone);
      const code = await codeOf(phone, () => page.locator("#phone form:has(#newPhone) button").first().click());
      await fits();
      await page.locator("#phoneCode").fill(code);
      await page.locator("#phone").getByRole("button", { name: confirm }).click();
      await page.locator("#phone").getByText(phone).waitFor();
      const enrolling = await codeOf(phone, () =>
        page.locator("#factor form:has(input[value=phone-factor-begin]) button").click(),
      );
      await page.locator("ul.codes").waitFor();
      await fits();
      await page.locator("#factorCode").fill(enrolling);
      await page.locator("#factor").getByRole("button", { name: confirm }).click();
      await page.locator("#proof").waitFor();
      await fits();
      const fields = await fieldsOf(page);
      for (const [name, type, autocomplete] of [
        ["newPhone", "tel", "tel"],
        ["proof", "text", "one-time-code"],
        ["factorCode", "text", "one-time-code"],
      ]) {
        expect(fields).toContainEqual({ name, type, autocomplete } as (typeof fields)[number]);
      }
      await page.context().clearCookies();
      const second = await codeOf(phone, signIn);
      await page.locator("#code").waitFor();
      await fits();
      await page.locator("#code").fill(second);
      await page.locator("form button.main").first().click();
      await page.waitForURL(`${origin}/auth/account`);
    },
    120_000,
  );
