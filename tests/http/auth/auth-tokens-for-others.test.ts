import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportSPKI,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  jwtVerify,
  SignJWT,
} from "jose";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { platformCommand, type TestPlatform, testEnvironment, testPlatform, until } from "../../support/index.ts";
import { nextEmail, PASSWORD, signUp } from "./auth-support.ts";

const configOf = (tokens: string) => `{
  auth: { anonymous: true, ${tokens} },
  rateLimits: { auth: { requests: 100000, window: 60 }, signup: { requests: 100000, window: 60 } },
}`;
const CLAIMS = `async (user) => {
  const { wish } = user.metadata;
  if (wish === "throw") throw new Error("no");
  if (wish === "hang") return new Promise(() => {});
  if (wish === "list") return ["a"];
  if (wish === "long") return { text: "x".repeat(20_000) };
  if (typeof wish === "string") return { [wish]: "forged" };
  user.role = "changed";
  return { "https://example.com/name": user.displayName, left: undefined };
}`;
const FOR_OTHERS = configOf(
  `tokens: { issuer: "https://id.example.com", audience: ["api", "worker"], claims: ${CLAIMS} },`,
);

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: FOR_OTHERS });
});
afterAll(() => platform.stop());

const jwks = async () => (await platform.get<JSONWebKeySet>("/.well-known/jwks.json")).body;
const me = async (token: string) => (await platform.as(token).get("/api/auth/me")).status;
const signUpWith = (metadata: JsonObject, email = nextEmail()) =>
  platform.post<{ accessToken: string }>("/api/auth/signup", {
    email,
    password: PASSWORD,
    displayName: "Ann",
    metadata,
  });

test("[AU320] others verify an access token by the published keys, with issuer, audience and claims of the config", async () => {
  const { body } = await signUpWith({});
  const { payload, protectedHeader } = await jwtVerify(body.accessToken, createLocalJWKSet(await jwks()), {
    issuer: "https://id.example.com",
    audience: "worker",
    algorithms: ["ES256"],
  });
  expect(protectedHeader).toEqual({ alg: "ES256", typ: "JWT", kid: expect.any(String) });
  expect(payload).toMatchObject({ role: "user", aud: ["api", "worker"], "https://example.com/name": "Ann" });
  expect(Object.keys(payload)).not.toContain("left");
  expect(await me(body.accessToken)).toBe(200);
  const found = await platform.get("/.well-known/openid-configuration");
  expect([found.status, found.body]).toEqual([
    200,
    expect.objectContaining({ issuer: "https://id.example.com", jwks_uri: `${platform.url}/.well-known/jwks.json` }),
  ]);
});

test("[AU320] the published keys have no private part, and take no parameters", async () => {
  const { keys } = await jwks();
  expect(keys.map((key) => Object.keys(key).sort())).toEqual([["alg", "crv", "kid", "kty", "use", "x", "y"]]);
  expect((await platform.get("/.well-known/jwks.json", { query: { kid: "a" } })).status).toBe(400);
});

test("[AU320] claims that throw, take too long, are no object, too long or reserved: 500, and no session", async () => {
  const wishes = ["throw", "hang", "list", "long"];
  const reserved = ["sub", "sid", "ver", "role", "email", "custom", "anon", "iss", "aud", "iat", "nbf", "exp", "jti"];
  await Promise.all(
    [...wishes, ...reserved].map(async (wish) => {
      const email = nextEmail();
      expect([wish, (await signUpWith({ wish }, email)).status]).toEqual([wish, 500]);
      expect((await platform.post("/api/auth/signin", { email, password: PASSWORD })).status).toBe(500);
      const file = new Database(join(platform.dataDirectory, "system.db"), { readonly: true });
      const sessions = file.query(
        'SELECT "id" FROM "sessions" WHERE "userId" IN (SELECT "id" FROM "users" WHERE "email" = ?)',
      );
      expect([wish, sessions.all(email)]).toEqual([wish, []]);
      file.close();
    }),
  );
  await until("the log says so", () => platform.stderr().includes("auth.tokens.claims must not set"));
});

test("[AU320] a refresh whose claims fail keeps the session", async () => {
  const { refreshToken, user } = await signUp(platform);
  const wish = (metadata: JsonObject) => platform.service.patch(`/api/auth/admin/users/${user.id}`, { metadata });
  expect((await wish({ wish: "throw" })).status).toBe(200);
  expect((await platform.post("/api/auth/refresh", { refreshToken })).status).toBe(500);
  await wish({});
  expect((await platform.post("/api/auth/refresh", { refreshToken })).status).toBe(200);
});

