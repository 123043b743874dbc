import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { type HttpClient, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { type OidcProvider, startOidcProvider } from "../../support/oidc-provider.ts";
import { mailedToken, nextEmail, PASSWORD, signUp, type Ticket, type Tokens } from "./auth-support.ts";
import { PageVisitor, pkce, type Shown } from "./pages-visitor.ts";

// Each way into an account that somebody else has begun, or has set, ends when the owner of its address resets the password.

setDefaultTimeout(20_000);

const APP = "https://app.example.com/back";
const NEW_PASSWORD = "the owner's own words";
const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true });
const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: "one", alg: "RS256", use: "sig" }] };
const texts: { to: string; code: string }[] = [];

let outside: Bun.Server<unknown>;
let provider: OidcProvider;
let platform: TestPlatform;
beforeAll(async () => {
  outside = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.method === "GET") return Response.json(keys);
      texts.push(JSON.parse(await request.text()));
      return new Response("ok");
    },
  });
  const at = `http://127.0.0.1:${outside.port}`;
  provider = await startOidcProvider();
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    config: `import { defineConfig, webhookSender } from "platform";
      export default defineConfig({
        auth: {
          magicLink: true, mfa: { totp: true, phone: true }, pages: {}, redirectUrls: ["https://app.example.com/*"],
          phones: { send: webhookSender({ url: "${at}/texts", secret: "${btoa("the secret of the texts, 32 bytes")}" }), countries: "all", perHour: 1000 },
          oauth: { club: ${JSON.stringify({ issuer, clientId, clientSecret })} },
          issuers: [{ name: "club", issuer: "https://issuer.example.com", audience: "app", jwksUrl: "${at}/keys", link: true }],
        },
        rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 }, phone: { requests: 100000, window: 60 } },
      });`,
  });
});
afterAll(async () => {
  provider.stop();
  await outside.stop(true);
  await platform.stop();
});

const post = <T = Tokens & Ticket>(path: string, body: { [field: string]: string }, by: HttpClient = platform) =>
  by.post<T>(`/api/auth/${path}`, body);

let issuedAt = 0;
async function issued(email: string, sub: string): Promise<string> {
  // A token of the second in which others have ended counts as ended.
  issuedAt = Math.max(issuedAt + 2, Math.floor(Date.now() / 1000) + 2);
  const now = issuedAt;
  const claims = {
    iss: "https://issuer.example.com",
    aud: "app",
    sub,
    email,
    email_verified: true,
    iat: now,
    exp: now + 600,
  };
  return new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "one" }).sign(privateKey);
}

/** The account that a token, or a code's answer, is of; null for none. */
async function accountOf(token: string | undefined): Promise<string | null> {
  if (token === undefined) return null;
  const { status, body } = await platform.as(token).get<{ user: Tokens["user"] }>("/api/auth/me");
  return status === 200 ? body.user.id : null;
}

const codeIn = ({ left }: Pick<Shown, "left">): string => new URL(left ?? "").searchParams.get("code") ?? "";
const redeemed = async (code: string) =>
  accountOf((await post("pages/redeem", { code, codeVerifier: pkce().verifier })).body.accessToken);
const startPath = `/auth/sign-in?${new URLSearchParams({ return_to: APP, code_challenge: pkce().challenge })}`;

interface Account {
  id: string;
  /** The address of now. */
  email: string;
  /** Caller with somebody else's session. */
  thief: HttpClient;
  token: string;
}
/** Goes on with what was begun. Returns the account that it leads into; null for none. */
type GoOn = () => Promise<string | null>;

let numbers = 0;
async function approved(location: string, sub: string, email: string): Promise<URL> {
  const { pathname, search } = new URL(provider.approve(location, { sub, email, email_verified: true }));
  const back = await platform.fetch(pathname + search);
  return new URL(back.headers.get("location") ?? "");
}
async function codeOfProvider(sub: string, email: string): Promise<string> {
  const query = new URLSearchParams({
    redirect_url: APP,
    code_challenge: pkce().challenge,
    code_challenge_method: "S256",
  });
  const begun = await platform.fetch(`/api/auth/oauth/club?${query}`);
  return (await approved(begun.headers.get("location") ?? "", sub, email)).searchParams.get("code") ?? "";
}
const byCodeOfProvider = async (code: string) =>
  accountOf((await post("oauth/redeem", { code, codeVerifier: pkce().verifier })).body.accessToken);

