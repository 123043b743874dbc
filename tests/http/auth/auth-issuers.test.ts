import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { openSocket, signToken, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { enrol, nextEmail, signUp } from "./auth-support.ts";

// Tokens of other issuers as access tokens. The issuers are servers of the test.

// Keys are read again after five seconds.
setDefaultTimeout(30_000);

interface Key {
  kid: string;
  alg: "RS256" | "ES256" | "EdDSA";
  privateKey: CryptoKey;
  jwk: JsonObject;
}
async function createKey(kid: string, alg: Key["alg"] = "RS256"): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } as JsonObject };
}

/** An issuer that publishes `keys`. `answer` replaces what it answers. */
class Issuer {
  keys: Key[] = [];
  answer: ((path: string) => Response | null) | null = null;
  requests = 0;
  readonly #server: Bun.Server<unknown> = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request): Response => {
      this.requests++;
      const { pathname } = new URL(request.url);
      const replaced = this.answer?.(pathname) ?? null;
      if (replaced !== null) return replaced;
      if (pathname === "/keys") return Response.json({ keys: this.keys.map(({ jwk }) => jwk) });
      if (pathname !== "/.well-known/openid-configuration") return new Response("no", { status: 404 });
      return Response.json({ issuer: this.name, jwks_uri: `${this.name}/keys` });
    },
  });
  readonly name: string = `http://127.0.0.1:${this.#server.port}`;
  stop = () => this.#server.stop(true);

  /** Signs a token for the application; `claims` override the usual ones, undefined leaves one out. */
  async token(
    claims: Record<string, unknown> = {},
    key: Key | undefined = this.keys[0],
    header: JsonObject = {},
  ): Promise<string> {
    if (key === undefined) throw new Error("the issuer has no key");
    const now = Math.floor(Date.now() / 1000);
    const payload = { iss: this.name, aud: "app", sub: "user-1", iat: now, exp: now + 600, ...claims };
    return new SignJWT(JSON.parse(JSON.stringify(payload)))
      .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
      .sign(key.privateKey);
  }
}

const [main, joining, parties] = [new Issuer(), new Issuer(), new Issuer()];
let platform: TestPlatform;
const config = (more = ""): string => `import { defineConfig } from "platform";
export default defineConfig({
  auth: {
    emailPassword: true, mfa: { totp: true },
    signup: (facts) => facts.method !== "issuer" || facts.provider !== "main" || facts.email !== "closed@example.com",
    issuers: [
      { name: "main", issuer: "${main.name}", audience: ["app", "other-app"] },
      { name: "joining", issuer: "${joining.name}", audience: "app", link: true },
      { name: "parties", issuer: "${parties.name}", authorizedParties: ["https://app.example.com"], jwksUrl: "${parties.name}/keys",
        profile: (claims) => ({ email: claims.user_metadata?.trusted ?? null, emailVerified: true, name: claims.nick }) },
      ${more}
    ],
  },
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
  databases: { shared: { tables: { seen: { schema: { who: { type: "json" } }, access: { insert: true, read: true },
    hooks: { beforeInsert: (auth) => ({ who: auth }) } } } } },
});
`;

beforeAll(async () => {
  main.keys = [await createKey("1"), await createKey("2", "ES256"), await createKey("3", "EdDSA")];
  joining.keys = [await createKey("j")];
  parties.keys = [await createKey("p")];
  platform = await testPlatform({ config: config() });
});
afterAll(async () => {
  for (const issuer of [main, joining, parties]) await issuer.stop();
  await platform.stop();
});

const me = async (token: string, at: TestPlatform = platform) => {
  const { status, body, headers } = await at
    .as(token)
    .get<{ user: JsonObject & { id: string }; message: string }>("/api/auth/me");
  return { status, user: body.user, message: body.message, headers };
};
let subjects = 0;
const nextSubject = (): string => `user-${100 + ++subjects}`;

