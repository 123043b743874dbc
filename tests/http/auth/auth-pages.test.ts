import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { lastMail, nextEmail, PASSWORD, signUp, type Tokens, totpCode } from "./auth-support.ts";
import { alertOf, noticeOf, PageVisitor } from "./pages-visitor.ts";

// The pages without JavaScript: signing in and up, mailed links, the second factor.

let platform: TestPlatform;
let bare: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      auth: {
        magicLink: true, emailOtp: true, mfa: { totp: true },
        pages: { name: "Acme <b>", terms: "https://acme.example/terms", privacy: "/privacy", accent: "#ff0", logo: "./logo.svg" },
      },
      rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
    }`,
    files: { "logo.svg": `<svg xmlns="http://www.w3.org/2000/svg"/>` },
  });
  bare = await testPlatform({
    config: `{ auth: { signup: false, emailPassword: false, magicLink: true, pages: { path: "/account/area" } }, site: { directory: "./web" } }`,
    files: { "web/index.html": "the site", "web/account/area/sign-in/index.html": "hidden" },
  });
});
afterAll(async () => {
  await platform.stop();
  await bare.stop();
});

const tokenIn = (link: string | undefined): string => {
  const url = new URL(link ?? "");
  return url.pathname + url.search;
};

test("[AU330] the path of the pages leads to sign-in, and to the account of whoever is signed in", async () => {
  const { email } = (await signUp(platform)).user;
  const visitor = new PageVisitor(platform);
  expect((await visitor.open("/auth")).path).toBe("/auth/sign-in");
  const account = await visitor.send("/auth/sign-in", { email: email ?? "", password: PASSWORD });
  expect(account).toMatchObject({ status: 200, path: "/auth/account" });
  expect(account.text).toContain(email ?? "");
  expect((await visitor.open("/auth")).path).toBe("/auth/account");
  expect((await visitor.open("/auth/sign-in")).path).toBe("/auth/account");
});

test("[AU330] what the config does not enable is 404, and GET /api/config names the path", async () => {
  const visitor = new PageVisitor(bare);
  for (const page of ["sign-up", "forgot-password", "reset-password", "elsewhere", "oauth"]) {
    expect((await visitor.open(`/account/area/${page}`)).status).toBe(404);
    expect((await visitor.send(`/account/area/${page}`, {})).status).toBe(404);
  }
  const shown = await visitor.open("/account/area/sign-in");
  expect(shown.text).not.toContain("password");
  expect((await bare.get<{ auth: { pages: string | null } }>("/api/config")).body.auth.pages).toBe("/account/area");
  expect((await platform.get<{ auth: { pages: string | null } }>("/api/config")).body.auth.pages).toBe("/auth");
});

test("[AU330] links that were mailed before the pages had another path lead to them", async () => {
  const answer = await bare.fetch("/auth/magic-link?token=abc", { redirect: "manual" });
  expect(answer.status).toBe(302);
  expect(answer.headers.get("location")).toBe("/account/area/magic-link?token=abc");
});

test("[HT145] a form of the pages has at most 32 fields, each once, and so has the query of a page", async () => {
  const { email } = (await signUp(platform)).user;
  const send = (body: string | FormData) =>
    fetch(`${platform.url}/auth/sign-in`, {
      method: "POST",
      headers: {
        "sec-fetch-site": "same-origin",
        ...(typeof body === "string" ? { "content-type": "application/x-www-form-urlencoded" } : {}),
      },
      body,
      redirect: "manual",
    });
  const right = new URLSearchParams({ email: email ?? "", password: PASSWORD }).toString();
  const more = (count: number) => Array.from({ length: count }, (_, at) => `&n${at}=`).join("");
  expect((await send(right + more(30))).status).toBe(303);
  for (const wrong of [
    right + more(31),
    more(9_000),
    `${right}&email=eve@example.com`,
    `${right}&password=x`,
    "email=%ff",
  ]) {
    const answer = await send(wrong);
    expect([wrong.slice(0, 60), answer.status, answer.headers.getSetCookie()]).toEqual([wrong.slice(0, 60), 400, []]);
  }
  const repeated = new FormData();
  for (const one of [email ?? "", "eve@example.com"]) repeated.append("email", one);
  repeated.append("password", PASSWORD);
  expect((await send(repeated)).status).toBe(400);
  for (const query of ["token=a&token=b", "with=code&with=phone", "return_to=a&return_to=b&code_challenge=c"]) {
    expect([query, (await platform.fetch(`/auth/sign-in?${query}`)).status]).toEqual([query, 400]);
  }
  expect((await platform.fetch("/auth/sign-in?utm=a&utm=b")).status).toBe(200);
});

test("[AU332] sign-up and sign-in work without JavaScript, and the session counts below the path alone", async () => {
  const email = nextEmail();
  const visitor = new PageVisitor(platform);
  const signedUp = await visitor.send("/auth/sign-up", { name: "Ann", email, password: PASSWORD });
  expect(signedUp.path).toBe("/auth/account");
  expect(signedUp.text).toContain("Ann");
  const cookies = [...visitor.cookies.entries()];
  expect(cookies.every(([, { path }]) => path === "/auth")).toBe(true);
  const cookie = cookies.map(([name, { value }]) => `${name}=${value}`).join("; ");
  for (const path of ["/api/auth/me", "/api/auth/sessions"]) {
    expect((await platform.get(path, { headers: { cookie } })).status).toBe(401);
  }
  for (const [, { value }] of cookies) {
    expect((await platform.as(value).get("/api/auth/me")).status).toBe(401);
    expect((await platform.post("/api/auth/refresh", { refreshToken: value })).status).toBe(401);
  }
  const out = await visitor.send("/auth/account", { action: "sign-out" });
  expect(out.path).toBe("/auth/sign-in");
  expect(noticeOf(out)).toBe("You have signed out.");
  expect(visitor.isSignedIn).toBe(false);
  // Whoever has kept the cookie has nothing.
  const late = await platform.fetch("/auth/account", { headers: { cookie }, redirect: "manual" });
  expect(late.headers.get("location")).toBe("/auth/sign-in");
});

test("[AU332] each sign-in has a session of its own, and the one before ends", async () => {
  const { user, accessToken } = await signUp(platform);
  const visitor = new PageVisitor(platform);
  const credentials = { email: user.email ?? "", password: PASSWORD };
  await visitor.send("/auth/sign-in", credentials);
  const first = visitor.cookieHeader("/auth/account");
  await visitor.send("/auth/sign-in", credentials);
  expect(visitor.cookieHeader("/auth/account")).not.toBe(first);
  const kept = await platform.fetch("/auth/account", { headers: { cookie: first }, redirect: "manual" });
  expect(kept.status).toBe(303);
  const { sessions } = (await platform.as(accessToken).get<{ sessions: unknown[] }>("/api/auth/sessions")).body;
  expect(sessions).toHaveLength(2);
});

test("[AU333] pages have a strict policy, are not kept, not framed, and send no address on", async () => {
  for (const page of ["sign-in", "sign-up", "forgot-password", "magic-link"]) {
    const { headers, text } = await new PageVisitor(platform).open(`/auth/${page}`);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("form-action 'self'");
    expect(policy).toContain("base-uri 'none'");
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe-");
    expect(policy).not.toContain("http");
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("vary")).toContain("Accept-Language");
    // The product's name is a text, wherever it stands.
    expect(text).not.toContain("<b>");
    expect(text).not.toMatch(/ style=|<style|<script>/);
  }
});

test("[AU331] the files of the pages are below 60 KB zipped, kept by their names, and a logo runs no scripts", async () => {
  const { text } = await new PageVisitor(platform).open("/auth/sign-in");
  const files = [...text.matchAll(/(?:href|src)="(\/auth\/assets\/[^"]+)"/g)].map(([, file = ""]) => file);
  expect(files).toHaveLength(3);
  let bytes = Bun.gzipSync(text).length;
  for (const file of files) {
    const answer = await platform.fetch(file);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("cache-control")).toContain("immutable");
    expect(answer.headers.get("content-security-policy")).toContain("sandbox");
    bytes += Bun.gzipSync(await answer.arrayBuffer()).length;
  }
  expect(bytes).toBeLessThan(60_000);
  expect((await platform.fetch("/auth/assets/none.css")).status).toBe(404);
});

test("[AU334] a form that another site has sent is 403 and does nothing", async () => {
  const email = nextEmail();
  const visitor = new PageVisitor(platform);
  for (const site of ["cross-site", "same-site", "none"]) {
    const refused = await visitor.send("/auth/sign-up", { email, password: PASSWORD }, { "sec-fetch-site": site });
    expect(refused.status).toBe(403);
    expect(alertOf(refused)).toBe("This form was sent by another site.");
  }
  expect((await platform.post("/api/auth/signin", { email, password: PASSWORD })).status).toBe(401);
  await visitor.send("/auth/sign-up", { email, password: PASSWORD });
  for (const action of ["sign-out", "name", "delete"]) {
    const refused = await visitor.send("/auth/account", { action, sure: "1" }, { "sec-fetch-site": "cross-site" });
    expect(refused.status).toBe(403);
  }
  expect((await visitor.open("/auth")).path).toBe("/auth/account");
});

test("[AU334] without Sec-Fetch-Site, a form of another origin is 403, and one of the origin null needs the cookie", async () => {
  const form = (headers: Record<string, string>) =>
    platform.fetch("/auth/sign-in", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: "email=a%40example.com&password=x",
    });
  expect((await form({ origin: "https://evil.example" })).status).toBe(403);
  expect((await form({ origin: "null" })).status).toBe(403);
  const first = await platform.fetch("/auth/sign-in");
  const cookie = first.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  expect(cookie).toContain("platform_visit");
  expect((await form({ origin: "null", cookie })).status).toBe(401);
  expect((await form({ origin: platform.url })).status).toBe(401);
});

test("[AU336] English and German are there, and Accept-Language chooses", async () => {
  const languages: [string, string, string][] = [
    ["de-AT,de;q=0.9,en;q=0.5", "de", "Anmelden"],
    ["fr,en;q=0.4,de;q=0.2", "en", "Sign in"],
    ["fr", "en", "Sign in"],
    ["en;q=0.1,de;q=0.3", "de", "Anmelden"],
    ["de;q=0,en", "en", "Sign in"],
  ];
  for (const [accepted, tag, title] of languages) {
    const { text, headers } = await new PageVisitor(platform).open("/auth/sign-in", { "accept-language": accepted });
    expect(text).toContain(`<html lang="${tag}" dir="ltr">`);
    expect(text).toContain(`<h1>${title}</h1>`);
    expect(headers.get("content-language")).toBe(tag);
  }
});

test("[AU337] wrong credentials have one text, whether or not there is an account", async () => {
  const { user } = await signUp(platform);
  const visitor = new PageVisitor(platform);
  const known = await visitor.send("/auth/sign-in", { email: user.email ?? "", password: "wrong password" });
  const unknown = await visitor.send("/auth/sign-in", { email: nextEmail(), password: "wrong password" });
  const malformed = await visitor.send("/auth/sign-in", { email: "nobody", password: "" });
  for (const shown of [known, unknown, malformed]) {
    expect(shown.status).toBe(401);
    expect(alertOf(shown)).toBe("The address or the password is wrong.");
  }
  const bare = ({ text }: { text: string }) => text.replaceAll(/value="[^"]*"/g, "");
  expect(bare(known)).toBe(bare(unknown));
});

test("[AU337] requests for a reset, a link and a code say the same of every address; sign-up says that one is taken", async () => {
  const { user } = await signUp(platform);
  const known = user.email ?? "";
  const unknown = nextEmail();
  const texts = new Set<string>();
  for (const email of [known, unknown]) {
    for (const page of ["forgot-password", "magic-link"]) {
      const { status, text } = await new PageVisitor(platform).send(`/auth/${page}`, { email });
      expect(status).toBe(200);
      texts.add(text.replaceAll(email, "EMAIL"));
    }
    const { text, path } = await new PageVisitor(platform).send("/auth/sign-in", { by: "code", email });
    expect(path).toBe("/auth/sign-in?with=code");
    texts.add(text.replaceAll(email, "EMAIL"));
  }
  expect(texts.size).toBe(2);
  const taken = await new PageVisitor(platform).send("/auth/sign-up", { email: known, password: PASSWORD });
  expect(taken.status).toBe(409);
  expect(alertOf(taken)).toBe("This address has an account already.");
});

test("[AU337] what is typed in is never HTML, and a short password is named", async () => {
  const shown = await new PageVisitor(platform).send("/auth/sign-up", {
    name: `"><script>`,
    email: "<i>@x",
    password: PASSWORD,
  });
  expect(shown.status).toBe(400);
  expect(shown.text).not.toContain("<script>");
  expect(shown.text).not.toContain("<i>");
  const short = await new PageVisitor(platform).send("/auth/sign-up", { email: nextEmail(), password: "short" });
  expect(short.status).toBe(400);
  expect(alertOf(short)).toBe("The password needs at least 8 characters.");
  expect(short.text).toContain(`aria-invalid="true"`);
  expect(short.text).not.toContain('short"');
});

