import { afterAll, beforeAll, expect, test } from "bun:test";
import { maskedFrame } from "../../support/frames.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { connectTo } from "../../support/tls/connect.ts";
import { connect, subscribe } from "../../ws/realtime/realtime-support.ts";

const T = "/api/db/shared/tables";
/** A new connection for each request: the system spreads connections over the processes. */
const ALONE = { headers: { connection: "close" } };
const ROUNDS = 1_000;
const SCOPED_KEY = "scoped-key-0123456789abcdefghijklmnopqrstuv";
const FAR_KEY = "far-key-0123456789abcdefghijklmnopqrstuvwx";

interface Process {
  pid: number;
  role: string;
  requests: number;
  memory: number;
  loopMs: number;
}

const CONFIG = `const gate = { isOpen: false };
export default {
  server: { workers: 2 },
  serviceKeys: {
    scoped: { key: "${SCOPED_KEY}", scopes: ["db:shared:notes:read"] },
    far: { key: "${FAR_KEY}", ips: ["192.0.2.0/24"] },
  },
  rateLimits: { auth: { requests: 100_000, window: 60 }, signin: { requests: 100_000, window: 60 } },
  databases: { shared: { tables: {
    notes: { schema: { text: { type: "string" }, n: { type: "integer" } }, access: { read: true, insert: true, update: true, delete: true } },
    members: { schema: { userId: { type: "string" } }, indexes: [{ fields: ["userId"] }] },
    secrets: {
      schema: { text: { type: "string" } },
      access: { read: (auth, _record, { table }) => auth !== null && table("members").exists([["userId", "==", auth.id]]) },
    },
    gated: { access: { read: async () => { while (!gate.isOpen) await Bun.sleep(5); return true; } } },
    caught: { access: { read: (auth, _record, { db }) => { try { return db("rooms", "a").table("keys").get("open") !== null; } catch { return true; } } } },
  } }, rooms: { instance: true, tables: { keys: { access: { read: true, insert: true } } } } },
  storage: { buckets: { files: { access: { read: true, write: true } } } },
  routes: (api) => api
    .post("/echo", async ({ request, address }) => ({ address, headers: Object.fromEntries(request.headers), text: await request.text() }), { access: true, parse: "none" })
    .post("/gate", () => { gate.isOpen = true; return "open"; }, { access: true })
    .ws("/echo", { access: true, open(ws) { ws.subscribe("all"); }, message(ws, text) { ws.publish("all", text); ws.send(text); } })
    .get("/slow", async () => { await Bun.sleep(15_000); return "slow"; }, { access: true }),
};`;

let platform: TestPlatform;
let user: SignedIn;
let other: SignedIn;

beforeAll(async () => {
  platform = await testPlatform({
    config: CONFIG,
  });
  [user, other] = [await signIn(platform), await signIn(platform)];
});
afterAll(() => platform.stop());

async function processes(): Promise<Process[]> {
  const { body } = await platform.service.get<{ checks: { processes: Process[] } }>("/api/health?full");
  return body.checks.processes;
}

test("[WK1] [WK50] the processes are in the health, and each answers its share of the reads", async () => {
  const before = new Map((await processes()).map(({ pid, requests }) => [pid, requests]));
  expect(before.size).toBe(3);
  const reads = 600;
  for (let n = 0; n < reads; n++) expect((await platform.get(`${T}/notes?limit=1`, ALONE)).status).toBe(200);
  const shares = async () => (await processes()).map(({ pid, requests }) => requests - (before.get(pid) ?? 0));
  await until("each process has answered a fifth", async () => (await shares()).every((share) => share > reads / 5));
  const [main, ...workers] = await processes();
  expect(main).toEqual({
    pid: platform.process.pid,
    role: "main",
    requests: expect.any(Number),
    memory: expect.any(Number),
    loopMs: expect.any(Number),
  });
  expect(workers.map(({ role }) => role)).toEqual(["worker", "worker"]);
  expect(workers.every(({ memory }) => memory > 10_000_000)).toBe(true);
});

test("[WK23] requests are counted once, whoever answers them", async () => {
  // A server of its own: answers of other tests are counted later than they are given.
  const own = await testPlatform({ config: CONFIG });
  const counted = async (): Promise<number> => {
    const text = await (await own.service.fetch("/metrics")).text();
    return Number(/^platform_http_requests_total\{area="db",method="GET",status="2xx"\} (\d+)$/m.exec(text)?.[1] ?? 0);
  };
  for (let n = 0; n < 60; n++) await own.get(`${T}/notes?limit=1&offset=${n}`, ALONE);
  await until("all are counted", async () => (await counted()) >= 60);
  await Bun.sleep(500);
  expect(await counted()).toBe(60);
  await own.stop();
});

