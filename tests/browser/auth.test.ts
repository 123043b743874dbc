import { afterAll, beforeAll, expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { cookieStore } from "../../src/client/index.ts";
import { clubClient } from "../client/support.ts";
import { freePort } from "../client/wire.ts";
import { nextEmail, PASSWORD } from "../http/auth/auth-support.ts";
import { testBrowser } from "../support/browser.ts";
import { type TestPlatform, testPlatform } from "../support/index.ts";
import { type OidcProvider, startOidcProvider } from "../support/oidc-provider.ts";

// Sign-ins that need a browser, and the tabs of one.

/** A page with a client: `client` in the tests. `?cookies` keeps the session in cookies. */
const PAGE = `<!doctype html><title>Club</title><script type="module">
  import { cookieStore, createClient } from "/client/index.js";
  const options = location.search === "?cookies" ? { store: cookieStore() } : {};
  globalThis.client = createClient({ url: location.origin, ...options });
  globalThis.result = await client.auth.redirectResult().catch((error) => ({ code: error.code, message: error.message }));
  document.title = "Ready";
</script>`;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
let provider: OidcProvider;
/** Passkeys are for names, not for addresses. */
let origin: string;
beforeAll(async () => {
  provider = await startOidcProvider();
  const port = await freePort();
  origin = `http://localhost:${port}`;
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    args: ["--port", String(port)],
    config: `{
      site: { directory: "./web" },
      server: { publicUrl: ${JSON.stringify(origin)} },
      auth: {
        anonymous: true, mfa: { totp: true }, session: { accessTokenTtl: 2 },
        passkeys: { rpName: "Club", rpId: "localhost", origin: ${JSON.stringify(origin)} },
        redirectUrls: [${JSON.stringify(`${origin}/*`)}],
        oauth: { club: ${JSON.stringify({ issuer, clientId, clientSecret })} },
      },
      databases: { shared: { tables: { films: { access: { read: true, insert: true } } } } },
    }`,
    files: { "web/index.html": PAGE },
  });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

async function opened(context: BrowserContext, path = "/"): Promise<Page> {
  const page = await context.newPage();
  await page.goto(origin + path);
  await ready(page);
  return page;
}
const ready = (page: Page) => page.waitForFunction('document.title === "Ready"');
const userIn = (page: Page) => page.evaluate<{ id: string; email: string | null } | null>("client.auth.user");

browserTest("[TC20] [TC24] the tabs of a browser share the session, and end it together", async () => {
  const { context, problems } = await openProfile();
  const [one, other] = [await opened(context), await opened(context)];
  await one.evaluate("client.auth.signInAnonymously()");
  const user = await userIn(one);
  await other.waitForFunction("client.auth.user !== null");
  expect(await userIn(other)).toEqual(user);
  await other.reload();
  await ready(other);
  expect(await userIn(other)).toEqual(user);
  await other.evaluate("client.auth.signOut()");
  await one.waitForFunction("client.auth.user === null");
  expect(problems).toEqual([]);
});

browserTest("[TC22] however many tabs need a token at once, each refresh token is used once", async () => {
  for (const hasLocks of [true, false]) {
    const { context } = await openProfile();
    // Missing on plain http in a LAN.
    if (!hasLocks) await context.addInitScript("Object.defineProperty(navigator, 'locks', { value: undefined })");
    const sent: string[] = [];
    context.on("request", (request) => {
      if (request.url().endsWith("/api/auth/refresh")) sent.push(request.postData() ?? "");
    });
    const tabs = [await opened(context), await opened(context), await opened(context)];
    await tabs[0]?.evaluate("client.auth.signInAnonymously()");
    const read = `(async () => {
      const films = client.db("shared").table("films");
      for (let count = 0; count < 5; count++) await Promise.all([films.list(), films.list(), films.count()]);
      return client.auth.user !== null;
    })()`;
    const deadline = performance.now() + 30_000;
    while (sent.length < 2 && performance.now() < deadline) {
      expect(await Promise.all(tabs.map((tab) => tab.evaluate(read)))).toEqual([true, true, true]);
    }
    expect(sent.length).toBeGreaterThanOrEqual(2);
    expect(new Set(sent).size).toBe(sent.length);
  }
});

browserTest("[TC26] a session in cookies is shared by tabs and by a server", async () => {
  const { context, problems } = await openProfile();
  const [one, other] = [await opened(context, "/?cookies"), await opened(context, "/?cookies")];
  await one.evaluate("client.auth.signInAnonymously()");
  const user = await userIn(one);
  await other.waitForFunction("client.auth.user !== null");
  const cookies = await context.cookies(origin);
  expect(cookies).toMatchObject([{ name: "platform.session", sameSite: "Lax", path: "/", secure: false }]);
  expect(await one.evaluate("Object.keys(localStorage)")).toEqual([]);

  const store = cookieStore(cookies.map(({ name, value }) => `${name}=${value}`).join("; "));
  const onServer = clubClient(platform.url, { store });
  expect(await onServer.auth.reload()).toMatchObject({ id: user?.id });
  await onServer.auth.signOut();
  await other.evaluate("client.auth.signOut()");
  await one.waitForFunction("client.auth.user === null");
  expect(await context.cookies(origin)).toEqual([]);
  expect(problems).toEqual([]);
});

browserTest("[TC31] a passkey is registered, signs in, and is removed", async () => {
  const { context, page, problems } = await openProfile();
  const cdp = await context.newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  await page.goto(origin);
  await ready(page);
  const account = JSON.stringify({ email: nextEmail(), password: PASSWORD });
  await page.evaluate(`client.auth.signUp(${account})`);
  const user = await userIn(page);
  const passkey = await page.evaluate<{ id: string }>(`client.auth.passkeys.register({ name: "laptop" })`);
  expect(passkey).toMatchObject({ name: "laptop", lastUsedAt: null });
  expect(await page.evaluate("client.auth.passkeys.register().catch((error) => error.name)")).toBe("InvalidStateError");

  await page.evaluate("client.auth.signOut()");
  expect(await page.evaluate("client.auth.passkeys.signIn()")).toEqual({ user });
  expect(await userIn(page)).toEqual(user);
  expect(await page.evaluate("client.auth.passkeys.list()")).toMatchObject([{ id: passkey.id, name: "laptop" }]);
  await page.evaluate(`client.auth.passkeys.remove(${JSON.stringify(passkey.id)})`);
  expect(await page.evaluate("client.auth.passkeys.list()")).toEqual([]);
  expect(problems).toEqual([]);
});

/** The provider's reaction when the browser arrives: the user agrees at once, or declines. */
const sendBack = (answer: (url: string) => string) => {
  provider.page = (url) => new Response(null, { status: 302, headers: { location: answer(url) } });
};
let people = 0;
const somebody = () => ({ sub: `sub-${++people}`, email: nextEmail(), email_verified: true, name: "Some Body" });

browserTest("[TC32] oauth leaves the page and comes back signed in, without tokens in the address", async () => {
  const { page, problems } = await openProfile();
  const person = somebody();
  sendBack((url) => provider.approve(url, person));
  await page.goto(`${origin}/?from=here`);
  await ready(page);
  await page.evaluate(`document.title = ""; void client.auth.oauth("club")`);
  await ready(page);
  expect(page.url()).toBe(`${origin}/?from=here`);
  expect(await userIn(page)).toMatchObject({ email: person.email, displayName: "Some Body" });
  expect(await page.evaluate("result")).toMatchObject({ user: { email: person.email } });
  expect(await page.evaluate("client.auth.identities.list()")).toMatchObject([{ provider: "club" }]);
  await page.reload();
  await ready(page);
  expect(await page.evaluate("result")).toBeNull();
  expect(problems).toEqual([]);
});

browserTest("[TC32] what the provider refuses is an error, and nobody is signed in", async () => {
  const { page } = await openProfile();
  sendBack((url) => {
    const query = new URL(url).searchParams;
    const back = new URL(query.get("redirect_uri") ?? "");
    back.search = String(new URLSearchParams({ state: query.get("state") ?? "", error: "access_denied" }));
    return back.href;
  });
  await page.goto(origin);
  await ready(page);
  await page.evaluate(`document.title = ""; void client.auth.oauth("club", { redirectTo: "/?back" })`);
  await ready(page);
  expect(page.url()).toBe(`${origin}/?back`);
  expect(await page.evaluate("result")).toMatchObject({ code: "forbidden" });
  expect(await userIn(page)).toBeNull();
});

browserTest("[TC32] a window signs in, while the page stays", async () => {
  const { context, page, problems } = await openProfile();
  const person = somebody();
  sendBack((url) => provider.approve(url, person));
  await page.goto(origin);
  await ready(page);
  expect(await page.evaluate(`client.auth.oauth("club", { popup: true })`)).toMatchObject({
    user: { email: person.email },
  });
  expect(await userIn(page)).toMatchObject({ email: person.email });
  await page.waitForFunction("true");
  expect(context.pages()).toHaveLength(1);
  expect(problems).toEqual([]);
});

browserTest("[TC32] a window that is closed ends the sign-in", async () => {
  const { context, page } = await openProfile();
  provider.page = () => new Response("Log in");
  await page.goto(origin);
  await ready(page);
  const windows = context.waitForEvent("page");
  await page.evaluate(
    `globalThis.ended = client.auth.oauth("club", { popup: true }).catch((error) => error.name); void 0`,
  );
  const popup = await windows;
  // A window that has not arrived yet may not be there to be closed.
  await popup.getByText("Log in").waitFor();
  await popup.close();
  expect(await page.evaluate("ended")).toBe("AbortError");
});

browserTest("[TC32] tokens in an address to which oauth has not led sign nobody in", async () => {
  const attacker = await platform.post<{ accessToken: string; refreshToken: string }>("/api/auth/signin/anonymous");
  const { accessToken, refreshToken } = attacker.body;
  const { page } = await openProfile();
  await page.goto(`${origin}/#access_token=${accessToken}&refresh_token=${refreshToken}`);
  await ready(page);
  expect(await page.evaluate("result")).toBeNull();
  expect(await userIn(page)).toBeNull();
});