test("[AU335] a reset by mail: opening the link uses nothing up, and its token leaves the address", async () => {
  const { user } = await signUp(platform);
  const email = user.email ?? "";
  const visitor = new PageVisitor(platform);
  await visitor.send("/auth/forgot-password", { email });
  const { link } = lastMail(platform, email);
  expect(link).toStartWith(`${platform.url}/auth/reset-password?token=`);
  for (const _ of [1, 2]) {
    const opened = await visitor.open(tokenIn(link));
    expect(opened.path).toBe("/auth/reset-password");
    expect(opened.text).not.toContain(new URL(link ?? "").searchParams.get("token") ?? "");
    expect(opened.headers.get("referrer-policy")).toBe("no-referrer");
    expect(opened.headers.get("cache-control")).toBe("no-store");
  }
  const weak = await visitor.send("/auth/reset-password", { password: "short" });
  expect(alertOf(weak)).toContain("8 characters");
  const done = await visitor.send("/auth/reset-password", { password: "a new and better one" });
  expect(done.path).toBe("/auth/sign-in");
  expect(noticeOf(done)).toContain("has been set");
  expect((await visitor.send("/auth/sign-in", { email, password: "a new and better one" })).path).toBe("/auth/account");
  const again = new PageVisitor(platform);
  await again.open(tokenIn(link));
  const used = await again.send("/auth/reset-password", { password: "and yet another one" });
  expect(used.status).toBe(400);
  expect(alertOf(used)).toContain("has been used");
});

