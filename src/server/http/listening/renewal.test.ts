import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, type TLSSocket } from "node:tls";
import { type AnyElysia, Elysia } from "elysia";
import { testClock, until } from "../../../../tests/support/index.ts";
import { type Authority, createAuthority, type Pair } from "../../../../tests/support/tls/certificates.ts";
import { RETIREMENT_MS } from "../limits.ts";
import { createListener, type Listener } from "./listener.ts";
import { hostnameOptions } from "./requests.ts";
import { createSteering } from "./steering.ts";

// Renewals under load: what clients see of them on new, open, idle and busy connections.

const CLIENTS = 8;
const RENEWALS = 12;

let authority: Authority;
let pairs: [Pair, Pair];

beforeAll(async () => {
  authority = await createAuthority();
  pairs = [await authority.sign({ names: ["one.example"] }), await authority.sign({ names: ["two.example"] })];
});

interface Served {
  listener: Listener;
  port: number;
  clock: ReturnType<typeof testClock>;
  /** The body of /slow goes on. */
  more: () => void;
}

const open: Listener[] = [];
afterAll(() => Promise.all(open.map((listener) => listener.stop())));

function serve(): Served {
  const clock = testClock();
  const listener = createListener({ clock, isTls: true, proxies: { trustProxy: false } });
  open.push(listener);
  let more = (): void => {};
  const slow = () =>
    new Response(
      new ReadableStream({
        async start(controller) {
          const { promise, resolve } = Promise.withResolvers<void>();
          more = resolve;
          controller.enqueue(new TextEncoder().encode("first "));
          await promise;
          controller.enqueue(new TextEncoder().encode("last"));
          controller.close();
        },
      }),
    );
  const server: AnyElysia = new Elysia({ handler: hostnameOptions({ isTls: true }) })
    .get("/", ({ request }) => listener.addressOf(request))
    .get("/slow", slow)
    .get("/socket", ({ request }) =>
      listener.sockets.upgrade(request, {
        open: (socket) => void socket.subscribe("all"),
        message: (socket, message) => void socket.send(`echo ${message}`),
      }),
    );
  const failure = () => new Response(null, { status: 500 });
  const tls = { ...pairs[0], publicHost: null, steering: createSteering() };
  const { port } = listener.listen(server, { host: "127.0.0.1", port: 0, tls, failure });
  return { listener, port, clock, more: () => more() };
}

/** The name in the certificate of a new connection. */
async function nameAt(port: number): Promise<string> {
  const socket = await connectTo(port);
  const name = socket.getPeerCertificate().subject.CN;
  socket.destroy();
  return String(name);
}

async function connectTo(port: number): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect({ port, host: "127.0.0.1", ca: authority.cert }, () => resolve(socket));
  socket.on("error", reject);
  return promise;
}

/** One request on a connection of its own. Errors: it was not answered. */
async function request(port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let text = "";
  const socket = connect({ port, host: "127.0.0.1", ca: authority.cert }, () => {
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  });
  socket.on("data", (data) => {
    text += data;
  });
  socket.on("error", reject);
  socket.on("close", () => (text.endsWith("127.0.0.1") ? resolve() : reject(new Error(`the answer was "${text}"`))));
  return promise;
}

test("[TL20] no new connection is lost while certificates are renewed under load", async () => {
  const { listener, port, clock } = serve();
  let isDone = false;
  let answered = 0;
  const client = async (): Promise<void> => {
    while (!isDone) {
      await request(port);
      answered++;
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  for (let turn = 1; turn <= RENEWALS; turn++) {
    const before = answered;
    await until("requests between renewals", () => answered > before + 2 * CLIENTS);
    // Old servers end, one or several at once, after what was in their queues has been answered.
    if (turn % 3 === 0) clock.advance(RETIREMENT_MS);
    listener.renew(pairs[turn % 2] ?? pairs[0]);
  }
  isDone = true;
  await clients;
  expect(await nameAt(port)).toBe("one.example");
});

test("[TL20] new connections have the new certificate at once, all of them", async () => {
  const { listener, port, clock } = serve();
  expect(await nameAt(port)).toBe("one.example");
  listener.renew(pairs[1]);
  const names = async () => new Set(await Promise.all(Array.from({ length: 20 }, () => nameAt(port))));
  expect([...(await names())]).toEqual(["two.example"]);
  clock.advance(RETIREMENT_MS);
  expect([...(await names())]).toEqual(["two.example"]);
  listener.renew(pairs[0]);
  expect([...(await names())]).toEqual(["one.example"]);
});

test("[TL21] a WebSocket and a running download go on, also when the old server has ended", async () => {
  const { listener, port, clock, more } = serve();
  const received: string[] = [];
  const socket = new WebSocket(`wss://127.0.0.1:${port}/socket`, { tls: { ca: authority.cert } } as never);
  socket.onmessage = ({ data }) => void received.push(String(data));
  await new Promise((resolve) => {
    socket.onopen = resolve;
  });
  const download = await fetch(`https://127.0.0.1:${port}/slow`, { tls: { ca: authority.cert } });
  listener.renew(pairs[1]);
  socket.send("before");
  await until("the echo", () => received.length === 1);
  clock.advance(RETIREMENT_MS);
  socket.send("after");
  await until("the echo after the end", () => received.length === 2);
  listener.sockets.publish("all", "published");
  await until("what is published to all servers", () => received.length === 3);
  expect(received).toEqual(["echo before", "echo after", "published"]);
  more();
  expect(await download.text()).toBe("first last");
  const closed = new Promise<number>((resolve) => {
    socket.onclose = ({ code }) => resolve(code);
  });
  await listener.stop();
  expect(await closed).toBe(1001);
});

test("[TL21] an idle connection is answered once more, and told to close; as a WebSocket it may stay", async () => {
  const { listener, port } = serve();
  const exchange = async (socket: TLSSocket, text: string): Promise<string> => {
    const { promise, resolve } = Promise.withResolvers<string>();
    socket.once("data", (data) => resolve(String(data)));
    socket.write(text);
    return promise;
  };
  const plain = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const upgrade = `GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;
  const [idle, other] = [await connectTo(port), await connectTo(port)];
  for (const socket of [idle, other]) expect(await exchange(socket, plain)).not.toContain("onnection: close");
  const ended = new Promise((resolve) => idle.once("close", resolve));
  listener.renew(pairs[1]);
  const answer = await exchange(idle, plain);
  expect(answer).toContain("200 OK");
  expect(answer.toLowerCase()).toContain("connection: close");
  await ended;
  expect(await exchange(other, upgrade)).toContain("101 Switching Protocols");
  other.destroy();
});

test("[TL22] a certificate that cannot be used changes nothing", async () => {
  const { listener, port } = serve();
  expect(() => listener.renew({ cert: pairs[0].cert, key: pairs[1].key })).toThrow();
  expect(() => listener.renew({ cert: "nothing", key: "nothing" })).toThrow();
  expect(await nameAt(port)).toBe("one.example");
  await request(port);
});

test("[TL23] another process, or server, cannot share the port", async () => {
  const { port } = serve();
  const other = createListener({ clock: testClock(), isTls: true, proxies: { trustProxy: false } });
  const tls = { ...pairs[1], publicHost: null, steering: null };
  const failure = () => new Response();
  expect(() => other.listen(new Elysia(), { host: "127.0.0.1", port, tls, failure })).toThrow(
    "another process uses it",
  );
});
