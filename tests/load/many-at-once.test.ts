import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { path, randomBytes, until, upload } from "../http/storage/storage-support.ts";
import { type ListAnswer, type TestPlatform, testPlatform } from "../support/index.ts";

const CONFIG = `{
  databases: { shared: { tables: { notes: { schema: { n: { type: "integer" } }, access: { read: true } } } } },
  storage: { buckets: { files: { access: { read: true } } } },
  kv: { cache: {} },
  auth: { anonymous: true },
}`;
const MIB = 1024 * 1024;
const CONNECTIONS_WANTED = 5_000;
/** Below the number of connections of one address that may be unauthenticated at once. */
const OPENED_AT_ONCE = 40;
/** Number of descriptors that a process has open beside the connections. */
const OTHER_DESCRIPTORS = 500;
/** On a machine that does much else. */
const PATIENCE_MS = 25_000;
const REQUESTS = 1_000;
const READERS = 40;
const FILE_BYTES = 32 * MIB;
const MEMORY_MAX_MIB = 100;
const isLinux = process.platform === "linux";

/** Returns the limit of descriptors of this process, which the server inherits. */
function descriptorsMax(): number {
  if (!isLinux) return CONNECTIONS_WANTED + OTHER_DESCRIPTORS;
  return Number(/Max open files\s+(\d+)/.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? 1_024);
}
const connections = Math.min(CONNECTIONS_WANTED, descriptorsMax() - OTHER_DESCRIPTORS);
if (connections < CONNECTIONS_WANTED) {
  console.warn(`${connections} connections are tested, not ${CONNECTIONS_WANTED}: ulimit -n allows no more`);
}

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform.stop());

test(`[HT33] ${REQUESTS} requests at once are all answered, each with its own answer`, async () => {
  const notes = "/api/db/shared/tables/notes";
  const numbers = Array.from({ length: REQUESTS }, (_, n) => n);
  const answers = await Promise.all(
    numbers.map(async (n) => {
      if (n % 4 === 3) return platform.service.post("/api/kv/cache", { action: "set", key: `k${n}`, value: n });
      return platform.service.post(notes, { id: `n${n}`, n });
    }),
  );
  for (const [n, { status, body }] of answers.entries()) {
    if (n % 4 === 3) expect([n, status, body]).toEqual([n, 200, { ok: true } as JsonObject]);
    else expect([n, status, body["id"], body["n"]]).toEqual([n, 201, `n${n}`, n]);
  }
  const read = await Promise.all(
    numbers.map(async (n) => {
      if (n % 4 === 3)
        return (await platform.service.post("/api/kv/cache", { action: "get", key: `k${n}` })).body["value"];
      return (await platform.get(`${notes}/n${n}`)).body["n"];
    }),
  );
  expect(read).toEqual(numbers);
  expect((await platform.get<ListAnswer>(notes, { query: { limit: 1 } })).body.total).toBe((REQUESTS * 3) / 4);
});

test(`[HT33] ${connections} WebSockets at once: each receives a change, and none leaves anything behind`, async () => {
  const { body } = await platform.post("/api/auth/signin/anonymous");
  const hello = [
    { type: "auth", token: String(body["accessToken"]) },
    { type: "subscribe", channel: "realtime:shared:notes" },
  ].map((message) => JSON.stringify(message));
  const sockets: WebSocket[] = [];
  let changes = 0;
  const open = async () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const socket = new WebSocket(`${platform.wsUrl}/api/realtime`);
    sockets.push(socket);
    socket.onopen = () => {
      for (const message of hello) socket.send(message);
    };
    socket.onerror = () => reject(new Error("a connection was refused"));
    socket.onmessage = ({ data }) => {
      if (String(data).includes('"type":"subscribed"')) resolve();
      if (String(data).includes('"type":"db_change"')) changes++;
    };
    return promise;
  };
  for (let opened = 0; opened < connections; opened += OPENED_AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(OPENED_AT_ONCE, connections - opened) }, open));
  }
  const hears = async (id: string) => {
    changes = 0;
    expect((await platform.service.post("/api/db/shared/tables/notes", { id, n: 1 })).status).toBe(201);
    await until("everybody has heard", () => changes === connections, PATIENCE_MS);
  };
  await hears("told-1");
  expect((await platform.get("/api/health")).status).toBe(200);
  await hears("told-2");
  for (const socket of sockets) socket.terminate();
  if (isLinux)
    await until("the server has let go of them", () => descriptors(platform) < OTHER_DESCRIPTORS, PATIENCE_MS);
});

const descriptors = ({ process: { pid } }: TestPlatform): number =>
  new Set(new Bun.Glob("*").scanSync({ cwd: `/proc/${pid}/fd`, onlyFiles: false, dot: true })).size;

const residentMib = ({ process: { pid } }: TestPlatform): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

describe.if(isLinux)("readers", () => {
  test(`[HT34] ${READERS} downloads whose readers stop take little memory, and delay nobody`, async () => {
    expect((await upload(platform.service, "files", "large", randomBytes(FILE_BYTES))).status).toBe(201);
    const url = new URL(platform.url);
    const before = residentMib(platform);
    const sockets = Array.from({ length: READERS }, (): Socket => {
      const socket = connect(Number(url.port), url.hostname);
      socket.write(`GET ${path("files", "large")} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
      socket.once("data", () => socket.pause());
      return socket;
    });
    await until("every download has begun", () => sockets.every(({ bytesRead }) => bytesRead > 0), PATIENCE_MS);
    const answer = await platform.fetch(path("files", "large"));
    expect((await answer.arrayBuffer()).byteLength).toBe(FILE_BYTES);
    expect(residentMib(platform) - before).toBeLessThan(MEMORY_MAX_MIB);
    for (const socket of sockets) socket.destroy();
    await until("the server has let go of them", () => descriptors(platform) < OTHER_DESCRIPTORS, PATIENCE_MS);
    expect((await platform.get("/api/health")).status).toBe(200);
  });
});