test("[AU440] tokens signed by RS256, ES256 and EdDSA enter, also for another audience of the list", async () => {
  const sub = nextSubject();
  const answers = [];
  for (const key of main.keys) answers.push(await me(await main.token({ sub }, key)));
  answers.push(await me(await main.token({ sub, aud: ["x", "other-app"] })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(new Set(answers.map(({ user }) => user.id)).size).toBe(1);
});

test("[AU440] a token of another algorithm, key, issuer, audience or time is 401", async () => {
  const foreign = await createKey("1");
  const [key] = main.keys;
  const now = Math.floor(Date.now() / 1000);
  const secret = new TextEncoder().encode(JSON.stringify(key?.jwk));
  const payload = { iss: main.name, aud: "app", sub: "user-1", iat: now, exp: now + 600 };
  const attacks: Record<string, string> = {
    "the public key as a secret": await new SignJWT(payload)
      .setProtectedHeader({ alg: "HS256", kid: "1" })
      .sign(secret),
    "no signature": new UnsecuredJWT(payload).encode(),
    "a key that is not published": await main.token({}, foreign),
    "a key of another issuer": await main.token({}, joining.keys[0]),
    "the issuer of another key": await joining.token({ iss: main.name }),
    "a path as the id of the key": await main.token({}, key, { kid: "../../../etc/passwd" }),
    "an address of keys in the token": await main.token({}, foreign, {
      kid: "9",
      jku: `${joining.name}/keys`,
      jwk: foreign.jwk,
    }),
    "another audience": await main.token({ aud: "somebody-else" }),
    "no audience": await main.token({ aud: undefined }),
    "an end that is over": await main.token({ iat: now - 900, exp: now - 300 }),
    "no end": await main.token({ exp: undefined }),
    "no time of issue": await main.token({ iat: undefined }),
    "a time of issue to come": await main.token({ iat: now + 600, exp: now + 900 }),
    "not valid yet": await main.token({ nbf: now + 600 }),
    "no subject": await main.token({ sub: undefined }),
    "an empty subject": await main.token({ sub: " " }),
    "a subject that is too long": await main.token({ sub: "x".repeat(256) }),
    "an issuer that is not declared": await main.token({ iss: "https://evil.example.com" }),
    "the server's own algorithm": await signToken({ ...payload, sid: "session" }),
    "a changed payload": (await main.token()).replace(
      /\.[^.]+\./,
      `.${btoa(JSON.stringify({ ...payload, sub: "admin" })).replaceAll("=", "")}.`,
    ),
  };
  for (const [what, token] of Object.entries(attacks)) expect([what, (await me(token)).status]).toEqual([what, 401]);
});

test("[AU440] azp must be one of authorizedParties", async () => {
  const sub = nextSubject();
  const token = (azp: string | undefined) => parties.token({ sub, aud: undefined, azp });
  expect((await me(await token("https://app.example.com"))).status).toBe(200);
  for (const azp of ["https://evil.example.com", undefined]) expect((await me(await token(azp))).status).toBe(401);
});

test("[AU441] the user of a token becomes an account; role and claims are never the token's", async () => {
  const [sub, email] = [nextSubject(), nextEmail()];
  const lies = {
    role: "admin",
    custom: { plan: "pro" },
    app_metadata: { role: "admin" },
    anon: true,
    sid: "x",
    ver: 7,
  };
  const token = await main.token({ sub, email, email_verified: true, name: "Ann", ...lies });
  const { user } = await me(token);
  expect(user).toMatchObject({
    email,
    emailVerified: true,
    displayName: "Ann",
    role: "user",
    isAnonymous: false,
    customClaims: {},
  });
  const seen = await platform.as(token).post<{ who: JsonObject }>("/api/db/shared/tables/seen", {});
  expect(seen.body.who).toMatchObject({ id: user.id, role: "user", custom: {}, email });
  await platform.service.patch(`/api/auth/admin/users/${user.id}`, { role: "editor" });
  await platform.service.post(`/api/auth/admin/users/${user.id}/claims`, { customClaims: { plan: "free" } });
  const later = await main.token({ sub, ...lies, exp: Math.floor(Date.now() / 1000) + 700 });
  const again = await platform.as(later).post<{ who: JsonObject }>("/api/db/shared/tables/seen", {});
  expect(again.body.who).toMatchObject({ id: user.id, role: "editor", isAnonymous: false });
  const { identities } = (await platform.as(later).get<{ identities: JsonObject[] }>("/api/auth/identities")).body;
  expect(identities).toMatchObject([{ provider: "issuer:main" }]);
});

test("[AU441] one subject is one account, also when its first tokens race; subjects of issuers are apart", async () => {
  const sub = nextSubject();
  const tokens = await Promise.all(Array.from({ length: 6 }, (_, at) => main.token({ sub, jti: String(at) })));
  const answers = await Promise.all(tokens.map((token) => me(token)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
  expect(new Set(answers.map(({ user }) => user.id)).size).toBe(1);
  expect((await me(await joining.token({ sub }))).user.id).not.toBe(answers[0]?.user.id ?? "");
});

test("[AU441] the rule of sign-ups is asked, and metadata that users write proves no address", async () => {
  const closed = await me(await main.token({ sub: nextSubject(), email: "closed@example.com" }));
  expect(closed).toMatchObject({ status: 403, message: "Sign-up is closed" });
  const claims = { sub: nextSubject(), user_metadata: { email: "victim@example.com", email_verified: true } };
  expect((await me(await main.token(claims))).user).toMatchObject({ email: null });
  const trusted = {
    aud: undefined,
    azp: "https://app.example.com",
    nick: "Bob",
    user_metadata: { trusted: "bob@example.com" },
  };
  const read = await me(await parties.token({ sub: nextSubject(), ...trusted }));
  expect(read.user).toMatchObject({ email: "bob@example.com", displayName: "Bob" });
});

test("[AU442] a verified address joins a verified account only with link, and never one with a second factor", async () => {
  const owner = await signUp(platform);
  const email = String(owner.user.email);
  const proved = { email, email_verified: true };
  const path = `/api/auth/admin/users/${owner.user.id}`;
  // The address is not verified here.
  expect((await me(await joining.token({ sub: nextSubject(), ...proved }))).status).toBe(401);
  await platform.service.patch(path, { emailVerified: true });
  expect((await me(await main.token({ sub: nextSubject(), ...proved }))).status).toBe(401);
  expect((await me(await joining.token({ sub: nextSubject(), email, email_verified: false }))).status).toBe(401);
  const caller = platform.as(owner.accessToken);
  await enrol(caller);
  const sub = nextSubject();
  expect((await me(await joining.token({ sub, ...proved }))).status).toBe(401);
  await platform.service.delete(`${path}/mfa`);
  const joined = await me(await joining.token({ sub, ...proved }));
  expect(joined).toMatchObject({ status: 200, user: { id: owner.user.id } });
  // A factor that the owner sets up later is asked for: a token does not prove it.
  await enrol(caller);
  expect((await me(await joining.token({ sub, ...proved, jti: "later" }))).status).toBe(401);
});

test("[AU443] new keys are taken within five seconds, and floods of unknown ones ask the issuer no more often", async () => {
  const issuer = new Issuer();
  issuer.keys = [await createKey("a")];
  const rotating = await testPlatform({
    config: config(`{ name: "rotating", issuer: "${issuer.name}", audience: "app" },`),
  });
  try {
    const status = async (key: Key | undefined) =>
      (await me(await issuer.token({ sub: "user" }, key), rotating)).status;
    expect(await status(issuer.keys[0])).toBe(200);
    expect(issuer.requests).toBe(2);
    const [old, next] = [issuer.keys[0], await createKey("b")];
    issuer.keys = [next];
    for (let count = 0; count < 20; count++) await status(await createKey(`unknown-${count}`, "ES256"));
    expect(issuer.requests).toBeLessThanOrEqual(3);
    await Bun.sleep(5_100);
    expect(await status(next)).toBe(200);
    // What was withdrawn signs nothing any more.
    expect((await me(await issuer.token({ sub: "another" }, old), rotating)).status).toBe(401);
  } finally {
    await issuer.stop();
    await rotating.stop();
  }
});

test.each([
  ["redirects", (name: string) => (path: string) => (path === "/keys" ? Response.redirect(`${name}/elsewhere`) : null)],
  ["is too large", () => (path: string) => (path === "/keys" ? new Response("x".repeat(600_000)) : null)],
  ["fails", () => () => new Response("no", { status: 500 })],
  [
    "names another issuer",
    () => (path: string) =>
      path === "/keys"
        ? null
        : Response.json({ issuer: "https://other.example.com", jwks_uri: "https://other.example.com/keys" }),
  ],
  ["is no JSON", () => () => new Response("<html>")],
] as const)("[AU443] an issuer that %s is 503, and other tokens are taken", async (_what, answering) => {
  const issuer = new Issuer();
  issuer.keys = [await createKey("a")];
  issuer.answer = answering(issuer.name);
  const failing = await testPlatform({
    config: config(`{ name: "failing", issuer: "${issuer.name}", audience: "app" },`),
  });
  try {
    const answer = await me(await issuer.token(), failing);
    expect(answer.status).toBe(503);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await me(await main.token({ sub: "other" }), failing)).status).toBe(200);
    expect((await me((await signUp(failing)).accessToken, failing)).status).toBe(200);
  } finally {
    await issuer.stop();
    await failing.stop();
  }
});

test("[AU444] revoke refuses tokens issued before it, also after a restart, and closes sockets; later ones enter", async () => {
  const sub = nextSubject();
  const now = Math.floor(Date.now() / 1000);
  const [seen, unseen] = [await main.token({ sub }), await main.token({ sub, jti: "unseen" })];
  const { user } = await me(seen);
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: seen });
  expect(await socket.next()).toMatchObject({ type: "auth_success", userId: user.id });
  expect((await platform.service.post(`/api/auth/admin/users/${user.id}/revoke`)).status).toBe(200);
  await socket.closed;
  for (const token of [seen, unseen]) expect((await me(token)).status).toBe(401);
  await platform.restart();
  for (const token of [seen, unseen]) expect((await me(token)).status).toBe(401);
  await until("another second has begun", () => Math.floor(Date.now() / 1000) > now + 1);
  const later = await me(await main.token({ sub }));
  expect(later).toMatchObject({ status: 200, user: { id: user.id } });
});

