import { afterAll, beforeAll, expect, test } from "bun:test";
import { signIn, signToken, type TestPlatform, testPlatform } from "../../support/index.ts";

const SYSTEM_KEY = "system-reader-key-0123456789abcdefghijklm";
const OTHER_KEY = "key-value-only-key-0123456789abcdefghijk";

const config = (schemaEndpoint: string) => `{
  databases: {
    shared: { tables: {
      authors: { schema: { name: { type: "string", required: true, unique: true, min: 1, max: 40 } } },
      posts: {
        schema: {
          title: { type: "string", required: true, pattern: /^[a-z]/i },
          slug: { type: "string", pattern: "^[a-z-]+$" },
          state: { type: "string", enum: ["draft", "live"], default: "draft" },
          author: { type: "string", references: "authors" },
          score: { type: "number", check: "score >= 0" },
          seenAt: { type: "datetime", onUpdate: "now" },
          createdAt: false,
        },
        fts: ["title"],
        indexes: [{ fields: ["state", "slug"] }, { fields: ["slug"], unique: true }],
        access: { read: (auth) => auth?.id === "SECRET-RULE" },
        hooks: { beforeInsert: (_, record) => ({ ...record, slug: "SECRET-HOOK" }) },
        migrations: [{ version: 1, description: "SECRET-MIGRATION", up: "SELECT 'SECRET-SQL'" }],
      },
    } },
    team: { instance: true, access: { open: true }, tables: { notes: {} } },
  },
  auth: {
    anonymous: true, mfa: { totp: true }, captcha: { provider: "turnstile", siteKey: "site-key", secretKey: "SECRET-CAPTCHA" },
    oauth: { google: { clientId: "SECRET-ID", clientSecret: "SECRET-VALUE" } },
    mail: { from: "SECRET@example.com" },
  },
  serviceKeys: {
    system: { key: "${SYSTEM_KEY}", scopes: ["system:*:*:read"] },
    other: { key: "${OTHER_KEY}", scopes: ["kv:namespace:*:read"] },
  },
  api: { schemaEndpoint: ${schemaEndpoint} },
}`;

interface Schema {
  namespaces: Record<string, { instance: boolean; tables: Record<string, { fields: Record<string, unknown> }> }>;
}

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: config("true") });
});
afterAll(() => platform.stop());

test("[SY1] health answers everyone with status, version and uptime", async () => {
  const { status, body } = await platform.get("/api/health");
  expect(status).toBe(200);
  expect(body).toEqual({ status: "ok", version: expect.stringMatching(/^\d+\.\d+\.\d+/), uptime: expect.any(Number) });
  expect(Number.isInteger(body["uptime"]) && Number(body["uptime"]) >= 0).toBe(true);
  expect((await platform.as("nonsense").get("/api/health")).status).toBe(200);
});

test("[SY2] the public config has the sign-in methods and no secret", async () => {
  const answer = await platform.get("/api/config");
  expect(answer.body).toEqual({
    auth: {
      emailPassword: true,
      anonymous: true,
      magicLink: false,
      emailOtp: false,
      phone: false,
      mfa: true,
      mfaPhone: false,
      oauth: ["google"],
      passkeys: false,
      pages: null,
    },
    captcha: { siteKey: "site-key" },
    push: null,
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
  });
  for (const client of [platform.as("nonsense"), platform.withKey("nonsense"), platform.service]) {
    expect((await client.get("/api/config")).body).toEqual(answer.body);
  }
});

test("[SY5] the schema describes every table, with omitted defaults filled in", async () => {
  const { status, body } = await platform.get<Schema>("/api/schema");
  expect(status).toBe(200);
  const plain = { required: false, unique: false, generated: false };
  const id = { ...plain, type: "string", unique: true, generated: true };
  const createdAt = { ...plain, type: "datetime", generated: true };
  const updatedAt = { ...createdAt, onUpdate: "now" };
  expect(body).toEqual({
    namespaces: {
      shared: {
        instance: false,
        tables: {
          authors: {
            schemaless: false,
            fields: {
              id,
              name: { type: "string", required: true, unique: true, generated: false, min: 1, max: 40 },
              createdAt,
              updatedAt,
            },
            fts: null,
            indexes: [],
          },
          posts: {
            schemaless: false,
            fields: {
              id,
              title: { ...plain, type: "string", required: true, pattern: "^[a-z]", patternFlags: "i" },
              slug: { ...plain, type: "string", pattern: "^[a-z-]+$" },
              state: { ...plain, type: "string", enum: ["draft", "live"], default: "draft" },
              author: {
                ...plain,
                type: "string",
                references: { table: "authors", column: "id", onDelete: "restrict" },
              },
              score: { ...plain, type: "number", check: "score >= 0" },
              seenAt: { ...plain, type: "datetime", onUpdate: "now" },
              updatedAt,
            },
            fts: { fields: ["title"], tokenize: "unicode61" },
            indexes: [
              { fields: ["state", "slug"], unique: false },
              { fields: ["slug"], unique: true },
            ],
          },
        },
      },
      team: {
        instance: true,
        tables: { notes: { schemaless: true, fields: { id, createdAt, updatedAt }, fts: null, indexes: [] } },
      },
    },
  } as never);
});

test("[SY2] [SY6] rules, hooks, migrations and secrets are in neither answer", async () => {
  for (const path of ["/api/schema", "/api/config"]) {
    const text = await (await platform.service.fetch(path)).text();
    expect(text).not.toContain("SECRET");
    expect(text).not.toMatch(/hooks|migrations|access|clientSecret/);
  }
});

test("[SY4] a public schema still refuses invalid credentials", async () => {
  const user = await signIn(platform);
  const statuses = async (client: { get: TestPlatform["get"] }) => (await client.get("/api/schema")).status;
  expect(await statuses(user)).toBe(200);
  expect(await statuses(platform.service)).toBe(200);
  expect(await statuses(platform.withKey(SYSTEM_KEY))).toBe(200);
  expect(await statuses(platform.withKey(OTHER_KEY))).toBe(403);
  expect(await platform.as("nonsense").get("/api/schema")).toMatchObject({
    status: 401,
    body: { code: 401, message: "Invalid token" },
  });
  expect(await platform.withKey("nonsense").get("/api/schema")).toMatchObject({
    status: 401,
    body: { code: 401, message: "Invalid service key" },
  });
});

test("[SY3] [SY4] authenticated requires credentials; false is 404 like a path that does not exist", async () => {
  const other = await testPlatform({ config: config('"authenticated"') });
  expect(await other.get("/api/schema")).toMatchObject({
    status: 401,
    body: { code: 401, message: "Authentication required" },
  });
  const user = await signIn(other);
  expect((await user.get<Schema>("/api/schema")).body.namespaces).toHaveProperty("shared");
  expect((await other.service.get("/api/schema")).status).toBe(200);
  expect((await other.withKey(SYSTEM_KEY).get("/api/schema")).status).toBe(200);
  expect((await other.withKey(OTHER_KEY).get("/api/schema")).status).toBe(403);
  const expired = await signToken({ sub: user.id, sid: "x" }, { expiresInSeconds: -10 });
  expect(await other.as(expired).get("/api/schema")).toMatchObject({ status: 401, body: { message: "Token expired" } });

  await other.restart({ config: config("false") });
  for (const client of [other, other.service, other.as("nonsense"), other.withKey("nonsense")]) {
    expect(await client.get("/api/schema")).toMatchObject({ status: 404, body: { code: 404 } });
  }
  await other.stop();
});
