import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { type AnyElysia, Elysia } from "elysia";
import { systemClock } from "../../../kernel/clock.ts";
import { createSocketServer } from "../../sockets/socket-server.ts";
import { createListener, type Listener } from "./listener.ts";

/** Bun checks its timeouts every four seconds. */
const IDLE_SECONDS = 4;
const SOCKET_IDLE_SECONDS = 8;
const GIVE_UP_MS = 40_000;
const BYTE_A_SECOND_MS = 1_000;
const LARGE = "x".repeat(64 * 1024 * 1024);

let listener: Listener;
let port: number;
/** The errors of handlers whose body arrived incomplete. */
const brokenBodies: string[] = [];
const closedSockets: number[] = [];

beforeAll(() => {
  listener = createListener({
    clock: systemClock,
    isTls: false,
    proxies: { trustProxy: false },
    idleTimeoutSeconds: IDLE_SECONDS,
    socketIdleSeconds: SOCKET_IDLE_SECONDS,
  });
  const receive = async (request: Request): Promise<string> => {
    try {
      return `${(await request.text()).length} bytes`;
    } catch (cause) {
      brokenBodies.push(String(cause));
      throw cause;
    }
  };
  const server: AnyElysia = new Elysia({ handler: { standardHostname: false } })
    .post("/body", ({ request }) => receive(request), { parse: "none" })
    .post(
      "/held",
      async ({ request }) => {
        listener.holdOpen(request, true);
        const answer = await receive(request);
        listener.holdOpen(request, false);
        return answer;
      },
      { parse: "none" },
    )
    .get("/large", () => LARGE)
    .get("/socket", ({ request }) =>
      listener.sockets.upgrade(request, { message() {}, close: (_, code) => void closedSockets.push(code) }),
    );
  const failure = () => new Response(null, { status: 500 });
  ({ port } = listener.listen(server, { port: 0, failure }));
});
afterAll(() => listener.stop());

interface Client {
  socket: Socket;
  received: () => string;
  closed: Promise<"closed">;
}

/** Sends `head`, then `drip` every second. */
function client(head: string, drip = ""): Client {
  let text = "";
  const socket = connect(port, "127.0.0.1", () => socket.write(head));
  const timer = setInterval(() => drip !== "" && socket.writable && socket.write(drip), BYTE_A_SECOND_MS);
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1").slice(0, 1_000);
  });
  socket.on("error", () => {});
  const { promise, resolve, reject } = Promise.withResolvers<"closed">();
  const giveUp = setTimeout(() => reject(new Error(`still open after ${GIVE_UP_MS} ms`)), GIVE_UP_MS);
  socket.on("close", () => {
    clearInterval(timer);
    clearTimeout(giveUp);
    resolve("closed");
  });
  return { socket, received: () => text, closed: promise };
}

const post = (path: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;

test.concurrent("[HT30] a client that does not finish its headers is disconnected, slow or silent", async () => {
  const clients = [client("GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", "a"), client("GET / HTTP/1.1\r\nHo"), client("")];
  expect(await Promise.all(clients.map(({ closed }) => closed))).toEqual(["closed", "closed", "closed"]);
});

test.concurrent("[HT30] a client that sends a body a byte a second is disconnected too, and the handler notices", async () => {
  const { closed, received } = client(post("/body", 1_000), "a");
  await closed;
  expect(received()).not.toContain("200 OK");
  while (brokenBodies.length === 0) await Bun.sleep(10);
  expect(brokenBodies).toHaveLength(1);
});

test.concurrent("[HT31] a connection that its handler holds open outlives the timeout, and has the same idle limit as others", async () => {
  const { closed, received } = client(post("/held", 2 * IDLE_SECONDS), "a");
  while (!received().includes(`${2 * IDLE_SECONDS} bytes`)) await Bun.sleep(50);
  await closed;
});

test.concurrent("[HT30] a client that stops reading a long answer is disconnected", async () => {
  const { socket, received } = client("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  socket.pause();
  // Long enough for any timeout to fire; then the remaining bytes of the pipes are read to the end.
  await Bun.sleep(3 * IDLE_SECONDS * 1_000);
  let byteCount = 0;
  socket.on("data", (bytes) => {
    byteCount += bytes.length;
  });
  const ended = new Promise((resolve) => socket.once("close", resolve));
  socket.resume();
  await ended;
  expect(received()).toContain("200 OK");
  expect(byteCount).toBeLessThan(LARGE.length);
});

test.concurrent("[HT32] a WebSocket that answers no ping is closed; a silent one that answers stays", async () => {
  const living = new WebSocket(`ws://127.0.0.1:${port}/socket`);
  await new Promise((resolve) => {
    living.onopen = resolve;
  });
  const vanished = client(
    "GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  await vanished.closed;
  expect(vanished.received()).toContain("101 Switching Protocols");
  expect(closedSockets).toEqual([1006]);
  expect(living.readyState).toBe(WebSocket.OPEN);
  living.close();
});

test("[HT32] without other settings a silent WebSocket is pinged before a proxy's 60 seconds are over", () => {
  const { handlers } = createSocketServer({
    of: () => null,
    originalOf: (request) => request,
    all: () => [],
    refuse: async () => {},
  });
  // Bun pings 16 s before, in steps of 4 s.
  expect(handlers.idleTimeout).toBe(40);
  expect(handlers.sendPings).toBe(true);
});
