import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type OidcProvider, startOidcProvider } from "../../support/oidc-provider.ts";
import { lastMail, nextEmail, PASSWORD, signUp, type Tokens, totpCode } from "./auth-support.ts";
import { alertOf, noticeOf, PageVisitor, type Shown } from "./pages-visitor.ts";

// The account page, without JavaScript.

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

let platform: TestPlatform;
let provider: OidcProvider;
beforeAll(async () => {
  provider = await startOidcProvider();
  const { issuer, clientId, clientSecret } = provider;
  platform = await testPlatform({
    config: `{
      auth: {
        mfa: { totp: true }, pages: { pictures: "avatars" }, magicLink: true,
        oauth: { club: ${JSON.stringify({ issuer, clientId, clientSecret })} },
      },
      storage: { buckets: { avatars: { maxFileSize: 1000, access: {
        read: (auth, file) => auth !== null && file.key.startsWith(auth.id + "/"),
        write: (auth, file) => auth !== null && file.key.startsWith(auth.id + "/"),
        delete: (auth, file) => auth !== null && file.key.startsWith(auth.id + "/"),
      } } } },
      rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
    }`,
  });
});
afterAll(async () => {
  provider.stop();
  await platform.stop();
});

async function signedIn(): Promise<{ visitor: PageVisitor; email: string; tokens: Tokens }> {
  const tokens = await signUp(platform);
  const email = tokens.user.email ?? "";
  const visitor = new PageVisitor(platform);
  await visitor.send("/auth/sign-in", { email, password: PASSWORD });
  return { visitor, email, tokens };
}

const act = (visitor: PageVisitor, action: string, fields: Record<string, string> = {}): Promise<Shown> =>
  visitor.send("/auth/account", { action, ...fields });

const user = async (token: string) =>
  (await platform.as(token).get<{ user: Tokens["user"] }>("/api/auth/me")).body.user;

test("[AU347] the account page changes the name, and names what is wrong", async () => {
  const { visitor, tokens } = await signedIn();
  const saved = await act(visitor, "name", { name: "  Ann & Bob " });
  expect(noticeOf(saved)).toBe("Saved.");
  expect(saved.text).toContain("Ann &amp; Bob");
  expect(await user(tokens.accessToken)).toMatchObject({ displayName: "Ann & Bob" });
  expect(noticeOf(await visitor.open("/auth/account"))).toBeNull();
  const long = await act(visitor, "name", { name: "x".repeat(300) });
  expect(long.status).toBe(400);
  expect(alertOf(long)).toBe("The name is too long.");
  expect((await act(visitor, "nonsense")).status).toBe(400);
});

test("[AU347] the password is changed with the present one; the session goes on, its earlier cookie does not", async () => {
  const { visitor, email, tokens } = await signedIn();
  const wrong = await act(visitor, "password", { currentPassword: "wrong one", newPassword: "another good one" });
  expect(wrong.status).toBe(401);
  expect(alertOf(wrong)).toBe("The password is wrong.");
  const before = visitor.cookieHeader("/auth/account");
  const changed = await act(visitor, "password", { currentPassword: PASSWORD, newPassword: "another good one" });
  expect(noticeOf(changed)).toBe("Saved.");
  expect(changed.path).toBe("/auth/account");
  const kept = await platform.fetch("/auth/account", { headers: { cookie: before }, redirect: "manual" });
  expect(kept.headers.get("location")).toBe("/auth/sign-in");
  expect((await platform.as(tokens.accessToken).get("/api/auth/me")).status).toBe(401);
  expect((await platform.post("/api/auth/signin", { email, password: "another good one" })).status).toBe(200);
});