test("[AU335] a magic link signs in where its button is pressed, once", async () => {
  const email = nextEmail();
  const visitor = new PageVisitor(platform);
  await visitor.send("/auth/magic-link", { email });
  const link = tokenIn(lastMail(platform, email).link);
  // A mail scanner opens it first.
  await new PageVisitor(platform).open(link);
  const elsewhere = new PageVisitor(platform);
  await elsewhere.open(link);
  expect(elsewhere.isSignedIn).toBe(false);
  expect((await elsewhere.send("/auth/magic-link", {})).path).toBe("/auth/account");
  await visitor.open(link);
  const used = await visitor.send("/auth/magic-link", {});
  expect(used.status).toBe(400);
  expect(visitor.isSignedIn).toBe(false);
});

test("[AU335] a mailed code signs in, and a wrong one does not", async () => {
  const email = nextEmail();
  const visitor = new PageVisitor(platform);
  await visitor.send("/auth/sign-in", { by: "code", email });
  const { code = "" } = lastMail(platform, email);
  const wrong = await visitor.send("/auth/sign-in", { by: "code", code: code === "123456" ? "654321" : "123456" });
  expect(wrong.status).toBe(400);
  expect(alertOf(wrong)).toContain("The code is wrong");
  expect((await visitor.send("/auth/sign-in", { by: "code", code: `${code.slice(0, 3)} ${code.slice(3)}` })).path).toBe(
    "/auth/account",
  );
});

