import { afterEach, beforeEach, expect, test } from "bun:test";
import net from "node:net";
import tls from "node:tls";
import { until } from "../../../../tests/support/until.ts";
import { systemClock } from "../../../kernel/clock.ts";
import type { InnerServer } from "../../http/workers/inner-server.ts";
import type { SocketHandler } from "../../sockets/socket-server.ts";
import type { Place } from "../protocol/statements.ts";
import { nodeCredentials } from "./credentials.ts";
import { NodePort } from "./node-port.ts";
import { nodeTls, OwnerLink, originOf } from "./owner-link.ts";

const SECRETS = { jwtSecret: "a secret of thirty-two characters", serviceKey: "key-of-the-cluster-0123456789" };
const OTHERS = { jwtSecret: "another secret of 32 characters..", serviceKey: "key-of-the-cluster-0123456789" };
const ours = () => nodeCredentials(SECRETS);
const theirs = () => nodeCredentials(OTHERS);

let inner: InnerServer;
let port: NodePort;
let place: { history: number; place: Place } | null;
let url = "";
/** Requests that have reached the owner. */
let reached: string[];
let held = 0;
/** Lets the request go on that waits. */
let goOn: () => void = () => {};
const links: OwnerLink[] = [];

/** Stands in for a platform: answers with what it was asked. */
async function serve(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  reached.push(pathname);
  if (pathname === "/wait") await new Promise<void>((resolve) => (goOn = resolve));
  if (pathname === "/hold") {
    inner.hold(inner.of(request) ?? never(), true);
    await until("the follower holds it", () => held > 0);
  }
  if (pathname === "/socket") {
    const data: SocketHandler = { message: (socket, message) => void socket.send(`echo ${message}`) };
    if (inner.upgrade(request, { data, headers: { "x-of": "upgrade" } })) return new Response(null, { status: 101 });
  }
  const { method, headers } = request;
  const peer = inner.of(request)?.peer;
  return Response.json({
    method,
    peer,
    agent: headers.get("user-agent"),
    host: headers.get("host"),
    body: await request.text(),
  });
}

const never = (): never => {
  throw new Error("the request was not forwarded");
};

function freePort(): number {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  server.stop(true);
  return server.port;
}

beforeEach(() => {
  reached = [];
  held = 0;
  place = null;
  const number = freePort();
  url = `http://127.0.0.1:${number}`;
  port = new NodePort({
    hostname: "127.0.0.1",
    port: number,
    credentials: ours(),
    clock: systemClock,
    place: () => place,
    reported() {},
    command: (path) => (path === "/known" ? Promise.resolve(new Response("done")) : null),
  });
  inner = open();
});
afterEach(async () => {
  for (const link of links.splice(0)) link.stop();
  await port.followers.leave(null);
  await inner.stop(true);
});

function open(): InnerServer {
  const websocket = {
    maxPayloadLength: 1024,
    open() {},
    ping() {},
    pong() {},
    drain() {},
    close() {},
    message: (socket: { data: SocketHandler }, message: string | Buffer) =>
      socket.data.message(socket as never, message),
  };
  return port.open({ serve, failure: () => new Response(null, { status: 500 }), websocket });
}

/** Opens a follower's connection to the owner, and waits until it stands. */
async function linked(
  events: {
    announced?: (history: number, place: Place) => void;
    hold?: () => void;
    confirm?: (position: number) => void;
  } = {},
) {
  let number = 0;
  const link = new OwnerLink({
    credentials: ours(),
    clock: systemClock,
    number: () => ++number,
    announced: events.announced ?? (() => {}),
    left() {},
    confirm: events.confirm ?? (() => {}),
    changed() {},
    hold: events.hold ?? (() => {}),
  });
  links.push(link);
  link.lead(url);
  await until("the follower is connected", () => link.forwarding !== null);
  return { link, forwarding: link.forwarding ?? never() };
}