test("[AU347] sessions are listed and ended, and the account is deleted after a confirmation", async () => {
  const { visitor, email, tokens } = await signedIn();
  const { text } = await visitor.open("/auth/account");
  const id = /name="action" value="session-end"><input type="hidden" name="id" value="([^"]+)"/.exec(text)?.[1] ?? "";
  await act(visitor, "session-end", { id });
  expect((await platform.as(tokens.accessToken).get("/api/auth/me")).status).toBe(401);
  expect((await act(visitor, "delete")).status).toBe(400);
  const deleted = await act(visitor, "delete", { sure: "1" });
  expect(noticeOf(deleted)).toBe("Your account has been deleted.");
  expect(visitor.isSignedIn).toBe(false);
  expect((await platform.post("/api/auth/signin", { email, password: PASSWORD })).status).toBe(401);
});

test("[AU347] nobody ends sessions, or removes identities and passkeys, of another user", async () => {
  const { visitor } = await signedIn();
  const other = await signUp(platform);
  const { sessions } = (await platform.as(other.accessToken).get<{ sessions: { id: string }[] }>("/api/auth/sessions"))
    .body;
  for (const action of ["session-end", "identity-remove"]) {
    expect((await act(visitor, action, { id: sessions[0]?.id ?? "" })).status).toBe(404);
  }
  expect((await act(visitor, "session-end", { id: `../sessions/${sessions[0]?.id}` })).status).toBe(404);
  expect((await platform.as(other.accessToken).get("/api/auth/me")).status).toBe(200);
});

test("[AU347] a second factor is set up, with a picture to scan and codes to keep, and turned off", async () => {
  const { visitor, email, tokens } = await signedIn();
  const begun = await act(visitor, "factor-begin");
  expect(begun.text).toContain("<svg");
  expect(begun.text.match(/<li><code>/g)).toHaveLength(10);
  const secret = /<p><code>([A-Z2-7]+)<\/code>/.exec(begun.text)?.[1] ?? "";
  const factorId = /name="factorId" value="([^"]+)"/.exec(begun.text)?.[1] ?? "";
  const wrong = await act(visitor, "factor-verify", { factorId, code: "000000" });
  expect(wrong.status).toBe(400);
  expect(wrong.text).toContain(`name="factorId" value="${factorId}"`);
  expect(noticeOf(await act(visitor, "factor-verify", { factorId, code: totpCode(secret) }))).toBe("Saved.");
  expect(
    (await platform.post<{ mfaRequired: boolean }>("/api/auth/signin", { email, password: PASSWORD })).body.mfaRequired,
  ).toBe(true);
  const off = await act(visitor, "factor-remove", { code: totpCode(secret, 1) });
  expect(noticeOf(off)).toBe("Saved.");
  expect((await platform.as(tokens.accessToken).get<{ factors: [] }>("/api/auth/mfa/factors")).body.factors).toEqual(
    [],
  );
});

test("[AU347] an account at a provider is linked and unlinked; a code of another browser links nothing", async () => {
  const { visitor } = await signedIn();
  const link = await act(visitor, "identity-link", { id: "club" });
  const back = new URL(
    provider.approve(link.left ?? "", { sub: "linked-1", email: nextEmail(), email_verified: true }),
  );
  const linked = await visitor.open(back.pathname + back.search, { "sec-fetch-site": "cross-site" });
  expect(noticeOf(linked)).toBe("Saved.");
  const id =
    /name="action" value="identity-remove"><input type="hidden" name="id" value="([^"]+)"/.exec(linked.text)?.[1] ?? "";
  expect(noticeOf(await act(visitor, "identity-remove", { id }))).toBe("Saved.");

  const other = await signedIn();
  const begun = await act(visitor, "identity-link", { id: "club" });
  const stolen = new URL(
    provider.approve(begun.left ?? "", { sub: "linked-2", email: nextEmail(), email_verified: true }),
  );
  const { headers } = await platform.fetch(stolen.pathname + stolen.search, { redirect: "manual" });
  const query = new URL(headers.get("location") ?? "").search;
  // The victim's browser has begun to link as well.
  await act(other.visitor, "identity-link", { id: "club" });
  const refused = await other.visitor.open(`/auth/oauth${query}`);
  expect(noticeOf(refused)).not.toBe("Saved.");
  expect(refused.text).not.toContain("identity-remove");
});