test("[AU335] an invitation is accepted by a press, and a changed address verified by one", async () => {
  const email = nextEmail();
  await platform.service.post("/api/auth/admin/users/invite", { email });
  const visitor = new PageVisitor(platform);
  const opened = await visitor.open(tokenIn(lastMail(platform, email).link));
  expect(opened.path).toBe("/auth/accept-invite");
  const done = await visitor.send("/auth/accept-invite", { name: "Ivy", password: PASSWORD });
  expect(done.path).toBe("/auth/account");
  const next = nextEmail();
  const asked = await visitor.send("/auth/account", { action: "email", newEmail: next, emailPassword: PASSWORD });
  expect(noticeOf(asked)).toContain(next);
  const change = await visitor.open(tokenIn(lastMail(platform, next).link));
  expect(change.path).toBe("/auth/verify-email-change");
  const changed = await visitor.send("/auth/verify-email-change", {});
  expect(noticeOf(changed)).toContain("has been changed");
  expect((await visitor.send("/auth/sign-in", { email: next, password: PASSWORD })).path).toBe("/auth/account");
});

test("[AU335] an invitation with data, of somebody who has an account, is accepted signed in", async () => {
  const { user } = await signUp(platform);
  const email = user.email ?? "";
  await platform.service.post("/api/auth/admin/users/invite", { email, data: { team: "red" } });
  const visitor = new PageVisitor(platform);
  const opened = await visitor.open(tokenIn(lastMail(platform, email).link));
  expect(opened.path).toBe("/auth/sign-in");
  expect(noticeOf(opened)).toContain("Sign in to it");
  const signedIn = await visitor.send("/auth/sign-in", { email, password: PASSWORD });
  expect(signedIn.path).toBe("/auth/accept-invite");
  expect(signedIn.text).not.toContain('type="password"');
  const joined = await visitor.send("/auth/accept-invite", {});
  expect(joined.path).toBe("/auth/account");
  expect(noticeOf(joined)).toBe("Saved.");
  await platform.service.post("/api/auth/admin/users/invite", { email, data: { team: "blue" } });
  const other = new PageVisitor(platform);
  await other.send("/auth/sign-up", { email: nextEmail(), password: PASSWORD });
  await other.open(tokenIn(lastMail(platform, email).link));
  const refused = await other.send("/auth/accept-invite", {});
  expect(refused.status).toBe(403);
  expect(alertOf(refused)).toBe("The invitation is for another account.");
});