test("[CLU80] a request that a follower forwards is the client's: method, address, headers and body", async () => {
  const { forwarding } = await linked();
  const request = new Request("http://app.example/records?x=1", {
    method: "POST",
    body: "a body",
    headers: { host: "app.example" },
  });
  const answer = await forwarding.forward(request, "203.0.113.9");
  expect(await answer.json()).toEqual({
    method: "POST",
    peer: "203.0.113.9",
    agent: null,
    host: "app.example",
    body: "a body",
  });
});

test("[CLU80] a WebSocket is relayed, with the headers of its upgrade", async () => {
  const { forwarding } = await linked();
  const upstream = await forwarding.open(new Request("http://app.example/socket"), "203.0.113.9");
  if (upstream instanceof Response) throw new Error(`it was refused with ${upstream.status}`);
  expect(upstream.headers.get("x-of")).toBe("upgrade");
  const heard: string[] = [];
  // The part of a client's socket that a relay uses.
  const client = {
    send: (text: string) => heard.push(text),
    getBufferedAmount: () => 0,
    close() {},
    terminate() {},
  } as unknown as Parameters<typeof upstream.relay.attach>[0];
  upstream.relay.attach(client);
  upstream.relay.send(client, "one");
  await until("the answer has come", () => heard.length === 1);
  expect(heard).toEqual(["echo one"]);
  upstream.relay.close(1000, "");
});

test("[CLU81] the owner tells a follower what is acknowledged, at once and from then on, and which connections to hold", async () => {
  place = { history: 0, place: { position: 7, nonce: "seven" } };
  const told: number[] = [];
  const { forwarding } = await linked({
    announced: (_, { position }) => told.push(position),
    hold: () => (held += 1),
  });
  await until("the place is told", () => told.length === 1);
  place = { history: 0, place: { position: 9, nonce: "nine" } };
  port.followers.announce();
  port.followers.announce();
  await until("the next place is told", () => told.length === 2);
  expect(told).toEqual([7, 9]);
  await forwarding.forward(new Request("http://app.example/hold"), "203.0.113.9");
  expect(held).toBe(1);
});

test("[CLU47] the owner asks its followers to tell of a position", async () => {
  const asked: number[] = [];
  await linked({ confirm: (position) => asked.push(position) });
  port.followers.confirm(12);
  await until("it is asked", () => asked.length > 0);
  expect(asked).toEqual([12]);
});

test("[CLU81] an owner that leaves ends the connection, and answers what it has taken", async () => {
  const { link, forwarding } = await linked();
  const waiting = forwarding.forward(new Request("http://app.example/wait"), "203.0.113.9");
  await until("the request is there", () => reached.includes("/wait"));
  void port.followers.leave(null);
  await until("the follower has noticed", () => link.forwarding === null);
  goOn();
  expect((await waiting).status).toBe(200);
});

test("[CLU81] an owner that ends without a word ends what it was asked, and one that comes back is connected again", async () => {
  const { link, forwarding } = await linked();
  const waiting = forwarding.forward(new Request("http://app.example/wait"), "203.0.113.9").catch(() => "failed");
  await until("the request is there", () => reached.includes("/wait"));
  await inner.stop(true);
  expect(await waiting).toBe("failed");
  await until("the follower has noticed", () => link.forwarding === null);
  inner = open();
  await until("it is connected again", () => link.forwarding !== null);
  goOn();
});