test("[AU320] no other key, algorithm or mixture of both makes a token", async () => {
  const { accessToken } = await signUp(platform);
  const claims = decodeJwt(accessToken);
  const { kid = "" } = decodeProtectedHeader(accessToken);
  const [published] = (await jwks()).keys;
  const own = await generateKeyPair("ES256");
  const sign = (header: { alg: string; kid?: string }, key: CryptoKey | Uint8Array) =>
    new SignJWT(claims).setProtectedHeader(header).sign(key);
  const bytes = (text: string) => new TextEncoder().encode(text);
  const publicKey = (await importJWK({ ...published }, "ES256", { extractable: true })) as CryptoKey;
  const [head, body, signature] = accessToken.split(".");
  const forged = [
    await sign({ alg: "ES256", kid }, own.privateKey),
    await sign({ alg: "ES256" }, own.privateKey),
    await sign({ alg: "ES256", kid: "unknown" }, own.privateKey),
    // The public key as the secret of the other algorithm.
    await sign({ alg: "HS256", kid }, bytes(await exportSPKI(publicKey))),
    await sign({ alg: "HS256", kid }, bytes(JSON.stringify(published))),
    await sign({ alg: "ES384", kid }, (await generateKeyPair("ES384")).privateKey),
    `${head}.${body}.`,
    `${Buffer.from(JSON.stringify({ alg: "none", kid })).toString("base64url")}.${body}.${signature}`,
    `${head}.${Buffer.from(JSON.stringify({ ...claims, role: "admin" })).toString("base64url")}.${signature}`,
  ];
  for (const token of forged) expect(await me(token)).toBe(401);
  expect(await me(accessToken)).toBe(200);
});

test("[AU321] tokens of before go on, and a start without `tokens` publishes and takes none", async () => {
  await platform.restart({ config: configOf("") });
  for (const path of ["jwks.json", "openid-configuration"]) {
    expect((await platform.get(`/.well-known/${path}`)).status).toBe(404);
  }
  const before = await signUp(platform);
  expect(decodeProtectedHeader(before.accessToken).alg).toBe("HS256");
  await platform.restart({ config: FOR_OTHERS });
  expect(await me(before.accessToken)).toBe(200);
  const after = await platform.post<{ accessToken: string }>("/api/auth/refresh", {
    refreshToken: before.refreshToken,
  });
  expect(decodeProtectedHeader(after.body.accessToken).alg).toBe("ES256");
  await platform.kill("SIGKILL");
  await platform.restart();
  expect(await me(after.body.accessToken)).toBe(200);
  await platform.restart({ config: configOf("") });
  expect(await me(after.body.accessToken)).toBe(401);
  await platform.restart({ config: FOR_OTHERS });
});

test("[AU322] [CL406] keys --rotate-tokens has a running server sign with a new key; the old one stays for its tokens", async () => {
  const { accessToken } = await signUp(platform);
  const { kid } = decodeProtectedHeader(accessToken);
  const run = async (...more: string[]) => {
    const command = [...platformCommand(), "keys", "--data", platform.dataDirectory, "--rotate-tokens", ...more];
    const child = Bun.spawn(command, { env: testEnvironment(), stdout: "pipe", stderr: "pipe" });
    return {
      text: await new Response(child.stdout).text(),
      error: await new Response(child.stderr).text(),
      code: await child.exited,
    };
  };
  const { text, code } = await run();
  expect(code).toBe(0);
  const next = await signUp(platform);
  expect(decodeProtectedHeader(next.accessToken).kid).toBe(text.trim());
  expect(text.trim()).not.toBe(kid);
  expect((await jwks()).keys.map((key) => key.kid)).toEqual([text.trim(), kid]);
  for (const token of [accessToken, next.accessToken]) {
    expect((await jwtVerify(token, createLocalJWKSet(await jwks()))).payload.sub).toBeString();
    expect(await me(token)).toBe(200);
  }
  expect((await run("--rotate")).code).toBe(2);
  await platform.kill("SIGTERM");
  const beforeStart = await run();
  expect([beforeStart.code, beforeStart.error]).toEqual([0, expect.stringContaining("the next start makes the key")]);
  await platform.restart({ config: configOf("") });
  const refused = await run();
  expect([refused.code, refused.error]).toEqual([1, expect.stringContaining("auth.tokens")]);
  await platform.restart({ config: FOR_OTHERS });
  expect((await jwks()).keys).toHaveLength(2);
});
