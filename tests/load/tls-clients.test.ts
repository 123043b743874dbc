import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { connect as connectTcp, type Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { path, randomBytes, upload } from "../http/storage/storage-support.ts";
import { type TestPlatform, temporaryDirectory, testPlatform, until } from "../support/index.ts";
import { createAuthority } from "../support/tls/certificates.ts";

const MIB = 1024 * 1024;
const FILE_BYTES = 16 * MIB;
const CLIENTS = 150;
const READERS = 30;
const REQUESTS = 200;
const MEMORY_MAX_MIB = 150;
const isLinux = process.platform === "linux";

let platform: TestPlatform;
let ca: string;
beforeAll(async () => {
  const directory = temporaryDirectory();
  const authority = await createAuthority(directory);
  const { cert, key } = await authority.sign();
  writeFileSync(join(directory, "cert.pem"), cert);
  writeFileSync(join(directory, "key.pem"), key);
  ca = authority.cert;
  platform = await testPlatform({
    config: {
      server: { tls: { cert: join(directory, "cert.pem"), key: join(directory, "key.pem") } },
      storage: { buckets: { files: { access: { read: true } } } },
      rateLimits: { global: { requests: 1_000_000, window: 1 } },
    },
    args: ["--host", "127.0.0.1"],
    ca,
  });
}, 60_000);
afterAll(() => platform.stop());

const sockets = new Set<Socket>();
const port = () => Number(new URL(platform.url).port);
/** Whatever becomes of it. */
function kept(socket: Socket): Socket {
  sockets.add(socket.on("error", () => {}));
  return socket;
}
const tcp = () => kept(connectTcp(port(), "127.0.0.1"));
const tls = () => kept(connectTls({ port: port(), host: "127.0.0.1", rejectUnauthorized: false }));

/** The beginning of a TLS record that announces a handshake of 512 bytes. */
const HELLO_BEGINNING = Buffer.from([22, 3, 1, 2, 0, 1]);

const descriptors = (): number =>
  new Set(new Bun.Glob("*").scanSync({ cwd: `/proc/${platform.process.pid}/fd`, onlyFiles: false, dot: true })).size;
const residentMib = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${platform.process.pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

async function honest(): Promise<void> {
  const statuses = await Promise.all(
    Array.from({ length: REQUESTS }, async () => (await platform.get("/api/health")).status),
  );
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  const answer = await platform.fetch(path("files", "large"));
  expect((await answer.arrayBuffer()).byteLength).toBe(FILE_BYTES);
}

test.if(isLinux)(
  "[TL26] clients that stop or vanish in the middle of a handshake, a request or an answer delay nobody and leave nothing",
  async () => {
    expect((await upload(platform.service, "files", "large", randomBytes(FILE_BYTES))).status).toBe(201);
    await honest();
    const before = { descriptors: descriptors(), mib: residentMib() };
    for (let index = 0; index < CLIENTS; index++) {
      // One says nothing, one stops within the handshake, one sends something else than TLS, one goes at once.
      const [, stopping, other, vanishing] = [tcp(), tcp(), tcp(), tcp()];
      stopping?.write(HELLO_BEGINNING);
      other?.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      vanishing?.once("connect", () => {
        vanishing.write(HELLO_BEGINNING);
        vanishing.destroy();
      });
      const half = tls();
      half.once("secureConnect", () =>
        half.write("POST /api/auth/signin HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n{"),
      );
    }
    let begun = 0;
    for (let index = 0; index < READERS; index++) {
      const reader = tls();
      reader.once("secureConnect", () => reader.write(`GET ${path("files", "large")} HTTP/1.1\r\nHost: a\r\n\r\n`));
      reader.once("data", () => {
        begun++;
        reader.pause();
      });
    }
    await until("every download has begun", () => begun === READERS);
    await honest();
    expect(residentMib() - before.mib).toBeLessThan(MEMORY_MAX_MIB);
    for (const socket of sockets) socket.destroy();
    await until("the server has let go of them", () => descriptors() <= before.descriptors + REQUESTS);
    await honest();
  },
  60_000,
);
