import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  createAdministrator,
  type ErrorAnswer,
  openSocket,
  SERVICE_KEY,
  type TestPlatform,
  testPlatform,
  until,
} from "../../support/index.ts";

const key = (name: string) => `${name}-key-0123456789abcdefghijklmnopqrstuv`;
const CONFIG = `{
  kv: { cache: {} },
  server: { trustProxy: true },
  rateLimits: { auth: { requests: 100000, window: 60 } },
  serviceKeys: {
    reader: { key: "${key("reader")}", scopes: ["kv:namespace:cache:read"] },
    office: { key: "${key("office")}", ips: ["10.0.0.0/8"] },
  },
}`;
const SESSION = "/api/admin/session";
const TICKET = "/api/admin/socket-ticket";
const BACKUPS = "/api/admin/backups";
/** Number of sessions that a key has at once. */
const MOST = 100;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

const from = (address: string) => ({ "x-forwarded-for": address });

interface Entry {
  actor: { name: string | null };
  action: string;
  after: { reason?: string } | null;
}

test("[AD12] a key that opens more sessions than it may ends its own, not those of others, and the audit log has them", async () => {
  const root = await createAdministrator(platform, SERVICE_KEY);
  const oldest = await createAdministrator(platform, key("reader"));
  for (let count = 0; count < MOST; count++) await createAdministrator(platform, key("reader"));
  expect((await root.get(SESSION)).status).toBe(200);
  expect((await oldest.get(SESSION)).status).toBe(401);
  const { body } = await platform.service.get<{ entries: Entry[] }>("/api/admin/audit?action=signout");
  expect(body.entries.map(({ actor, after }) => [actor.name, after?.reason])).toEqual([["reader", "displaced"]]);
});

async function authenticated(ticket: string, address: string): Promise<unknown> {
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`, from(address));
  socket.send({ type: "auth", token: ticket });
  const { type } = await socket.next();
  socket.terminate();
  return type;
}

test("[AD13] a key that gets more tickets than it may ends its own, not those of others", async () => {
  const ticket = async (name: string) => (await platform.withKey(name).post<{ ticket: string }>(TICKET)).body.ticket;
  const ofRoot = await ticket(SERVICE_KEY);
  const first = await ticket(key("reader"));
  for (let count = 0; count < MOST; count++) await ticket(key("reader"));
  expect(await authenticated(ofRoot, "192.0.2.1")).toBe("auth_success");
  expect(await authenticated(first, "192.0.2.1")).toBe("auth_error");
});

test("[AC112] the addresses of a key hold for its socket tickets and its links to backups", async () => {
  const office = { ...from("10.1.2.3"), "x-platform-service-key": key("office") };
  const ticket = async () =>
    (await platform.post<{ ticket: string }>(TICKET, undefined, { headers: office })).body.ticket;
  expect(await authenticated(await ticket(), "192.0.2.1")).toBe("auth_error");
  expect(await authenticated(await ticket(), "10.9.9.9")).toBe("auth_success");

  expect((await platform.service.post(BACKUPS)).status).toBe(202);
  let name = "";
  await until("the backup is made", async () => {
    const { body } = await platform.service.get<{ backups: { name: string }[] }>(BACKUPS);
    name = body.backups[0]?.name ?? "";
    return name !== "";
  });
  const link = async () =>
    (await platform.post<{ path: string }>(`${BACKUPS}/${name}/link`, undefined, { headers: office })).body.path;
  const statusFrom = async (address: string, method: string) =>
    (await platform.fetch(await link(), { method, headers: from(address) })).status;
  expect([await statusFrom("192.0.2.1", "HEAD"), await statusFrom("192.0.2.1", "GET")]).toEqual([403, 403]);
  expect([await statusFrom("10.9.9.9", "HEAD"), await statusFrom("10.9.9.9", "GET")]).toEqual([200, 200]);
});

test("[AC113] an IPv4 address is read from IPv6 in one way", async () => {
  const statusFrom = async (address: string) =>
    (
      await platform.get("/api/admin/session", {
        headers: { ...from(address), "x-platform-service-key": key("office") },
      })
    ).status;
  const answers: [string, number][] = [];
  for (const address of [
    "10.1.2.3",
    "::ffff:10.1.2.3",
    "::ffff:a01:203",
    "::10.1.2.3",
    "::a01:203",
    "64:ff9b::a01:203",
  ]) {
    answers.push([address, await statusFrom(address)]);
  }
  expect(answers).toEqual([
    ["10.1.2.3", 200],
    ["::ffff:10.1.2.3", 200],
    ["::ffff:a01:203", 200],
    ["::10.1.2.3", 403],
    ["::a01:203", 403],
    ["64:ff9b::a01:203", 403],
  ]);
});

test("[AD16] a cookie that somebody has planted locks no administrator out", async () => {
  const administrator = await createAdministrator(platform, SERVICE_KEY);
  const [name] = administrator.cookie.split("=");
  const cookie = `${name}=planted; ${name}=${"x".repeat(43)}; ${administrator.cookie}`;
  const headers = { cookie, "x-platform-admin": "1" };
  expect((await platform.get(SESSION, { headers })).status).toBe(200);
  // All that were shown end.
  const ended = await platform.delete(SESSION, undefined, { headers });
  expect(ended.status).toBe(204);
  expect((await administrator.get(SESSION)).status).toBe(401);
});

test("[AD16] where browsers reach the server by https, no other cookie than one with the prefix __Host- counts", async () => {
  const https = await testPlatform({ config: { server: { publicUrl: "https://api.example.com" } } });
  try {
    const { headers } = await https.post(SESSION, { key: SERVICE_KEY });
    const [pair = "", ...attributes] = (headers.get("set-cookie") ?? "").split("; ");
    expect(pair).toMatch(/^__Host-platform_admin_[0-9a-f]{8}=[\w-]{43}$/);
    expect(attributes.sort()).toEqual(["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict", "Secure"]);
    const statusWith = async (cookie: string) =>
      (await https.get(SESSION, { headers: { cookie, "x-platform-admin": "1" } })).status;
    expect(await statusWith(pair)).toBe(200);
    expect(await statusWith(pair.replace("__Host-", ""))).toBe(401);
  } finally {
    await https.stop();
  }
});

test("[AD17] guesses at a key by GET count as those of a sign-in do, and brake no session", async () => {
  const address = "198.51.100.7";
  const administrator = await createAdministrator(platform, SERVICE_KEY);
  const guess = async (text: string) =>
    (await platform.get<ErrorAnswer>(SESSION, { headers: { ...from(address), "x-platform-service-key": text } }))
      .status;
  for (let count = 0; count < 5; count++) expect(await guess("wrong")).toBe(401);
  expect([await guess("wrong"), await guess(SERVICE_KEY)]).toEqual([429, 429]);
  expect((await platform.post(SESSION, { key: SERVICE_KEY }, { headers: from(address) })).status).toBe(429);
  const headers = { ...from(address), cookie: administrator.cookie, "x-platform-admin": "1" };
  expect((await platform.get(SESSION, { headers })).status).toBe(200);
  expect((await platform.service.get(SESSION)).status).toBe(200);
});
