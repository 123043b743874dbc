import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type SignedIn,
  signIn,
  signToken,
  type TestPlatform,
  type TestPlatformOptions,
  testPlatform,
} from "../../support/index.ts";

const key = (name: string) => `${name}-key-0123456789abcdefghijklmnopqrstuv`;

const CONFIG = {
  databases: {
    shared: { tables: { open: { access: { read: true, insert: true } }, closed: {} } },
  },
  kv: { cache: {}, other: {} },
  d1: { main: {} },
  serviceKeys: {
    full: { key: key("full") },
    reader: { key: key("reader"), scopes: ["kv:namespace:cache:read", "db:shared:closed:read"] },
    wide: { key: key("wide"), scopes: ["kv:*:*:*", "db:*:*:read"] },
    nothing: { key: key("nothing"), scopes: [] },
    past: { key: key("past"), expiresAt: "2020-01-01T00:00:00Z" },
    future: { key: key("future"), expiresAt: "2999-01-01T00:00:00Z" },
    here: { key: key("here"), ips: ["127.0.0.1", "::1"] },
    office: { key: key("office"), ips: ["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"] },
  },
};

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const OPEN = "/api/db/shared/tables/open";
const CLOSED = "/api/db/shared/tables/closed";

const answer = async (client: Pick<TestPlatform, "get">, path: string, headers: Record<string, string> = {}) => {
  const { status, body } = await client.get<{ message?: string }>(path, { headers });
  return [status, body.message ?? null];
};
const kv = async (client: Pick<TestPlatform, "post">, action: "get" | "set", namespace = "cache") => {
  const body = action === "get" ? { action, key: "a" } : { action, key: "a", value: 1 };
  return (await client.post(`/api/kv/${namespace}`, body)).status;
};

test("[AC1] the root key and a key without scopes have every right", async () => {
  for (const client of [platform.service, platform.withKey(key("full")), platform.withKey(key("future"))]) {
    expect(await answer(client, CLOSED)).toEqual([200, null]);
    expect(await answer(client, "/api/auth/admin/users")).toEqual([200, null]);
    expect([await kv(client, "set"), await kv(client, "get")]).toEqual([200, 200]);
    expect((await client.post("/api/d1/main", { query: "SELECT 1" })).status).toBe(200);
  }
});

test("[AC2] a key with scopes has only those rights, even where everyone may read", async () => {
  const reader = platform.withKey(key("reader"));
  expect([await kv(reader, "get"), await kv(reader, "set"), await kv(reader, "get", "other")]).toEqual([200, 403, 403]);
  expect(await answer(reader, CLOSED)).toEqual([200, null]);
  expect((await reader.post(CLOSED, { a: 1 })).status).toBe(403);
  expect(await answer(reader, OPEN)).toEqual([403, "Access denied"]);
  expect(await answer(reader, "/api/auth/admin/users")).toEqual([403, "Access denied"]);
  expect((await reader.post("/api/d1/main", { query: "SELECT 1" })).status).toBe(403);

  const wide = platform.withKey(key("wide"));
  expect([await kv(wide, "set"), await kv(wide, "get", "other")]).toEqual([200, 200]);
  expect(await answer(wide, OPEN)).toEqual([200, null]);
  expect((await wide.post(OPEN, { a: 1 })).status).toBe(403);

  const nothing = platform.withKey(key("nothing"));
  expect([await kv(nothing, "get"), (await answer(nothing, OPEN))[0]]).toEqual([403, 403]);
});

test("[AC3] an invalid key is refused, even where everyone may read", async () => {
  const wrong = [
    ...["", " ", "x", key("past"), `${platform.serviceKey}x`, platform.serviceKey.slice(0, -1)],
    ...[platform.serviceKey.toUpperCase(), `${platform.serviceKey}, ${platform.serviceKey}`],
  ];
  for (const one of wrong) {
    const headers = { "x-platform-service-key": one };
    for (const path of [OPEN, CLOSED, "/api/auth/admin/users"]) {
      expect([one, path, ...(await answer(platform, path, headers))]).toEqual([one, path, 401, "Invalid service key"]);
    }
    expect(await answer(user, OPEN, headers)).toEqual([401, "Invalid service key"]);
  }
  const event = { channel: "broadcast:news", event: "x", payload: {} };
  const broadcast = await platform.withKey("wrong").post("/api/realtime/broadcast", event);
  expect(broadcast).toMatchObject({ status: 403, body: { code: 403, message: "Invalid service key" } });
});

test("[AC4] a key with ips is valid only from those addresses, whatever headers the client sends", async () => {
  expect(await answer(platform.withKey(key("here")), CLOSED)).toEqual([200, null]);
  const office = platform.withKey(key("office"));
  const forwarded: Record<string, string>[] = [
    {},
    { "x-forwarded-for": "10.1.2.3" },
    { "x-real-ip": "10.1.2.3" },
    { forwarded: "for=10.1.2.3" },
  ];
  for (const headers of forwarded) {
    expect(await answer(office, CLOSED, headers)).toEqual([403, "Access denied"]);
    expect((await office.head(CLOSED, { headers })).status).toBe(403);
  }
});

