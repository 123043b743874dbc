import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  createAdministrator,
  type ErrorAnswer,
  platformCommand,
  SERVICE_KEY,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";

const key = (name: string) => `${name}-key-0123456789abcdefghijklmnopqrstuv`;

const CONFIG = `{
  databases: {
    shared: {
      tables: {
        notes: {
          schema: { text: { type: "string" }, owner: { type: "string" } },
          access: {
            read: (auth) => auth !== null && [["owner", "==", auth.id]],
            insert: (auth, record) => auth !== null && record.owner === auth.id,
            update: (auth) => auth !== null && auth.role === "editor",
          },
        },
        open: { access: { read: true } },
      },
    },
  },
  kv: { cache: {} },
  server: { trustProxy: true },
  rateLimits: { auth: { requests: 100000, window: 60 } },
  serviceKeys: {
    full: { key: "${key("full")}" },
    reader: { key: "${key("reader")}", scopes: ["kv:namespace:cache:read"] },
    office: { key: "${key("office")}", ips: ["10.0.0.0/8"] },
  },
}`;

const NOTES = "/api/db/shared/tables/notes";
const OPEN = "/api/db/shared/tables/open";
const SESSION = "/api/admin/session";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

/** Requests of addresses of their own, so that failures are counted apart. */
const from = (address: string) => ({ headers: { "x-forwarded-for": address } });
const signInWith = (body: { [name: string]: string }, address = "192.0.2.1") =>
  platform.post<ErrorAnswer | null>(SESSION, body, from(address));