test("[WK10] a write that was answered is in every later answer, on any connection", async () => {
  for (let n = 1; n <= ROUNDS; n++) {
    const made = await platform.post<{ id: string }>(`${T}/notes`, { text: "new", n }, ALONE);
    expect(made.status).toBe(201);
    const [one, list, count] = await Promise.all([
      platform.get(`${T}/notes/${made.body.id}`, ALONE),
      platform.get<{ items: unknown[] }>(
        `${T}/notes?filter=${encodeURIComponent(`[["n","==",${n}]]`)}&total=false`,
        ALONE,
      ),
      platform.get<{ total: number }>(`${T}/notes/count`, ALONE),
    ]);
    expect([one.status, list.body.items.length, count.body.total]).toEqual([200, 1, n]);
  }
}, 120_000);

test("[WK11] a right that was taken away is not used by any process once that is answered", async () => {
  expect((await platform.service.post(`${T}/secrets`, { id: "s", text: "secret" })).status).toBe(201);
  for (let round = 0; round < ROUNDS / 4; round++) {
    const { id } = (await platform.service.post<{ id: string }>(`${T}/members`, { userId: user.id })).body;
    const allowed = await Promise.all([1, 2, 3].map(() => user.get(`${T}/secrets/s`, ALONE)));
    expect(allowed.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await platform.service.delete(`${T}/members/${id}`)).status).toBe(200);
    const refused = await Promise.all([1, 2, 3].map(() => user.get(`${T}/secrets/s`, ALONE)));
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403]);
  }
}, 120_000);

test("[WK11] a session that has ended is not used by any process once that is answered", async () => {
  for (let round = 0; round < 60; round++) {
    const { accessToken, refreshToken } = (
      await platform.post<{ accessToken: string; refreshToken: string }>("/api/auth/refresh", {
        refreshToken: other.refreshToken,
      })
    ).body;
    other = { ...other, refreshToken };
    const session = platform.as(accessToken);
    const allowed = await Promise.all([1, 2, 3, 4].map(() => session.get(`${T}/notes?limit=1`, ALONE)));
    expect(allowed.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await platform.service.post(`/api/auth/admin/users/${other.id}/revoke`)).status).toBe(200);
    const refused = await Promise.all([1, 2, 3, 4].map(() => session.get(`${T}/notes?limit=1`, ALONE)));
    expect(refused.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
    const again = await platform.post<{ refreshToken: string }>("/api/auth/signin", {
      email: other.email,
      password: other.password,
    });
    other = { ...other, refreshToken: again.body.refreshToken };
  }
}, 120_000);

test("[WK3] service keys read in every process, as far as their scopes and addresses allow", async () => {
  const before = new Map((await processes()).map(({ pid, requests }) => [pid, requests]));
  await platform.service.post(`${T}/secrets`, { id: "for-keys", text: "kept" });
  for (let n = 0; n < 120; n++) {
    expect((await platform.service.get(`${T}/secrets/for-keys`, ALONE)).body).toMatchObject({ text: "kept" });
    expect((await platform.withKey(SCOPED_KEY).get(`${T}/notes?limit=1`, ALONE)).status).toBe(200);
    expect((await platform.withKey(SCOPED_KEY).get(`${T}/secrets/for-keys`, ALONE)).status).toBe(403);
    expect((await platform.withKey(FAR_KEY).get(`${T}/notes?limit=1`, ALONE)).status).toBe(403);
    expect((await platform.withKey("unknown").get(`${T}/notes?limit=1`, ALONE)).status).toBe(401);
  }
  const shares = async () => (await processes()).map(({ pid, requests }) => requests - (before.get(pid) ?? 0));
  await until("each process has answered", async () => (await shares()).every((share) => share > 240 / 5));
});

test("[WK12] what a rule waits for is the main process's, as is its answer", async () => {
  const answers = Array.from({ length: 8 }, () => user.get(`${T}/gated?limit=1`, ALONE));
  await platform.post("/api/functions/gate");
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200));
});

test("[WK3] what a rule cannot see in a worker is not decided there, also where the rule catches the error", async () => {
  for (let n = 0; n < 20; n++) expect((await user.get(`${T}/caught?limit=1`, ALONE)).status).toBe(403);
});

test("[WK20] a forwarded request is the client's: address, headers, body and answer", async () => {
  for (let n = 0; n < 30; n++) {
    const response = await fetch(`${platform.url}/api/functions/echo`, {
      method: "POST",
      body: "x".repeat(200_000),
      headers: { connection: "close", "x-platform-worker": "forged", "content-type": "text/plain" },
    });
    const { address, headers, text } = (await response.json()) as {
      address: string;
      headers: Record<string, string>;
      text: string;
    };
    expect([response.status, address, text.length]).toEqual([200, "127.0.0.1", 200_000]);
    expect(headers["x-platform-worker"] ?? "forged").toBe("forged");
    expect(headers["host"]).toBe(new URL(platform.url).host);
  }
});