test("[AU349] an account without a password sets one by mail, and changes its address by a recent sign-in", async () => {
  const email = nextEmail();
  const visitor = new PageVisitor(platform);
  await visitor.send("/auth/magic-link", { email });
  const link = new URL(lastMail(platform, email).link ?? "");
  await visitor.open(link.pathname + link.search);
  const account = await visitor.send("/auth/magic-link", {});
  expect(account.text).toContain("Your account has no password.");
  const next = nextEmail();
  expect(noticeOf(await act(visitor, "email", { newEmail: next }))).toContain(next);
  expect(lastMail(platform, next).kind).toBe("emailChange");
  await act(visitor, "mail-password");
  const reset = new URL(lastMail(platform, email).link ?? "");
  await visitor.open(reset.pathname + reset.search);
  expect(noticeOf(await visitor.send("/auth/reset-password", { password: PASSWORD }))).toContain("has been set");
  expect((await platform.post("/api/auth/signin", { email, password: PASSWORD })).status).toBe(200);
});

test("[AU349] an account with a password changes its address by that alone", async () => {
  const { visitor, tokens } = await signedIn();
  const next = nextEmail();
  const wrong = await act(visitor, "email", { newEmail: next, emailPassword: "wrong one" });
  expect(wrong.status).toBe(401);
  expect(alertOf(wrong)).toBe("The password is wrong.");
  expect((await act(visitor, "email", { newEmail: next })).status).toBe(401);
  const api = await platform.as(tokens.accessToken).post("/api/auth/change-email", { newEmail: next });
  expect(api.status).toBe(400);
  expect((await act(visitor, "email", { newEmail: "nonsense", emailPassword: PASSWORD })).status).toBe(400);
});

const upload = (visitor: PageVisitor, content: Uint8Array<ArrayBuffer>, type: string): Promise<Response> => {
  const form = new FormData();
  form.set("action", "picture");
  form.set("picture", new Blob([content], { type }), "me");
  return platform.fetch("/auth/account", {
    method: "POST",
    redirect: "manual",
    headers: { cookie: visitor.cookieHeader("/auth/account"), "sec-fetch-site": "same-origin" },
    body: form,
  });
};

test("[AU350] a picture goes into the bucket by the bucket's rules, and replaces the one before", async () => {
  const { visitor, tokens } = await signedIn();
  expect((await upload(visitor, PIXEL, "image/png")).status).toBe(303);
  const first = (await user(tokens.accessToken))["avatarUrl"] as string;
  expect(first).toStartWith(`${platform.url}/api/storage/avatars/${tokens.user.id}/`);
  const { text } = await visitor.open("/auth/account");
  expect(text).toContain(`<img src="/auth/picture"`);
  const cookie = visitor.cookieHeader("/auth/picture");
  const shown = await platform.fetch("/auth/picture", { headers: { cookie } });
  expect(shown.headers.get("content-type")).toBe("image/png");
  expect(Buffer.from(await shown.arrayBuffer()).equals(PIXEL)).toBe(true);
  expect((await platform.fetch("/auth/picture")).status).toBe(404);
  expect((await upload(visitor, PIXEL, "image/png")).status).toBe(303);
  expect((await platform.as(tokens.accessToken).get(new URL(first).pathname)).status).toBe(404);
});

test("[AU350] a picture that is too large, or may hold scripts, is refused; pictures of other origins are not loaded", async () => {
  const { visitor, tokens } = await signedIn();
  expect((await upload(visitor, new Uint8Array(2_000), "image/png")).status).toBe(413);
  expect((await upload(visitor, PIXEL, "image/svg+xml")).status).toBe(400);
  expect((await upload(visitor, PIXEL, "text/html")).status).toBe(400);
  expect((await upload(visitor, new Uint8Array(6_000_000), "image/png")).status).toBe(413);
  await platform.as(tokens.accessToken).patch("/api/auth/me", { avatarUrl: "https://tracker.example/pixel.png" });
  const { text } = await visitor.open("/auth/account");
  expect(text).not.toContain("tracker.example");
  expect(text).toContain(`class="initials"`);
});
