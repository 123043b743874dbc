import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { nextEmail, PASSWORD, signUp } from "./auth-support.ts";

const keys = {
  scoped: "scoped-key-0123456789",
  administrator: "admin-key-01234567890",
  whole: "whole-key-01234567890",
};

let platform: TestPlatform;
let tight: TestPlatform;

beforeAll(async () => {
  [platform, tight] = await Promise.all([
    testPlatform({
      config: {
        auth: { anonymous: true, magicLink: true, emailOtp: true, mfa: { totp: true } },
        serviceKeys: {
          scoped: { key: keys.scoped, scopes: ["kv:namespace:*:read"] },
          administrator: { key: keys.administrator, scopes: ["auth:admin:*:read", "auth:admin:*:write"] },
          whole: { key: keys.whole },
        },
      },
    }),
    testPlatform({ config: { rateLimits: { auth: { requests: 4, window: 60 } } } }),
  ]);
});
afterAll(() => Promise.all([platform.stop(), tight.stop()]));

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
}

test("[AU44] a key with scopes is 403 at every endpoint for users, whatever its scopes", async () => {
  const { body } = await platform.get<Document>("/swagger/json");
  const endpoints = Object.entries(body.paths)
    .filter(([path]) => path.startsWith("/api/auth/") && !path.startsWith("/api/auth/admin/"))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { responses }]) => ({ path, method, responses })),
    );
  expect(endpoints.length).toBeGreaterThan(35);
  for (const { path, method, responses } of endpoints) {
    const hasBody = method !== "get";
    const init = {
      method: method.toUpperCase(),
      headers: { "content-type": "application/json" },
      ...(hasBody ? { body: "{}" } : {}),
    };
    const address = path.replaceAll(/\{\w+\}/g, "x");
    for (const key of [keys.scoped, keys.administrator]) {
      const answer = await platform.withKey(key).fetch(address, init);
      expect([path, await answer.json()]).toEqual([path, { code: 403, message: "Access denied" }]);
    }
    expect([path, (await platform.withKey(keys.whole).fetch(address, init)).status]).not.toEqual([path, 403]);
    expect([path, Object.keys(responses)]).toEqual([path, expect.arrayContaining(["401", "403"])]);
  }
});

test("[AU44] a key without scopes, and the root key, may sign users up and in", async () => {
  for (const client of [platform.withKey(keys.whole), platform.service]) {
    const body = { email: nextEmail(), password: PASSWORD };
    expect((await client.post("/api/auth/signup", body)).status).toBe(201);
    expect((await client.post("/api/auth/signin", body)).status).toBe(200);
  }
  const email = nextEmail();
  expect((await platform.withKey(keys.scoped).post("/api/auth/signup", { email, password: PASSWORD })).status).toBe(
    403,
  );
  expect((await signUp(platform, email)).user.email).toBe(email);
});

test("[US15] requests to the administration count in the group auth, but for those with a valid key", async () => {
  const paths = ["/api/auth/admin/users", "/api/auth/admin/users/x"];
  const statuses = [];
  for (const path of [...paths, ...paths]) statuses.push((await tight.withKey("guessed-key").get(path)).status);
  expect(statuses).toEqual([401, 401, 401, 401]);
  expect((await tight.withKey("guessed-key").get("/api/auth/admin/users")).status).toBe(429);
  expect((await tight.get("/api/auth/admin/users")).status).toBe(429);
  expect((await tight.post("/api/admin/auth/users/import", { users: [] })).status).toBe(429);
  expect((await tight.post("/api/auth/refresh", { refreshToken: "x" })).status).toBe(429);
  for (let count = 0; count < 8; count++) expect((await tight.service.get("/api/auth/admin/users")).status).toBe(200);
});