test("[AU444] signing out and disabling end them too", async () => {
  const sub = nextSubject();
  const token = await main.token({ sub });
  const { user } = await me(token);
  expect((await platform.as(token).post("/api/auth/signout", {})).status).toBe(200);
  expect((await me(token)).status).toBe(401);
  expect(
    (await me(await main.token({ sub, jti: "same second or before", iat: Math.floor(Date.now() / 1000) - 1 }))).status,
  ).toBe(401);
  await platform.service.patch(`/api/auth/admin/users/${user.id}`, { disabled: true });
  const later = { sub, iat: Math.floor(Date.now() / 1000) + 2 };
  expect((await me(await main.token(later))).status).toBe(401);
  await platform.service.patch(`/api/auth/admin/users/${user.id}`, { disabled: false });
  expect((await me(await main.token({ ...later, jti: "enabled", iat: later.iat + 2 }))).status).toBe(200);
});

test("[AU445] what gives a lasting way in or out asks for a sign-in here", async () => {
  const client = platform.as(await main.token({ sub: nextSubject() }));
  const again = { status: 401, body: { message: "Sign in again" } };
  expect(await client.post("/api/auth/mfa/totp/enroll")).toMatchObject(again);
  expect(await client.delete("/api/auth/me")).toMatchObject(again);
  expect(await client.get("/api/auth/me/export")).toMatchObject(again);
});

test("[AU440] of tokens that are refused, as many as anybody sends, the log has a line in ten seconds", async () => {
  const issuer = new Issuer();
  issuer.keys = [await createKey("flood")];
  const flooded = await testPlatform({
    config: config(`{ name: "flooded", issuer: "${issuer.name}", audience: "app" },`),
  });
  try {
    const statuses = new Set<number>();
    const token = await issuer.token({ exp: 1_000 });
    for (let count = 0; count < 200; count++) statuses.add((await me(token, flooded)).status);
    expect([...statuses]).toEqual([401]);
    const lines = () =>
      flooded
        .stderr()
        .split("\n")
        .filter((line) => line.includes("of an issuer was refused"));
    await until("the log says why", () => lines().length > 0);
    // Machines differ: in the time that this takes, a second one may be due.
    expect(lines().length).toBeLessThan(10);
    expect(lines()[0]).toContain("claim timestamp check failed");
    expect(lines().join()).not.toContain("user-1");
  } finally {
    await issuer.stop();
    await flooded.stop();
  }
});