describe("a session", () => {
  test("[AD1] is opened with a key, and kept in a cookie that no script reads and no other site sends", async () => {
    const { status, headers, body } = await signInWith({ key: SERVICE_KEY });
    expect([status, body]).toEqual([204, null]);
    const [pair = "", ...attributes] = (headers.get("set-cookie") ?? "").split("; ");
    expect(pair).toMatch(/^platform_admin_[0-9a-f]{8}=[\w-]{43}$/);
    expect(attributes.sort()).toEqual(["HttpOnly", "Max-Age=43200", "Path=/api", "SameSite=Strict"]);
  });

  test("[AD1] its cookie is Secure where the server's address is https", async () => {
    const config = { server: { publicUrl: "https://api.example.com" } };
    const other = await testPlatform({ config, env: { PLATFORM_JWT_SECRET: "another-secret-0123456789-abcdefghijk" } });
    try {
      const { headers } = await other.post(SESSION, { key: SERVICE_KEY });
      const cookie = headers.get("set-cookie") ?? "";
      expect(cookie).toContain("; Secure");
      const mine = (await signInWith({ key: SERVICE_KEY })).headers.get("set-cookie") ?? "";
      expect(cookie.split("=")[0]).not.toBe(mine.split("=")[0]);
    } finally {
      await other.stop();
    }
  });

  test("[AD2] has the rights of its key, and no others", async () => {
    const root = await createAdministrator(platform, SERVICE_KEY);
    const reader = await createAdministrator(platform, key("reader"));
    const kv = (action: string) => ({ action, key: "a", ...(action === "set" ? { value: 1 } : {}) });
    expect((await root.get("/api/auth/admin/users")).status).toBe(200);
    expect((await root.post("/api/kv/cache", kv("set"))).status).toBe(200);
    expect((await reader.post("/api/kv/cache", kv("get"))).status).toBe(200);
    expect((await reader.post("/api/kv/cache", kv("set"))).status).toBe(403);
    // Even where everyone may read.
    expect((await reader.get(OPEN)).status).toBe(403);
    expect((await reader.get("/api/auth/admin/users")).status).toBe(403);
  });

  test("[AD2] counts for nothing without the header that no other site can send", async () => {
    const { cookie } = await createAdministrator(platform, SERVICE_KEY);
    for (const headers of [{ cookie }, { cookie, "x-platform-admin": "0" }, { cookie, "x-platform-admin": "true" }]) {
      expect((await platform.get("/api/auth/admin/users", { headers })).status).toBe(401);
      expect((await platform.get(OPEN, { headers })).status).toBe(200);
    }
    const preflight = await platform.fetch(SESSION, {
      method: "OPTIONS",
      headers: {
        origin: "https://evil.example",
        "access-control-request-method": "GET",
        "access-control-request-headers": "x-platform-admin",
      },
    });
    expect(preflight.headers.get("access-control-allow-headers")?.toLowerCase()).not.toContain("x-platform-admin");
  });

  test("[AD2] of a key with addresses is good from those alone", async () => {
    const { headers } = await signInWith({ key: key("office") }, "10.1.2.3");
    const cookie = headers.get("set-cookie")?.split(";")[0] ?? "";
    const use = (address: string) =>
      platform.get(SESSION, { headers: { cookie, "x-platform-admin": "1", "x-forwarded-for": address } });
    expect((await use("10.9.9.9")).status).toBe(200);
    expect((await use("192.0.2.9")).status).toBe(403);
    expect((await signInWith({ key: key("office") }, "192.0.2.9")).status).toBe(403);
  });

  test("[AD3] is required where its header is sent, a key goes before it, and it goes before a token", async () => {
    const user = await signIn(platform);
    const { cookie } = await createAdministrator(platform, key("reader"));
    const name = cookie.split("=")[0];
    const admin = { "x-platform-admin": "1" };
    for (const bad of ["", `${name}=`, `${name}=nonsense`, `${name}_=${cookie.split("=")[1]}`, "x".repeat(20_000)]) {
      expect((await platform.get(OPEN, { headers: { ...admin, cookie: bad } })).status).toBe(401);
      // No way around the limits or to a user's rights either.
      expect((await platform.as(user.token).get(OPEN, { headers: { ...admin, cookie: bad } })).status).toBe(401);
    }
    expect((await platform.as(user.token).get(OPEN, { headers: { ...admin, cookie } })).status).toBe(403);
    expect((await platform.service.get(OPEN, { headers: { ...admin, cookie } })).status).toBe(200);
    // Among other cookies of the same host.
    const many = { ...admin, cookie: `a=1; ${cookie}; b="2"; ${name}x=3` };
    expect((await platform.get(SESSION, { headers: many })).status).toBe(200);
  });

  test("[AD4] ends with DELETE, for this browser alone", async () => {
    const first = await createAdministrator(platform, SERVICE_KEY);
    const second = await createAdministrator(platform, SERVICE_KEY);
    expect((await platform.delete(SESSION, undefined, { headers: { cookie: first.cookie } })).status).toBe(403);
    const ended = await first.delete(SESSION);
    expect(ended.status).toBe(204);
    expect(ended.headers.get("set-cookie")).toMatch(/(?:^|, )platform_admin_[0-9a-f]{8}=; .*Max-Age=0/);
    expect((await first.get(SESSION)).status).toBe(401);
    expect((await second.get(SESSION)).status).toBe(200);
    expect((await first.delete(SESSION)).status).toBe(204);
  });

  test("[AD5] tells the name and the scopes of its key", async () => {
    const reader = await createAdministrator(platform, key("reader"));
    expect((await reader.get(SESSION)).body).toEqual({ name: "reader", scopes: ["kv:namespace:cache:read"] });
    expect((await platform.service.get(SESSION)).body).toEqual({ name: "root", scopes: ["*:*:*:*"] });
    expect((await platform.withKey(key("full")).get(SESSION)).body).toEqual({ name: "full", scopes: ["*:*:*:*"] });
    expect((await platform.get(SESSION)).status).toBe(401);
  });

  test("[AD6] is refused for a wrong key or code, and after five of them for a minute", async () => {
    const address = "203.0.113.5";
    for (const body of [{}, { key: "" }, { key: SERVICE_KEY, code: "x" }, { kye: SERVICE_KEY }]) {
      const { status } = await signInWith(body, address);
      expect(status).toBe("key" in body && body.key === "" ? 401 : 400);
    }
    for (const body of [{ key: `${SERVICE_KEY}x` }, { code: "nonsense" }, { code: "../secrets.json" }, { key: "é" }]) {
      expect((await signInWith(body, address)).status).toBe(401);
    }
    const refused = await signInWith({ key: SERVICE_KEY }, address);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await signInWith({ key: SERVICE_KEY }, "203.0.113.6")).status).toBe(204);
  });

  test("[AD6] the failures of a whole IPv6 network count together", async () => {
    const attempts = Array.from({ length: 5 }, (_, index) => signInWith({ key: "wrong" }, `2001:db8:1:2::${index}`));
    await Promise.all(attempts);
    expect((await signInWith({ key: SERVICE_KEY }, "2001:db8:1:2:ffff::1")).status).toBe(429);
    expect((await signInWith({ key: SERVICE_KEY }, "2001:db8:1:3::1")).status).toBe(204);
  });
});