test("[WK20] an answer may take as long as elsewhere", async () => {
  const answers = await Promise.all(
    Array.from({ length: 6 }, async () => (await platform.fetch("/api/functions/slow", ALONE)).text()),
  );
  expect(answers).toEqual(Array(6).fill("slow"));
}, 30_000);

test("[WK20] large files pass through workers whole, both ways", async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(65_536));
  const large = new Blob(Array.from({ length: 64 }, () => bytes));
  const hash = Bun.SHA256.hash(await large.arrayBuffer(), "hex");
  for (let n = 0; n < 12; n++) {
    const form = new FormData();
    form.append("key", `large-${n}`);
    form.append("file", large, "large.bin");
    const sent = await user.fetch("/api/storage/files/upload", { method: "POST", body: form, ...ALONE });
    expect(sent.status).toBe(201);
    const got = await platform.fetch(`/api/storage/files/large-${n}`, ALONE);
    expect(Bun.SHA256.hash(await got.arrayBuffer(), "hex")).toBe(hash);
  }
});

test("[WK21] a WebSocket works through any process, with the codes of both ends", async () => {
  const sockets = await Promise.all(Array.from({ length: 24 }, () => connect(platform, user)));
  for (const socket of sockets) await subscribe(socket, "realtime:shared:notes");
  expect((await platform.post(`${T}/notes`, { id: "told", text: "to all" })).status).toBe(201);
  for (const socket of sockets) await socket.expect({ type: "db_change", docId: "told", changeType: "added" });
  const [first, ...rest] = sockets;
  await first?.close(4010, "enough");
  expect((await platform.service.post(`/api/auth/admin/users/${user.id}/revoke`)).status).toBe(200);
  for (const { code } of await Promise.all(rest.map(({ closed }) => closed))) expect(code).toBe(4003);
});

test("[WK22] clients that do not read are closed behind what they were sent, through any process", async () => {
  const upgrade = ["GET /api/realtime HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"];
  const key = ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];
  const person = await signIn(platform);
  const reader = await connect(platform, person);
  await subscribe(reader, "presence:slow");
  await reader.next();
  const slow = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const socket = connectTo(platform.url);
      socket.write(`${[...upgrade, ...key].join("\r\n")}\r\n\r\n`);
      await new Promise((resolve) => socket.once("data", resolve));
      socket.write(maskedFrame(JSON.stringify({ type: "auth", token: person.token })));
      socket.write(maskedFrame(JSON.stringify({ type: "subscribe", channel: "broadcast:flood" })));
      socket.write(maskedFrame(JSON.stringify({ type: "track", channel: "presence:slow", state: {} })));
      return socket;
    }),
  );
  for (const socket of slow) {
    await reader.expect({ type: "presence_join" });
    socket.pause();
  }
  const broadcast = { channel: "broadcast:flood", event: "e", payload: { text: "x".repeat(200_000) } };
  for (let count = 0; count < 100; count++) {
    expect((await platform.service.post("/api/realtime/broadcast", broadcast)).status).toBe(200);
  }
  for (const _ of slow) await reader.expect({ type: "presence_leave" });
  for (const socket of slow) {
    let tail = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      tail = Buffer.concat([tail, chunk]).subarray(-64);
    });
    socket.resume();
    await new Promise((resolve) => socket.once("end", resolve));
    expect(tail.includes(Buffer.from([1013 >> 8, 1013 & 255]))).toBe(true);
    socket.destroy();
  }
  await reader.close();
});

test("[WK25] a WebSocket of a route works through any process, with topics", async () => {
  const sockets = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const socket = new WebSocket(`${platform.url.replace("http", "ws")}/api/functions/echo`);
      const got: string[] = [];
      socket.addEventListener("message", ({ data }) => void got.push(String(data)));
      await new Promise((resolve) => socket.addEventListener("open", resolve, { once: true }));
      return { socket, got };
    }),
  );
  for (const [index, { socket }] of sockets.entries()) socket.send(`from ${index}`);
  const all = sockets.map((_, index) => `from ${index}`).toSorted();
  await until("each has the messages of all", () => sockets.every(({ got }) => Bun.deepEquals(got.toSorted(), all)));
  for (const { socket } of sockets) socket.close();
});

test("[WK21] an upgrade that is refused has the server's answer", async () => {
  for (let n = 0; n < 12; n++) {
    const response = await fetch(`${platform.url}/api/room?namespace=none&id=x`, {
      headers: {
        connection: "upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      },
    });
    expect([response.status, ((await response.json()) as { code: number }).code]).toEqual([404, 404]);
  }
});