const WAYS: [name: string, begin: (account: Account) => Promise<GoOn>, isLeftAlone?: boolean][] = [
  [
    "a session of the pages",
    async ({ email }) => {
      const visitor = new PageVisitor(platform);
      expect((await visitor.send("/auth/sign-in", { email, password: PASSWORD })).path).toBe("/auth/account");
      return async () => {
        await visitor.open(startPath);
        const back = await visitor.send("/auth/continue", {});
        return back.left === null ? null : redeemed(codeIn(back));
      };
    },
  ],
  [
    "a code of the pages",
    async ({ email }) => {
      const visitor = new PageVisitor(platform);
      await visitor.open(startPath);
      const code = codeIn(await visitor.send("/auth/sign-in", { email, password: PASSWORD }));
      expect(code).not.toBe("");
      return () => redeemed(code);
    },
  ],
  [
    "a ticket to the account page",
    async ({ thief, id }) => {
      const { url } = (await thief.post<{ url: string }>("/api/auth/pages/ticket")).body;
      const visitor = new PageVisitor(platform);
      const { pathname, search } = new URL(url);
      return async () => {
        await visitor.open(pathname + search);
        const shown = await visitor.send("/auth/open", {});
        return shown.path === "/auth/account" ? id : null;
      };
    },
  ],
  [
    "a phone number",
    async ({ thief }) => {
      const phone = `+43660777${String(1000 + ++numbers)}`;
      const code = async () => {
        await until("a text is sent", () => texts.some(({ to }) => to === phone));
        return texts.findLast(({ to }) => to === phone)?.code ?? "";
      };
      expect((await thief.post("/api/auth/change-phone", { newPhone: phone })).status).toBe(200);
      expect((await thief.post("/api/auth/verify-phone-change", { code: await code() })).status).toBe(200);
      return async () => {
        texts.length = 0;
        await post("signin/phone", { phone });
        return accountOf((await post("verify-phone", { phone, code: await code() })).body.accessToken);
      };
    },
  ],
  [
    "a change of the number",
    async ({ thief, id }) => {
      const phone = `+43660778${String(1000 + ++numbers)}`;
      expect((await thief.post("/api/auth/change-phone", { newPhone: phone })).status).toBe(200);
      await until("a text is sent", () => texts.some(({ to }) => to === phone));
      const code = texts.findLast(({ to }) => to === phone)?.code ?? "";
      return async () => ((await thief.post("/api/auth/verify-phone-change", { code })).status === 200 ? id : null);
    },
  ],
  [
    "a change of the address",
    async ({ thief, id }) => {
      const newEmail = nextEmail();
      expect((await thief.post("/api/auth/change-email", { newEmail, password: PASSWORD })).status).toBe(200);
      const token = mailedToken(platform, newEmail);
      return async () => ((await post("verify-email-change", { token })).status === 200 ? id : null);
    },
  ],
  [
    "the linking of an account at a provider",
    async ({ thief, id }) => {
      const begun = await thief.post<{ url: string }>("/api/auth/oauth/club/link", { redirectUrl: APP });
      const back = await approved(begun.body.url, `thief ${++numbers}`, nextEmail());
      const code = back.searchParams.get("code") ?? "";
      expect(code).not.toBe("");
      return async () => ((await thief.post("/api/auth/oauth/club/link/redeem", { code })).status === 200 ? id : null);
    },
  ],
  [
    "a linked account at a provider, and a code of it",
    async ({ thief }) => {
      const [sub, email] = [`thief ${++numbers}`, nextEmail()];
      const begun = await thief.post<{ url: string }>("/api/auth/oauth/club/link", { redirectUrl: APP });
      const code = (await approved(begun.body.url, sub, email)).searchParams.get("code") ?? "";
      expect((await thief.post("/api/auth/oauth/club/link/redeem", { code })).status).toBe(200);
      const pending = await codeOfProvider(sub, email);
      return async () => {
        const first = await byCodeOfProvider(pending);
        const second = await byCodeOfProvider(await codeOfProvider(sub, email));
        const token = await platform.post<Tokens>("/api/auth/signin", { email, password: PASSWORD });
        return [first, second, await accountOf(token.body.accessToken)].find((one) => one !== null) ?? null;
      };
    },
  ],
];

/** Resets the password by a mail to the address of now. */
async function reset(email: string): Promise<void> {
  await post("request-password-reset", { email });
  const { status } = await post("reset-password", { token: mailedToken(platform, email), newPassword: NEW_PASSWORD });
  expect(status).toBe(200);
}

async function verifiedAccount(): Promise<Account> {
  const { accessToken, user } = await signUp(platform);
  const [email, thief] = [user.email ?? "", platform.as(accessToken)];
  await thief.post("/api/auth/request-email-verification");
  expect((await post("verify-email", { token: mailedToken(platform, email) })).status).toBe(200);
  return { id: user.id, email, thief, token: accessToken };
}

test.each(WAYS)("[AU101] %s that somebody else has begun leads nowhere after the owner's reset", async (_, begin) => {
  // The control: without the reset it leads into the account.
  const control = await verifiedAccount();
  expect(await (await begin(control))()).toBe(control.id);
  const account = await verifiedAccount();
  const goOn = await begin(account);
  await reset(account.email);
  expect(await goOn()).not.toBe(account.id);
  const { body } = await platform.service.get(`/api/auth/admin/users/${account.id}`);
  expect(body).toMatchObject({ email: account.email, phone: null });
  const owner = await post("signin", { email: account.email, password: NEW_PASSWORD });
  expect(owner.body.user.id).toBe(account.id);
});

test("[AU101] an issuer that knows a former address loses the account with the reset by the new address's owner", async () => {
  const [account, victim, sub] = [await verifiedAccount(), nextEmail(), `former ${++numbers}`];
  expect(await accountOf(await issued(account.email, sub))).toBe(account.id);
  const moved = await account.thief.post("/api/auth/change-email", { newEmail: victim, password: PASSWORD });
  expect(moved.status).toBe(200);
  expect((await post("verify-email-change", { token: mailedToken(platform, victim) })).status).toBe(200);
  expect(await accountOf(await issued(account.email, sub))).toBe(account.id);
  await reset(victim);
  expect(await accountOf(await issued(account.email, sub))).not.toBe(account.id);
  expect((await post("signin", { email: victim, password: NEW_PASSWORD })).body.user.id).toBe(account.id);
});

test("[AU281] a token of an issuer without an id is refused: two people would be one account", async () => {
  for (const sub of ["", " ", "x".repeat(256)]) {
    expect([sub, await accountOf(await issued(nextEmail(), sub))]).toEqual([sub, null]);
  }
  expect(await accountOf(await issued(nextEmail(), "x".repeat(255)))).not.toBe(null);
});
