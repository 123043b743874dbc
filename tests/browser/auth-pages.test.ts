import { afterAll, beforeAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import { bundleReact } from "../client/react-bundle.ts";
import { freePort } from "../client/wire.ts";
import { nextEmail, PASSWORD } from "../http/auth/auth-support.ts";
import { testBrowser } from "../support/browser.ts";
import { expectAccessible } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";

// The pages for signing in, in a real browser, and applications that use them.

const PAGE = `<!doctype html><title>App</title><script type="module">
  import { createClient } from "/client/index.js";
  globalThis.client = createClient({ url: location.origin });
  globalThis.result = await client.auth.redirectResult().catch((error) => ({ code: error.code, message: error.message }));
  document.title = "Ready";
</script>`;
const reactPage = (version: string) =>
  `<!doctype html><title>React</title><div id="root"></div><script type="module" src="/app-${version}.js"></script>`;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
let origin: string;
beforeAll(async () => {
  const port = await freePort();
  origin = `http://localhost:${port}`;
  platform = await testPlatform({
    args: ["--port", String(port)],
    config: `{
      site: { directory: "./web" },
      server: { publicUrl: ${JSON.stringify(origin)} },
      auth: {
        anonymous: true, magicLink: true, emailOtp: true, mfa: { totp: true },
        passkeys: { rpName: "Club", rpId: "localhost", origin: "http://localhost:1" },
        pages: { name: "Acme", accent: "#ffe066", terms: "/terms", privacy: "/privacy" },
      },
    }`,
    files: {
      "web/index.html": PAGE,
      "web/react-18.html": reactPage("18"),
      "web/react-19.html": reactPage("19"),
      "web/app-18.js": await bundleReact("react-account-app.ts", "18", "browser"),
      "web/app-19.js": await bundleReact("react-account-app.ts", "19", "browser"),
    },
  });
}, 60_000);
afterAll(() => platform.stop());

const ready = (page: Page) => page.waitForFunction('document.title === "Ready"');
const userIn = (page: Page) => page.evaluate<{ id: string; email: string | null } | null>("client.auth.user");

async function signUpAt(page: Page, email = nextEmail()): Promise<string> {
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign up" }).click();
  return email;
}

browserTest("[AU332] without JavaScript: sign-up, a wrong password, sign-in, sign-out", async () => {
  const { page, problems } = await openProfile({ javaScriptEnabled: false });
  await page.goto(`${origin}/auth/sign-up`);
  const email = await signUpAt(page);
  await page.getByText(email).first().waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("status").waitFor();
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill("wrong password");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  expect(await page.getByRole("alert").textContent()).toBe("The address or the password is wrong.");
  expect(await page.getByLabel("Email").inputValue()).toBe(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL(`${origin}/auth/account`);
  expect(await page.getByRole("button", { name: "Sign in with a passkey" }).count()).toBe(0);
  // The answer 401 of the wrong password.
  expect(problems.filter((text) => !text.includes("401"))).toEqual([]);
});

browserTest(
  "[AU348] a passkey is added on the account page, signs in at the pages, and is removed",
  async () => {
    const { context, page, problems } = await openProfile();
    const cdp = await context.newCDPSession(page);
    await cdp.send("WebAuthn.enable");
    const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
      options: {
        protocol: "ctap2",
        transport: "internal",
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    await page.goto(`${origin}/auth/sign-up`);
    const email = await signUpAt(page);
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await page.getByRole("status").getByText("Saved.").waitFor();
    // The browser offers it where the address is typed, and this one takes it at once.
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    const setTaken = (enabled: boolean) =>
      cdp.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId, enabled });
    await setTaken(false);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await setTaken(true);
    await page.waitForURL(`${origin}/auth/account`);
    await page.getByText(email).first().waitFor();
    await page.locator("#passkeys").getByRole("button", { name: "Remove" }).click();
    await page.getByRole("status").getByText("Saved.").waitFor();
    expect(await page.locator("#passkeys").getByRole("button", { name: "Remove" }).count()).toBe(0);
    expect(problems).toEqual([]);
  },
  60_000,
);

browserTest(
  "[AU330] [AU331] the pages are accessible, in light and dark, from 360 to 1440 pixels",
  async () => {
    for (const [colorScheme, width] of [
      ["light", 1440],
      ["dark", 360],
    ] as const) {
      const { page } = await openProfile({ colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
      for (const path of [
        "sign-in",
        "sign-up",
        "forgot-password",
        "magic-link",
        "sign-in?with=code",
        "reset-password",
      ]) {
        await page.goto(`${origin}/auth/${path}`);
        await expectAccessible(page);
      }
      await page.goto(`${origin}/auth/sign-up`);
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByLabel("Email").fill("no@address");
      await page.getByRole("button", { name: "Sign up" }).click();
      await page.getByRole("alert").waitFor();
      await expectAccessible(page);
      await page.getByLabel("Password").fill(PASSWORD);
      await signUpAt(page);
      await page.getByRole("button", { name: "Set it up" }).click();
      await page.getByLabel("QR").waitFor();
      await expectAccessible(page);
    }
  },
  120_000,
);

browserTest(
  "[TC390] an application signs in at the pages and comes back, with nothing in its address",
  async () => {
    const { page, problems } = await openProfile();
    await page.goto(`${origin}/?from=here`);
    await ready(page);
    await page.evaluate(`document.title = ""; void client.auth.signInWithPage()`);
    await page.waitForURL(`${origin}/auth/sign-in`);
    await page.getByRole("link", { name: /Sign up/ }).click();
    const email = await signUpAt(page);
    await ready(page);
    expect(page.url()).toBe(`${origin}/?from=here`);
    expect(await userIn(page)).toMatchObject({ email });
    expect(await page.evaluate("result")).toMatchObject({ user: { email } });
    // On a shared computer nobody enters as the one before.
    await page.evaluate("client.auth.signOut()");
    await page.goto(`${origin}/auth`);
    expect(page.url()).toBe(`${origin}/auth/sign-in`);
    expect(problems).toEqual([]);
  },
  60_000,
);

browserTest("[TC391] a code in an address to which signInWithPage has not led signs nobody in", async () => {
  const { page } = await openProfile();
  await page.goto(`${origin}/?code=${"x".repeat(43)}`);
  await ready(page);
  expect(await page.evaluate("result")).toBeNull();
  expect(await userIn(page)).toBeNull();
});

browserTest(
  "[TC392] an anonymous user who signs up at the pages stays the same user",
  async () => {
    const { page, problems } = await openProfile();
    await page.goto(origin);
    await ready(page);
    await page.evaluate("client.auth.signInAnonymously()");
    const guest = await userIn(page);
    await page.evaluate(`document.title = ""; void client.auth.signInWithPage()`);
    await page.waitForURL(`${origin}/auth/sign-in`);
    await page.getByRole("link", { name: /Sign up/ }).click();
    const email = await signUpAt(page);
    await ready(page);
    expect(await userIn(page)).toMatchObject({ id: guest?.id, email });
    expect(problems).toEqual([]);
  },
  60_000,
);

browserTest(
  "[TC393] an application opens the account page in its session, and signing out there ends it",
  async () => {
    const { page, problems } = await openProfile();
    await page.goto(origin);
    await ready(page);
    const email = nextEmail();
    await page.evaluate(`client.auth.signUp(${JSON.stringify({ email, password: PASSWORD })})`);
    await page.goto(await page.evaluate<string>("client.auth.accountPage()"));
    await page.getByText(`This is the account of ${email}.`).waitFor();
    expect(page.url()).toBe(`${origin}/auth/open`);
    await page.getByRole("button", { name: "Open the account" }).click();
    await page.waitForURL(`${origin}/auth/account`);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(`${origin}/auth/sign-in`);
    await page.goto(origin);
    await ready(page);
    expect(await page.evaluate("client.auth.reload().then((user) => user, (error) => error.code)")).toBe(
      "unauthenticated",
    );
    expect(problems.filter((text) => !text.includes("401"))).toEqual([]);
  },
  60_000,
);

for (const version of ["18", "19"])
  browserTest(
    `[TC394] with React ${version}, AccountButton signs in, shows who is signed in, and opens the account`,
    async () => {
      const { page, problems } = await openProfile();
      await page.goto(`${origin}/react-${version}.html`);
      await page.getByText("Nobody is signed in").waitFor();
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByRole("link", { name: /Sign up/ }).click();
      const email = await signUpAt(page);
      await page.getByText(`Hello, ${email}`).waitFor();
      expect(page.url()).toBe(`${origin}/react-${version}.html`);
      expect(await page.locator("#out").count()).toBe(0);
      await page.getByRole("button", { name: email }).click();
      await page.getByRole("button", { name: "Open the account" }).waitFor();
      expect(problems).toEqual([]);
    },
    60_000,
  );
