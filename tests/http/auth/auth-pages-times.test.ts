import { afterAll, beforeAll, expect, test } from "bun:test";
import { MINUTE_MS, SECOND_MS } from "../../../src/kernel/time/duration.ts";
import { type TimedPlatform, timedPlatform } from "../../support/timed-platform.ts";
import { nextEmail, PASSWORD, type Tokens } from "./auth-support.ts";
import { PageVisitor, pkce, type Shown } from "./pages-visitor.ts";

// How long the pages' codes, tickets and ways back last, by a clock of the test's own.

const APP = "https://app.example.com/back";
let platform: TimedPlatform;
beforeAll(async () => {
  platform = await timedPlatform({ auth: { pages: {}, redirectUrls: ["https://app.example.com/*"] } });
});
afterAll(() => platform.stop());

async function somebody(): Promise<{ email: string; tokens: Tokens }> {
  const email = nextEmail();
  const { status, body } = await platform.post<Tokens>("/api/auth/signup", { email, password: PASSWORD });
  expect(status).toBe(201);
  return { email, tokens: body };
}

async function sent(): Promise<PageVisitor> {
  const visitor = new PageVisitor(platform);
  const query = new URLSearchParams({ return_to: APP, code_challenge: pkce().challenge });
  expect((await visitor.open(`/auth/sign-in?${query}`)).path).toBe("/auth/sign-in");
  return visitor;
}

const signedIn = (visitor: PageVisitor, email: string): Promise<Shown> =>
  visitor.send("/auth/sign-in", { email, password: PASSWORD });

const redeem = (back: Shown) => {
  const code = new URL(back.left ?? "").searchParams.get("code") ?? "";
  return platform.post<Tokens>("/api/auth/pages/redeem", { code, codeVerifier: pkce().verifier });
};

test.each([
  [60 * SECOND_MS - 1, 200],
  [60 * SECOND_MS, 400],
])("[AU341] a code that is %d ms old is %d", async (ageMs, status) => {
  const { email } = await somebody();
  const back = await signedIn(await sent(), email);
  platform.clock.advance(ageMs);
  expect((await redeem(back)).status).toBe(status);
});

test.each([
  [30 * SECOND_MS - 1, "/auth/open"],
  [30 * SECOND_MS, null],
])("[AU346] a ticket that is %d ms old leads to %p", async (ageMs, path) => {
  const { tokens } = await somebody();
  const ticket = await platform.as(tokens.accessToken).post<{ url: string }>("/api/auth/pages/ticket");
  expect(ticket.status).toBe(200);
  platform.clock.advance(ageMs);
  const visitor = new PageVisitor(platform);
  const url = new URL(ticket.body.url);
  const shown = await visitor.open(url.pathname + url.search);
  expect(shown.status).toBe(path === null ? 400 : 200);
  if (path !== null) expect(shown.path).toStartWith(path);
  const opened = await visitor.send("/auth/open", {});
  expect(visitor.isSignedIn).toBe(path !== null);
  if (path === null) expect(opened.status).toBe(400);
});

test.each([
  [30 * MINUTE_MS - 1, true],
  [30 * MINUTE_MS, false],
])("[AU344] after %d ms, that a sign-in leads back to the application is %p", async (ageMs, isBack) => {
  const { email } = await somebody();
  const visitor = await sent();
  platform.clock.advance(ageMs);
  const shown = await signedIn(visitor, email);
  if (isBack) {
    expect(shown.left).toStartWith(`${APP}?code=`);
    expect((await redeem(shown)).status).toBe(200);
  } else {
    expect([shown.left, shown.path]).toEqual([null, "/auth/account"]);
    expect(visitor.isSignedIn).toBe(true);
  }
});

test("[AU344] a code that comes at the end of the way back still lives for its 60 seconds", async () => {
  const { email } = await somebody();
  const visitor = await sent();
  platform.clock.advance(30 * MINUTE_MS - 1);
  const back = await signedIn(visitor, email);
  platform.clock.advance(60 * SECOND_MS - 1);
  expect((await redeem(back)).status).toBe(200);
});