test("[AD4] [AD7] a restart keeps sessions, another root key ends its own, and no file has a token or a key", async () => {
  const server = await testPlatform({ config: CONFIG, env: { PLATFORM_SERVICE_KEY: undefined } });
  try {
    const rootKey = await printedKey(server);
    const root = await createAdministrator(server, rootKey);
    const reader = await createAdministrator(server, key("reader"));
    await server.kill("SIGKILL");
    const token = root.cookie.split("=")[1] ?? "";
    expect(filesWith(server.dataDirectory, [token, key("reader")])).toEqual([]);
    await server.restart();
    expect((await root.get(SESSION)).status).toBe(200);
    expect((await reader.get(SESSION)).status).toBe(200);
    expect(await printedKey(server, "--rotate")).not.toBe(rootKey);
    await server.restart();
    expect((await root.get(SESSION)).status).toBe(401);
    expect((await reader.get(SESSION)).status).toBe(200);
    await server.restart({ config: CONFIG.replace(key("reader"), key("replaced")) });
    expect((await reader.get(SESSION)).status).toBe(401);
  } finally {
    await server.stop();
  }
});

/** Returns the output of `platform keys`. */
async function printedKey({ dataDirectory }: TestPlatform, ...args: string[]): Promise<string> {
  const child = Bun.spawn([...platformCommand(), "keys", "--data", dataDirectory, ...args], { stdout: "pipe" });
  return (await child.stdout.text()).trim();
}

function filesWith(directory: string, texts: readonly string[]): string[] {
  const files = readdirSync(directory, { recursive: true }).map((name) => join(directory, String(name)));
  const contents = files.filter((file) => statSync(file).isFile()).map((file) => ({ file, bytes: readFileSync(file) }));
  expect(contents.length).toBeGreaterThan(3);
  return contents.filter(({ bytes }) => texts.some((text) => bytes.includes(text))).map(({ file }) => file);
}

test("[AD8] admin: false: no such endpoints, and cookies count for nothing", async () => {
  const { cookie } = await createAdministrator(platform, SERVICE_KEY);
  const server = await testPlatform({ config: { admin: false, kv: { cache: {} } } });
  try {
    expect((await server.post(SESSION, { key: SERVICE_KEY })).status).toBe(404);
    expect((await server.service.get(SESSION)).status).toBe(404);
    const headers = { cookie, "x-platform-admin": "1" };
    expect((await server.get("/api/auth/admin/users", { headers })).status).toBe(401);
    expect((await server.service.get("/api/auth/admin/users", { headers })).status).toBe(200);
  } finally {
    await server.stop();
  }
});

test("[AL6] the audit log has who signed in to the dashboard, who failed, and who signed out", async () => {
  const reader = await createAdministrator(platform, key("reader"));
  await reader.delete(SESSION);
  await signInWith({ key: "wrong" }, "203.0.113.99");
  const { body } = await platform.service.get<{ entries: { action: string; actor: object; address: string }[] }>(
    "/api/admin/audit",
    { query: { target: "admin", limit: 3 } },
  );
  expect(body.entries.map(({ action, actor }) => ({ action, actor }))).toEqual([
    { action: "signin.failed", actor: { kind: "anonymous", name: null } },
    { action: "signout", actor: { kind: "admin", name: "reader" } },
    { action: "signin", actor: { kind: "admin", name: "reader" } },
  ]);
  expect(body.entries[0]?.address).toBe("203.0.113.99");
  expect(JSON.stringify(body)).not.toContain(key("reader"));
});

