import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, renameSync, rmSync } from "node:fs";
import { openSocket, type TestPlatform, testPlatform, until } from "../../support/index.ts";

const READER_KEY = "system-reader-key-0123456789abcdefghijklm";
const OTHER_KEY = "key-value-only-key-0123456789abcdefghijk";

interface Health {
  status: string;
  checks: Record<string, { ok: boolean } & Record<string, unknown>>;
}

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      databases: { shared: { tables: { notes: {} } } },
      jobs: { fail: { retries: 0, run() { throw new Error("no"); } } },
      backups: { schedule: "0 3 * * *", keep: 2, to: { folder: "./backups" } },
      serviceKeys: {
        reader: { key: "${READER_KEY}", scopes: ["system:*:*:read"] },
        other: { key: "${OTHER_KEY}", scopes: ["kv:namespace:*:read"] },
      },
    }`,
  });
});
afterAll(() => platform.stop());

test("[SY10] the checks have figures of disk, syncs, files, backups and jobs", async () => {
  await platform.service.post("/api/db/shared/tables/notes", { text: "synced" });
  const { status, body } = await platform.withKey(READER_KEY).get<Health>("/api/health?full");
  expect(status).toBe(200);
  expect(body).toEqual({
    status: "ok",
    version: expect.any(String),
    uptime: expect.any(Number),
    drill: false,
    checks: expect.objectContaining({
      disk: { ok: true, freeBytes: expect.any(Number) },
      sync: { ok: true, lastAt: expect.any(String), lastMs: expect.any(Number) },
      files: expect.objectContaining({ ok: true, walBytes: expect.any(Number) }),
      backup: { ok: true, lastAt: null, verifiedAt: null },
      jobs: { ok: true, waiting: expect.any(Number), failed: 0 },
    }),
  } as never);
  const { sync, files, disk } = body.checks;
  expect(Math.abs(Date.parse(String(sync?.["lastAt"])) - Date.now())).toBeLessThan(600_000);
  expect(Number(files?.["count"])).toBeGreaterThanOrEqual(3);
  expect(Number(files?.["bytes"])).toBeGreaterThan(Number(files?.["walBytes"]));
  expect(Number(disk?.["freeBytes"])).toBeGreaterThan(64 * 1024 * 1024);
});

test("[SY380] the processes are among the checks and metrics: one without workers", async () => {
  const reader = platform.withKey(READER_KEY);
  const { checks } = (await reader.get<Health>("/api/health?full")).body;
  expect(checks["processes"]).toEqual([
    {
      pid: platform.process.pid,
      role: "main",
      requests: expect.any(Number),
      memory: expect.any(Number),
      loopMs: expect.any(Number),
    },
  ] as never);
  const metrics = await (await reader.fetch("/metrics")).text();
  for (const name of ["requests_total", "memory_bytes", "loop_delay_seconds"]) {
    expect(metrics).toMatch(
      new RegExp(`^platform_process_${name}\\{pid="${platform.process.pid}",role="main"\\} \\d`, "m"),
    );
  }
});

test("[SY361] open sockets and the memory of the process are among the checks", async () => {
  const { checks } = (await platform.withKey(READER_KEY).get<Health>("/api/health?full")).body;
  expect(checks["sockets"]).toEqual({ ok: true, realtime: 0, rooms: 0 });
  expect(Number(checks["memory"]?.["residentBytes"])).toBeGreaterThan(10_000_000);
  // A report is kept for a second.
  const socket = await openSocket(`${platform.url.replace("http", "ws")}/api/realtime`);
  await until("the socket is counted", async () => {
    const { body } = await platform.withKey(READER_KEY).get<Health>("/api/health?full");
    return body.checks["sockets"]?.["realtime"] === 1;
  });
  await socket.close();
});

test("[SY10] the checks are for service keys with the scope; without `full`, credentials are not looked at", async () => {
  for (const form of ["?full", "?full=true", "?full=1"]) {
    expect((await platform.get(`/api/health${form}`)).status).toBe(401);
    expect((await platform.withKey(OTHER_KEY).get(`/api/health${form}`)).status).toBe(403);
    expect((await platform.withKey(READER_KEY).get<Health>(`/api/health${form}`)).body.checks["disk"]?.ok).toBe(true);
  }
  expect((await platform.withKey("a key that is wrong 0123456789").get("/api/health?full")).status).toBe(401);
  const plain = await platform.withKey("a key that is wrong 0123456789").get("/api/health");
  expect([plain.status, plain.body]).toEqual([200, expect.not.objectContaining({ checks: expect.anything() })]);
  expect((await platform.service.get("/api/health?full=maybe")).status).toBe(400);
  expect((await platform.get("/api/health?fully")).status).toBe(400);
});

test("[SY11] a data directory that is moved or replaced while the server runs makes it unavailable", async () => {
  const moved = await testPlatform({ config: { databases: { shared: { tables: { notes: {} } } } } });
  const { dataDirectory } = moved;
  const elsewhere = `${dataDirectory}-elsewhere`;
  const isStatus = (status: number) => async () => {
    const answer = await moved.service.get<Health>("/api/health?full");
    return answer.status === status && answer.body.checks["files"]?.["inPlace"] === (status === 200);
  };
  expect(await isStatus(200)()).toBe(true);
  cpSync(dataDirectory, `${dataDirectory}-copy`, { recursive: true });
  renameSync(dataDirectory, elsewhere);
  renameSync(`${dataDirectory}-copy`, dataDirectory);
  await until("another one is there", isStatus(503));
  rmSync(dataDirectory, { recursive: true });
  renameSync(elsewhere, dataDirectory);
  await until("it is back", isStatus(200));
  await moved.stop();
});

test("[SY10] guesses of the key are limited by address", async () => {
  const limited = await testPlatform({ config: `{ rateLimits: { global: { requests: 3, window: 60 } } }` });
  const guess = () => limited.withKey("a key that is wrong 0123456789").get("/api/health?full");
  expect([(await guess()).status, (await guess()).status, (await guess()).status]).toEqual([401, 401, 401]);
  expect((await guess()).status).toBe(429);
  await limited.stop();
});