test("[CLU82] nobody without a certificate of the cluster reaches anything", async () => {
  const { hostname, port: number } = new URL(url);
  const attempts: Record<string, () => Promise<Response>> = {
    "no TLS": () => fetch(url),
    "no certificate": () => fetch(originOf(url), { tls: { rejectUnauthorized: false } }),
    "the certificate of other secrets": () =>
      fetch(originOf(url), { tls: { ...nodeTls(theirs()), rejectUnauthorized: false } }),
    "the certificate of other secrets, with the issuer's": () =>
      fetch(originOf(url), {
        tls: { ...nodeTls(theirs()), cert: theirs().cert + ours().ca, rejectUnauthorized: false },
      }),
    "a certificate without its key": () =>
      fetch(originOf(url), { tls: { ...nodeTls(ours()), key: theirs().key, rejectUnauthorized: false } }),
  };
  for (const [way, attempt] of Object.entries(attempts)) {
    const answer = await attempt().catch(() => null);
    expect([way, answer?.status ?? null]).toEqual([way, null]);
  }
  // A request that is sent before the handshake ends, and one after an end of TLS, are none.
  const heard = await new Promise<string>((resolve) => {
    let text = "";
    const socket = net.connect(Number(number), hostname, () => socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n"));
    socket.on("data", (chunk) => (text += chunk.toString("latin1")));
    socket.on("error", () => resolve(text));
    socket.on("close", () => resolve(text));
  });
  expect(heard).not.toContain("HTTP/1.1");
  expect(reached).toEqual([]);
});

test("[CLU82] a connection that was recorded is worth nothing when it is replayed", async () => {
  const { hostname, port: number } = new URL(url);
  const recorded: Buffer[] = [];
  const proxy = net.createServer((client) => {
    const server = net.connect(Number(number), hostname);
    client.on("data", (chunk) => recorded.push(Buffer.from(chunk)));
    client.pipe(server).pipe(client);
    client.on("error", () => server.destroy());
    server.on("error", () => client.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  const at = typeof address === "object" && address !== null ? address.port : 0;
  const { secret } = ours();
  const headers = { "x-platform-worker": `${secret} {"worker":1,"id":5,"peer":"","absent":[],"omitted":null}` };
  const answer = await fetch(`https://127.0.0.1:${at}/paid`, {
    method: "POST",
    tls: nodeTls(ours()),
    headers,
    keepalive: false,
  });
  expect([answer.status, reached]).toEqual([200, ["/paid"]]);
  const replay = net.connect(Number(number), hostname);
  for (const chunk of recorded) replay.write(chunk);
  await new Promise((resolve) => replay.on("error", resolve).on("close", resolve).resume());
  expect(reached).toEqual(["/paid"]);
  proxy.close();
});

test("[CLU82] a follower sends nothing to a server that has no certificate of the cluster", async () => {
  const { cert, key, ca } = theirs();
  for (const issuer of [{}, { ca, requestCert: true }]) {
    const heard: string[] = [];
    const imposter = tls.createServer({ cert, key, ...issuer, rejectUnauthorized: false }, (socket) => {
      socket.on("data", (chunk) => heard.push(chunk.toString()));
      socket.on("error", () => {});
    });
    imposter.on("tlsClientError", () => {});
    await new Promise<void>((resolve) => imposter.listen(0, "127.0.0.1", resolve));
    const address = imposter.address();
    const origin = `https://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
    const tlsOptions = nodeTls(ours());
    await expect(
      fetch(`${origin}/secret`, { tls: tlsOptions, headers: { "x-platform-worker": "s" } }),
    ).rejects.toThrow();
    const socket = new WebSocket(origin.replace("https", "wss"), {
      tls: tlsOptions,
      headers: { "x-platform-worker": "s" },
    });
    const how = await new Promise((resolve) => {
      socket.addEventListener("open", () => resolve("open"));
      socket.addEventListener("error", () => resolve("refused"));
    });
    expect([how, heard]).toEqual(["refused", []]);
    imposter.close();
  }
});

test("[CLU82] within a connection, a request without the nodes' secret is answered nothing", async () => {
  const answer = await fetch(`${originOf(url)}/records`, { tls: nodeTls(ours()) });
  expect([answer.status, await answer.text(), reached]).toEqual([403, "", []]);
});

test("[CLU83] a command of an operator is answered, and an unknown one is 404", async () => {
  const { forwarding } = await linked();
  expect(await (await forwarding.tell("/known", { method: "POST", body: "{}" })).text()).toBe("done");
  expect((await forwarding.tell("/unknown")).status).toBe(404);
});