describe("acting as a user", () => {
  let ann: SignedIn;
  let bob: SignedIn;
  beforeAll(async () => {
    [ann, bob] = [await signIn(platform), await signIn(platform)];
    for (const user of [ann, bob]) {
      await platform.as(user.token).post(NOTES, { text: "mine", owner: user.id });
    }
  });
  const actingAs = (target: string) => ({ headers: { "x-platform-act-as": target } });
  const notes = async (options: { headers: Record<string, string> }) =>
    (await platform.service.get<{ items: { owner: string }[]; total: number }>(NOTES, options)).body;

  test("[AD9] gives the answers that this user would get, with the role of now", async () => {
    const seen = await notes(actingAs(ann.id));
    expect(seen.items.map(({ owner }) => owner)).toEqual([ann.id]);
    expect(seen.total).toBe(1);
    const mine = seen.items[0] as unknown as { id: string };
    const asAnn = actingAs(ann.id);
    expect((await platform.service.patch(`${NOTES}/${mine.id}`, { text: "x" }, asAnn)).status).toBe(403);
    await platform.service.patch(`/api/auth/admin/users/${ann.id}`, { role: "editor" });
    expect((await platform.service.patch(`${NOTES}/${mine.id}`, { text: "x" }, asAnn)).status).toBe(200);
    // What a user may not do, who acts as them may not either.
    expect((await platform.service.post(NOTES, { owner: bob.id }, asAnn)).status).toBe(403);
    expect((await platform.service.get("/api/auth/admin/users", asAnn)).status).toBe(401);
    expect((await platform.service.get("/api/auth/me", asAnn)).body["user"]).toMatchObject({ id: ann.id });
  });

  test("[AD9] gives the answers that nobody would get", async () => {
    expect((await platform.service.get(NOTES, actingAs("anonymous"))).status).toBe(401);
    expect((await platform.service.get(OPEN, actingAs("anonymous"))).status).toBe(200);
    expect((await platform.service.get("/api/auth/me", actingAs("anonymous"))).status).toBe(401);
  });

  test("[AD9] does not change the user's account", async () => {
    const as = actingAs(bob.id);
    const { service } = platform;
    const answers = [
      await service.post("/api/auth/password/change", { currentPassword: "x", newPassword: "y" }, as),
      await service.post("/api/auth/signout", undefined, as),
      await service.delete("/api/auth/me", { password: "x" }, as),
      await service.delete("/api/auth/sessions", undefined, as),
    ];
    expect(answers.map(({ status }) => status).filter((status) => status < 400)).toEqual([]);
    expect((await platform.as(bob.token).get("/api/auth/me")).status).toBe(200);
  });

  test("[AD10] is for the root key and its session alone", async () => {
    const root = await createAdministrator(platform, SERVICE_KEY);
    const full = await createAdministrator(platform, key("full"));
    const headers = { "x-platform-act-as": ann.id };
    expect((await root.get("/api/auth/me", { headers })).body["user"]).toMatchObject({ id: ann.id });
    expect((await full.get(NOTES, { headers })).status).toBe(403);
    expect((await platform.withKey(key("full")).get(NOTES, { headers })).status).toBe(403);
    expect((await platform.as(bob.token).get(NOTES, { headers })).status).toBe(403);
    expect((await platform.as(ann.token).get(NOTES, { headers })).status).toBe(403);
    expect((await platform.get(OPEN, { headers })).status).toBe(401);
    expect((await platform.withKey("wrong").get(OPEN, { headers })).status).toBe(401);
    for (const nobody of ["", "nobody", "ANONYMOUS", "%00", `${ann.id} `.repeat(2)]) {
      expect((await platform.service.get(OPEN, actingAs(nobody))).status).toBe(404);
    }
  });
});