test("[AU335] an address is verified by a press", async () => {
  const email = nextEmail();
  const visitor = new PageVisitor(platform);
  const account = await visitor.send("/auth/sign-up", { email, password: PASSWORD });
  expect(account.text).toContain("not confirmed");
  await visitor.send("/auth/account", { action: "verification" });
  expect((await visitor.open(tokenIn(lastMail(platform, email).link))).path).toBe("/auth/verify-email");
  // Signed in here already: the account says so.
  const done = await visitor.send("/auth/verify-email", {});
  expect(done.path).toBe("/auth/account");
  expect(noticeOf(done)).toBe("Your address is confirmed.");
  expect(done.text).not.toContain("not confirmed");
});

test("[AU338] a second factor is asked for after every way of signing in", async () => {
  const { user, accessToken } = await signUp(platform);
  const email = user.email ?? "";
  const enrolled = await platform
    .as(accessToken)
    .post<{ factorId: string; secret: string; recoveryCodes: string[] }>("/api/auth/mfa/totp/enroll");
  const { factorId, secret, recoveryCodes } = enrolled.body;
  await platform.as(accessToken).post("/api/auth/mfa/totp/verify", { factorId, code: totpCode(secret) });
  const visitor = new PageVisitor(platform);
  const asked = await visitor.send("/auth/sign-in", { email, password: PASSWORD });
  expect(asked.path).toBe("/auth/factor");
  expect(visitor.isSignedIn).toBe(false);
  expect((await visitor.send("/auth/account", { action: "name", name: "x" })).path).toBe("/auth/sign-in");
  const wrong = await visitor.send("/auth/factor", { code: "000000" });
  expect(alertOf(wrong)).toContain("wrong");
  expect((await visitor.send("/auth/factor", { code: totpCode(secret, 1) })).path).toBe("/auth/account");
  const other = new PageVisitor(platform);
  await other.send("/auth/magic-link", { email });
  await other.open(tokenIn(lastMail(platform, email).link));
  expect((await other.send("/auth/magic-link", {})).path).toBe("/auth/factor");
  expect((await other.open("/auth/factor?with=recovery")).text).toContain("Recovery code");
  expect((await other.send("/auth/factor", { recovery: recoveryCodes[0] ?? "" })).path).toBe("/auth/account");
});

test("[AU339] mails lead to the pages where a request names no address", async () => {
  const { accessToken, user } = (
    await platform.post<Tokens>("/api/auth/signup", { email: nextEmail(), password: PASSWORD })
  ).body;
  await platform.as(accessToken).post("/api/auth/request-email-verification", {});
  expect(lastMail(platform, user.email ?? "").link).toStartWith(`${platform.url}/auth/verify-email?token=`);
  const email = nextEmail();
  await bare.service.post("/api/auth/admin/users/invite", { email });
  expect(lastMail(bare, email).link).toStartWith(`${bare.url}/account/area/accept-invite?token=`);
});

test("[AU330] the pages come before the site", async () => {
  expect(await (await bare.fetch("/")).text()).toBe("the site");
  const { text } = await new PageVisitor(bare).open("/account/area/sign-in");
  expect(text).toContain("<h1>Sign in</h1>");
});
