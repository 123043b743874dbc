import { afterAll, beforeAll, expect, test } from "bun:test";
import { createAuth } from "../../src/client/auth/auth.ts";
import { createContext } from "../../src/client/client.ts";
import type { ClientContext } from "../../src/client/context.ts";
import type { Socket } from "../../src/client/socket/types.ts";
import { memoryStore } from "../../src/client/store.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { createWire, fastRuntime, freePort, type Wire } from "./wire.ts";

const SPEED = 20;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: {
      auth: { anonymous: true },
      databases: { shared: { tables: { notes: { access: { read: true } } } } },
    },
  });
});
afterAll(() => platform.stop());

interface Visit {
  context: ClientContext;
  socket: Socket;
  wire: Wire;
}

async function visit(work: (visit: Visit) => Promise<void>, speed = SPEED): Promise<void> {
  const wire = createWire();
  const options = { url: platform.url, store: memoryStore(), webSocket: wire.WebSocket };
  const context = createContext(options, fastRuntime(speed));
  try {
    await work({ context, socket: await context.socket(), wire });
  } finally {
    context.close();
  }
}

const connected = (socket: Socket) => until("the socket is connected", () => socket.status === "connected");

test("[TC40] one connection for all, which ends some time after its last use", () =>
  visit(async ({ socket, wire }) => {
    expect(wire.opened.length).toBe(0);
    const releases = [socket.hold(), socket.hold()];
    expect(socket.status).toBe("connecting");
    await connected(socket);
    expect(wire.sent[0]).toEqual({ type: "auth", anonymous: true });
    for (const release of releases) release();
    const again = socket.hold();
    expect(socket.status).toBe("connected");
    again();
    again();
    await until("the socket is closed", () => socket.status === "closed");
    await until("the connection is closed", () => wire.open === 0);
    expect(wire.opened.length).toBe(1);
  }));

test("[TC40] another user gets another connection", () =>
  visit(async ({ context, socket, wire }) => {
    const users: unknown[] = [];
    socket.onConnected(() => users.push(context.transport.userId()));
    socket.hold();
    await connected(socket);
    const auth = createAuth(context);
    const { user } = await auth.signInAnonymously();
    await until("the user is connected", () => users.length === 2);
    await auth.signOut();
    await until("nobody is connected", () => users.length === 3);
    expect(users).toEqual([null, user.id, null]);
    await until("the others are closed", () => wire.open === 1);
  }));

test("[TC41] a token that has been refreshed is sent on the open connection", () =>
  visit(async ({ context, socket, wire }) => {
    const auth = createAuth(context);
    await auth.signInAnonymously();
    const refreshed: unknown[] = [];
    socket.on("auth_refreshed", (message) => refreshed.push(message));
    socket.hold();
    await connected(socket);
    const token = String(await context.transport.token());
    // Tokens of one second may be equal.
    await until("the token is another one", () => context.session.replaceRefused(token));
    await until("the new token is accepted", () => refreshed.length > 0);
    expect(wire.sent.filter(({ type }) => type === "auth").at(-1)?.["token"]).toBe(await context.transport.token());
    expect(wire.opened.length).toBe(1);
  }));

test("[TC42] a cut connection is made again, and what uses it begins anew", () =>
  visit(async ({ socket, wire }) => {
    let count = 0;
    const statuses: string[] = [];
    socket.subscribe((status) => statuses.push(status));
    socket.onConnected(() => count++);
    socket.hold();
    await connected(socket);
    for (const times of [2, 3, 4]) {
      wire.cut();
      await until("it is connected again", () => count === times && socket.status === "connected");
    }
    expect(statuses.slice(0, 4)).toEqual(["connecting", "connected", "waiting", "connected"]);
  }));

test("[TC42] a session that has ended on the server continues as nobody", () =>
  visit(async ({ context, socket, wire }) => {
    const auth = createAuth(context);
    const { user } = await auth.signInAnonymously();
    socket.hold();
    await connected(socket);
    expect((await platform.service.delete(`/api/auth/admin/users/${user.id}`)).status).toBe(200);
    await until("it is nobody's", () => context.transport.userId() === null && socket.status === "connected");
    expect(wire.sent.filter(({ type }) => type === "auth").at(-1)).toEqual({ type: "auth", anonymous: true });
  }));

test("[TC42] it waits for a server that is away, and comes back with it", async () => {
  const own = await testPlatform({ config: { databases: {} }, args: ["--port", String(await freePort())] });
  const context = createContext({ url: own.url, store: memoryStore() }, fastRuntime(SPEED));
  const socket = await context.socket();
  try {
    socket.hold();
    await connected(socket);
    await own.kill("SIGKILL");
    await until("it waits", () => socket.status === "waiting");
    await own.restart();
    await connected(socket);
  } finally {
    context.close();
    await own.stop();
  }
});

test("[TC43] a connection that has gone silent is given up and replaced", () =>
  visit(async ({ socket, wire }) => {
    socket.hold();
    await connected(socket);
    wire.silence();
    await until("it is noticed", () => socket.status === "waiting");
    await connected(socket);
    expect(wire.opened.length).toBe(2);
  }));

test("[TC43] one that only listens is asked, and stays", () =>
  visit(async ({ socket, wire }) => {
    socket.hold();
    await connected(socket);
    const pings = () => wire.sent.filter(({ type }) => type === "ping").length;
    await until("it has been asked often", () => pings() > 5);
    expect([socket.status, wire.opened.length]).toEqual(["connected", 1]);
  }, 100));

test("[TC44] a server of another major version is named in the error", async () => {
  const server = Bun.serve({
    port: 0,
    fetch: (request, own) => (own.upgrade(request) ? undefined : new Response()),
    websocket: {
      message: (socket) => void socket.send(JSON.stringify({ type: "auth_success", userId: null, version: "77.1.0" })),
    },
  });
  const context = createContext({ url: server.url.href, store: memoryStore() }, fastRuntime(1));
  const socket = await context.socket();
  socket.hold();
  await until("it is refused", () => socket.error !== null);
  expect(socket.error?.message).toMatch(/version \d+\.\d+\.\d+, server version 77\.1\.0/);
  expect(socket.status).toBe("waiting");
  context.close();
  await server.stop(true);
});

test("[TC45] 200 messages at once are all accepted", () =>
  visit(async ({ socket }) => {
    const [subscribed, errors] = [new Set<unknown>(), [] as unknown[]];
    socket.on("subscribed", ({ id }) => subscribed.add(id));
    socket.on("error", (message) => errors.push(message));
    socket.hold();
    await connected(socket);
    for (let index = 0; index < 200; index++) {
      socket.send({ type: "subscribe", channel: "realtime:shared:notes", id: String(index) });
    }
    await until("all are subscribed", () => subscribed.size === 200);
    expect(errors).toEqual([]);
  }, 1));
