import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { type ErrorAnswer, type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";

const KIB = 1024;
const MIB = 1024 ** 2;

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({
    config: {
      databases: { shared: { tables: { notes: { access: { insert: true, read: true } } } } },
      auth: { anonymous: true },
      rateLimits: { auth: { requests: 100_000, window: 60 } },
      storage: { buckets: { files: {} } },
      kv: { cache: {} },
    },
  });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

/** Sends the beginning of a request, and gives what comes back within a second. */
function begin(path: string, headers: readonly string[], body: Uint8Array): { socket: Socket; answer(): string } {
  const socket = connect(Number(new URL(platform.url).port), "127.0.0.1");
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes.toString("latin1");
  });
  socket.on("error", () => {});
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers.join("\r\n")}\r\n\r\n`,
  );
  socket.write(body);
  return { socket, answer: () => answer };
}

async function until(isDone: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < 200 && !isDone(); turn++) await Bun.sleep(25);
  return isDone();
}

test("[HT112] a body to /api/auth over 64 KiB is 413, without waiting for it, its length declared or not", async () => {
  const declared = begin("/api/auth/signin", [`Content-Length: ${10 * MIB}`], Buffer.alloc(10));
  expect(await until(() => declared.answer().startsWith("HTTP/1.1 413"))).toBe(true);
  const chunk = Buffer.concat([Buffer.from(`${(65 * KIB).toString(16)}\r\n`), Buffer.alloc(65 * KIB, 32)]);
  const chunked = begin("/api/auth/signin", ["Transfer-Encoding: chunked"], chunk);
  expect(await until(() => chunked.answer().startsWith("HTTP/1.1 413"))).toBe(true);
  for (const { socket } of [declared, chunked]) socket.destroy();
});

test("[HT112] endpoints with small bodies have their own bounds", async () => {
  const text = (bytes: number) => ({ surprise: "x".repeat(bytes) });
  const { service } = platform;
  const cases = [
    [user, "/api/auth/refresh", 64 * KIB],
    [service, "/api/auth/admin/users", 64 * KIB],
    [user, "/api/push/register", 64 * KIB],
    [service, "/api/push/send", 64 * KIB],
    [service, "/api/push/send-many", MIB],
    [service, "/api/storage/files/signed-url", 64 * KIB],
    [service, "/api/storage/files/signed-urls", MIB],
    [service, "/api/storage/files/delete-batch", MIB],
    [service, "/api/storage/files/multipart/create", 128 * KIB],
    [service, "/api/storage/files/multipart/complete", 2 * MIB],
    [service, "/api/kv/cache", 4 * MIB],
    [service, "/api/realtime/broadcast", MIB],
    [user, "/api/analytics/track", 2 * MIB],
  ] as const;
  for (const [client, path, bytes] of cases) {
    const within = await client.post<ErrorAnswer>(path, text(bytes - 100));
    expect([path, within.status === 413]).toEqual([path, false]);
    const over = await client.post<ErrorAnswer>(path, text(bytes));
    expect([path, over.status, over.body.message]).toEqual([path, 413, `The body must be at most ${bytes} bytes`]);
  }
});

test("[HT113] unfinished bodies of one address have 64 MiB together; others are served, and the bytes are free again afterwards", async () => {
  const body = Buffer.alloc(9 * MIB, 32);
  const path = "/api/db/shared/tables/notes";
  const unfinished = Array.from({ length: 30 }, () => begin(path, [`Content-Length: ${10 * MIB}`], body));
  const refused = () => unfinished.filter((one) => one.answer().startsWith("HTTP/1.1 429"));
  expect(await until(() => refused().length >= 23)).toBe(true);
  expect(refused().every((one) => one.answer().includes("retry-after: "))).toBe(true);
  expect((await platform.post(path, { title: "small" })).status).toBe(201);
  expect((await platform.post("/api/auth/signin/anonymous")).status).toBe(201);
  for (const { socket } of unfinished) socket.destroy();
  const large = { title: "x".repeat(300 * KIB) };
  let status = 429;
  for (let turn = 0; turn < 200 && status === 429; turn++) {
    status = (await platform.post(path, large)).status;
    if (status === 429) await Bun.sleep(25);
  }
  expect(status).toBe(201);
});

test("[HT113] a large body comes through whole, with characters cut by its chunks", async () => {
  const title = "ü€😀".repeat(40_000);
  const answer = await platform.post<{ title: string }>("/api/db/shared/tables/notes", { title });
  expect([answer.status, answer.body.title === title]).toEqual([201, true]);
  const broken = Buffer.concat([Buffer.from('{"title":"'), Buffer.alloc(200 * KIB, 0xff), Buffer.from('"}')]);
  const bad = await platform.fetch("/api/db/shared/tables/notes", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: broken,
  });
  expect(bad.status).toBe(400);
});

test("[HT115] a body of millions of tiny values is 413 for users and guests; a service key may send them", async () => {
  const path = "/api/db/shared/tables/notes";
  const many = (count: number) => ({ list: Array.from({ length: count }, () => 1) });
  for (const client of [platform, user]) {
    expect((await client.post(path, many(300_000))).status).toBe(413);
    expect((await client.post(path, many(200_000))).status).toBe(201);
  }
  expect((await platform.service.post(path, many(300_000))).status).toBe(201);
  const deep = `{"list":${"[".repeat(100)}"${"x".repeat(100_000)}"${"]".repeat(100)}}`;
  const answer = await platform.service.fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: deep,
  });
  expect(answer.status).toBe(400);
});

test("[HT330] a request that declares a trailer is not carried out", async () => {
  const path = "/api/db/shared/tables/notes";
  const send = async (id: string, headers: readonly string[], trailer: string): Promise<number> => {
    const record = JSON.stringify({ id });
    const body = `${record.length.toString(16)}\r\n${record}\r\n0\r\n${trailer}\r\n`;
    const sent = [`Authorization: Bearer ${user.token}`, "Transfer-Encoding: chunked", ...headers];
    const { socket, answer } = begin(path, sent, Buffer.from(body));
    expect(await until(() => answer().includes("\r\n\r\n"))).toBe(true);
    socket.destroy();
    return Number(answer().slice("HTTP/1.1 ".length, "HTTP/1.1 200".length));
  };
  const exists = async (id: string) => (await platform.get(`${path}/${id}`)).status;
  expect([await send("plain", [], ""), await exists("plain")]).toEqual([201, 200]);
  expect([await send("declared", ["Trailer: X-Sum"], "X-Sum: 1\r\n"), await exists("declared")]).toEqual([400, 404]);
});
