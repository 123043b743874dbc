import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { openSocket, type TestPlatform, type TestSocket, testPlatform } from "../support/index.ts";

/** Few, but more than a server needs to start. */
const LIMIT = 256;
const INSTANCES = 300;
const AT_ONCE = 20;
/** About as many instance files may be open at this limit. */
const FILES = 11;

describe.if(process.platform !== "win32")("a process that may open few files", () => {
  let platform: TestPlatform;
  const line = (tenant: number) => platform.service.post(`/api/db/tenants/t${tenant}/tables/lines`, { n: tenant });
  const lines = (tenant: number) => platform.service.get(`/api/db/tenants/t${tenant}/tables/lines`);
  const set = (key: string) => platform.service.post("/api/kv/cache", { action: "set", key, value: 1 });

  beforeAll(async () => {
    platform = await testPlatform({
      config: `{
        databases: {
          tenants: { instance: true, tables: { lines: {} } },
          shared: { tables: { notes: {} } },
        },
        kv: { cache: {} },
        server: { trustProxy: true },
        realtime: { authTimeout: 60000 },
      }`,
      descriptorLimit: LIMIT,
    });
  });
  afterAll(async () => {
    expect(await platform.stop()).toBe(0);
  });

  test("[DB104] the start says that the limit is low", () => {
    expect(platform.stderr()).toContain(`this process may open ${LIMIT} files`);
  });

  test("[DB104] creates and reads more instances than it can keep open", async () => {
    const numbers = Array.from({ length: INSTANCES }, (_, n) => n);
    for (const ask of [line, lines]) {
      for (let first = 0; first < INSTANCES; first += AT_ONCE) {
        const answers = await Promise.all(numbers.slice(first, first + AT_ONCE).map(ask));
        // Also while every file that may be open is in use until the audit log has its entries.
        for (const { status } of answers) expect(status).toBe(ask === line ? 201 : 200);
      }
    }
    for (const tenant of [0, 150, INSTANCES - 1]) expect((await lines(tenant)).body).toMatchObject({ total: 1 });
    expect(platform.stderr()).not.toContain("EMFILE");
  });

  test("[DB104] a read waits while all files that may be open are in use by writes", async () => {
    const at = (first: number) => Array.from({ length: FILES }, (_, n) => first + n);
    for (let first = 0; first < INSTANCES / 2 - FILES; first += FILES) {
      // The files stay in use until the audit log has the entries of the writes.
      const answers = await Promise.all([...at(first).map(line), ...at(first + INSTANCES / 2).map(lines)]);
      expect(answers.map(({ status }) => status)).toEqual([...at(0).map(() => 201), ...at(0).map(() => 200)]);
    }
  });

  test("[DB103] with no file descriptor left, open files are written and read, and everything works again once there are some", async () => {
    const { hostname, port } = new URL(platform.url);
    expect((await set("before")).status).toBe(200);
    const idle: Socket[] = [];
    for (let n = 0; n < LIMIT; n += 1) idle.push(connect(Number(port), hostname).on("error", () => {}));
    await Bun.sleep(500);
    // On the connection that is open already.
    const keys = ["a", "b", "c"];
    for (const key of keys) expect([key, (await set(key)).status]).toEqual([key, 200]);
    expect((await platform.service.post("/api/db/shared/tables/notes", { text: "x" })).status).toBe(201);
    for (let n = 0; n < 10; n += 1) expect([200, 201, 503]).toContain((await line(INSTANCES + n)).status);
    for (const socket of idle) socket.destroy();
    await Bun.sleep(1_500);
    for (const key of keys) expect((await set(key)).status).toBe(200);
    for (let n = 0; n < 10; n += 1) expect((await line(INSTANCES + n)).status).toBe(201);
    expect(platform.stderr()).not.toContain("until the server has been restarted");
  });

  test("[DB104] WebSockets take half of the descriptors at most: a further upgrade is 503", async () => {
    const sockets: TestSocket[] = [];
    const open = (n: number) => openSocket(`${platform.wsUrl}/api/realtime`, { "x-forwarded-for": `10.0.0.${n}` });
    for (let n = 0; n < LIMIT / 2; n += 1) sockets.push(await open(n));
    const refused = await platform.fetch("/api/realtime", {
      headers: {
        ...{ connection: "Upgrade", upgrade: "websocket", "x-forwarded-for": "10.0.1.1" },
        ...{ "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" },
      },
    });
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ message: "Too many WebSockets are open (at most 128)" });
    await Promise.all(sockets.map((socket) => socket.close()));
    await (await open(1)).close();
  });
});

describe.if(process.platform !== "win32")("a process that may open hardly more files than a server needs", () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await testPlatform({
      config: `{ databases: { tenants: { instance: true, tables: { lines: {} } } } }`,
      descriptorLimit: 64,
    });
  });
  afterAll(async () => {
    expect(await platform.stop()).toBe(0);
  });

  test("[DB355] answers 503 where a file of an instance or of the platform cannot be opened, and never 500", async () => {
    const { hostname, port } = new URL(platform.url);
    // Opens the connection that all that follows is asked on.
    expect((await platform.service.get("/api/admin/backups")).status).toBe(200);
    const idle = Array.from({ length: 64 }, () => connect(Number(port), hostname).on("error", () => {}));
    await Bun.sleep(500);
    const statuses = new Set<number>();
    for (let tenant = 0; tenant < 5; tenant += 1) {
      statuses.add((await platform.service.post(`/api/db/tenants/t${tenant}/tables/lines`, {})).status);
      statuses.add((await platform.service.post("/api/admin/backups")).status);
    }
    for (const socket of idle) socket.destroy();
    expect([...statuses].filter((status) => ![201, 202, 409, 503].includes(status))).toEqual([]);
  });
});