test("[AC4] with trustProxy the address is the last entry of X-Forwarded-For", async () => {
  const proxied = await testPlatform({ config: { ...CONFIG, server: { trustProxy: true } } });
  const office = proxied.withKey(key("office"));
  const inside = [
    "10.1.2.3",
    "8.8.8.8, 10.1.2.3",
    "192.0.2.7",
    "2001:db8::1",
    "::ffff:10.1.2.3",
    "10.1.2.3:555",
    "[2001:db8::1]:443",
  ];
  const outside = ["11.0.0.1", "10.1.2.3, 8.8.8.8", "192.0.2.8", "2001:db9::1", "nonsense", "", "10.1.2.3,"];
  for (const [addresses, status] of [[inside, 200] as const, [outside, 403] as const]) {
    for (const address of addresses) {
      const headers = { "x-forwarded-for": address };
      expect([address, (await office.get(CLOSED, { headers })).status]).toEqual([address, status]);
      expect([address, (await office.head(CLOSED, { headers })).status]).toEqual([address, status]);
    }
  }
  await proxied.stop();
});

test("[AC5] endpoints for service keys are 401 without a key, with a token too", async () => {
  for (const client of [platform, user]) {
    expect(await answer(client, "/api/auth/admin/users")).toEqual([401, "Service key required"]);
    expect(await kv(client, "get")).toBe(401);
    expect((await client.post("/api/d1/main", { query: "SELECT 1" })).status).toBe(401);
  }
});

test("[AC6] a bearer token identifies the user; any other form is 401", async () => {
  for (const authorization of [`Bearer ${user.token}`, `bearer ${user.token}`, `BEARER   ${user.token}  `]) {
    expect(await answer(platform, "/api/auth/me", { authorization })).toEqual([200, null]);
  }
  const wrong = ["", "Bearer", "Bearer ", user.token, `Token ${user.token}`, `Bearer${user.token}`, "Basic dXNlcjpw"];
  for (const authorization of [...wrong, `Bearer ${user.token}, Bearer ${user.token}`, `Bearer Bearer ${user.token}`]) {
    for (const path of ["/api/auth/me", OPEN]) {
      const got = await answer(platform, path, { authorization });
      expect([authorization, path, ...got]).toEqual([authorization, path, 401, "Invalid token"]);
    }
  }
});

test("[AC7] an invalid token is 401, even where everyone may read", async () => {
  const [head = "", claims = "", signature = ""] = user.token.split(".");
  const { sid } = JSON.parse(Buffer.from(claims, "base64url").toString());
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const good = { sub: user.id, sid: String(sid) };
  // A token built this way is valid, so the others fail because of their own differences.
  expect(await answer(platform.as(await signToken(good)), "/api/auth/me")).toEqual([200, null]);

  const flipped = `${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`;
  const invalid = {
    "another secret": await signToken(good, { secret: "another-secret-0123456789-abcdefghijklmnop" }),
    "another session": await signToken({ ...good, sid: "unknown" }),
    "another user's session": await signToken({ ...good, sub: "somebody-else" }),
    "no session": await signToken({ sub: user.id }),
    "no user": await signToken({ sid: String(sid) }),
    "no algorithm": `${encode({ alg: "none", typ: "JWT" })}.${claims}.`,
    "another algorithm": `${encode({ alg: "HS512", typ: "JWT" })}.${claims}.${signature}`,
    "other claims": `${head}.${encode({ ...good, role: "admin", exp: 99_999_999_999 })}.${signature}`,
    "another signature": `${head}.${claims}.${flipped}`,
    "no signature": `${head}.${claims}`,
    overlong: "x".repeat(10_000),
    nonsense: "null",
  };
  for (const [name, token] of Object.entries(invalid)) {
    for (const path of ["/api/auth/me", OPEN]) {
      expect([name, path, ...(await answer(platform.as(token), path))]).toEqual([name, path, 401, "Invalid token"]);
    }
  }
  const expired = await signToken(good, { expiresInSeconds: -1 });
  for (const path of ["/api/auth/me", OPEN]) {
    expect(await answer(platform.as(expired), path)).toEqual([401, "Token expired"]);
  }
});

test("[AC8] with both a key and a token, the key is used", async () => {
  for (const authorization of ["Bearer nonsense", "Basic dXNlcjpw", `Bearer ${user.token}`]) {
    expect(await answer(platform.service, CLOSED, { authorization })).toEqual([200, null]);
  }
});

test("[AC110] a service key of fewer than 20 characters prevents the start, in the config and as the root key", async () => {
  const short = { serviceKeys: { ci: { key: "0123456789abcdefghi" } } };
  const start = (options: TestPlatformOptions) =>
    testPlatform(options).then(
      (platform) => platform.stop().then(() => "started"),
      (cause: unknown) => String(cause),
    );
  expect(await start({ config: short })).toContain("serviceKeys.ci.key: must have at least 20 characters, got 19");
  const rootKey = { PLATFORM_SERVICE_KEY: "k" };
  expect(await start({ config: {}, env: rootKey })).toContain(
    "PLATFORM_SERVICE_KEY must have at least 20 characters, got 1",
  );
});
