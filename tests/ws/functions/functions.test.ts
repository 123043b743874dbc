import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  createAdministrator,
  openSocket,
  SERVICE_KEY,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
  until,
} from "../../support/index.ts";

const CONFIG = `
import { defineConfig } from "platform";
import { t, Elysia } from "elysia";

const asked = Promise.withResolvers();
const answered = Promise.withResolvers();

const plugin = new Elysia().ws("/of-plugin", {
  open(ws) { ws.send({ of: "plugin" }) },
  message(ws, message) { if (message.crash) throw new Error("a secret of the plugin"); ws.send({ message }) },
});

export default defineConfig({
  databases: { shared: { tables: { notes: { access: { read: true, insert: true } } } } },
  routes: (api) => api
    .ws("/echo", { open(ws) { ws.send({ auth: ws.data.auth?.id ?? null }) }, message(ws, message) { ws.send({ message }) } })
    .ws("/open/:room", {
      access: true,
      body: t.Object({ n: t.Number() }),
      open(ws) { ws.subscribe(ws.data.params.room); ws.send({ topics: ws.raw.subscriptions }) },
      message(ws, message) { if (message.n < 0) throw new Error("a secret of the socket"); ws.publish(ws.data.params.room, { n: message.n }) },
    })
    .ws("/admin", { access: (auth) => auth?.role === "admin", open(ws) { ws.send({ admin: true }) } })
    .ws("/slow", { access: async () => { asked.resolve(); await answered.promise; return true }, open(ws) { ws.send({ open: true }) } })
    .get("/asked", () => asked.promise.then(() => "ok"), { access: true })
    .get("/answer", () => { answered.resolve(); return "ok" }, { access: true })
    .post("/publish/:room", ({ params, server, body }) => { server.publish(params.room, JSON.stringify(body)); return "ok" }, { access: true, body: t.Any() })
    .use(plugin),
});`;

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

const open = (path: string, token?: string) =>
  openSocket(`${platform.wsUrl}/api/functions${path}`, token === undefined ? {} : { authorization: `Bearer ${token}` });

test("[FN4] [FN14] a WebSocket without access is for signed-in users, that of a plugin as well", async () => {
  for (const path of ["/echo", "/of-plugin", "/admin"]) {
    await expect(open(path)).rejects.toThrow();
    await expect(open(path, "not a token")).rejects.toThrow();
  }
  await expect(open("/admin", user.token)).rejects.toThrow();
  const socket = await open("/echo", user.token);
  expect(await socket.next()).toEqual({ auth: user.id });
  socket.send({ hello: 1 });
  expect(await socket.next()).toEqual({ message: { hello: 1 } });
  await socket.close();
  const ofPlugin = await open("/of-plugin", user.token);
  expect(await ofPlugin.next()).toEqual({ of: "plugin" });
  await ofPlugin.close();
});

test("[FN14] a page sends its token as a protocol", async () => {
  const connect = (protocols: string[]) => {
    const socket = new WebSocket(`${platform.wsUrl}/api/functions/echo`, protocols);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    socket.onmessage = ({ data }) => resolve([socket.protocol, JSON.parse(String(data))]);
    socket.onclose = ({ code }) => resolve(code);
    return promise.finally(() => socket.close());
  };
  expect(await connect(["bearer", user.token])).toEqual(["bearer", { auth: user.id }]);
  expect(await connect(["bearer", "not-a-token"])).toBeGreaterThan(1001);
  expect(await connect(["bearer"])).toBeGreaterThan(1001);
});

test("[FN14] its topics are those of routes", async () => {
  const listener = await open("/open/lobby");
  expect(await listener.next()).toEqual({ topics: ["lobby"] });
  const sender = await open("/open/lobby");
  await sender.next();
  sender.send({ n: 1 });
  expect(await listener.next()).toEqual({ n: 1 });
  await platform.post("/api/functions/publish/lobby", { n: 2 });
  expect(await listener.next()).toEqual({ n: 2 });

  // What realtime publishes reaches no socket of a route, whatever topic it names.
  const names = ["realtime/0", "0", "1", "realtime:shared:notes", "shared.notes"];
  const spies = await Promise.all(names.map((name) => open(`/open/${encodeURIComponent(name)}`)));
  for (const spy of spies) await spy.next();
  const realtime = await openSocket(`${platform.wsUrl}/api/realtime`, { authorization: `Bearer ${user.token}` });
  realtime.send({ type: "auth", token: user.token });
  await realtime.nextOf("auth_success");
  realtime.send({ type: "subscribe", channel: "realtime:shared:notes" });
  await realtime.nextOf("subscribed");
  await platform.post("/api/db/shared/tables/notes", { title: "x" });
  await realtime.nextOf("db_change");
  for (const spy of spies) expect(spy.pending).toEqual([]);
  for (const socket of [...spies, realtime, listener, sender]) await socket.close();
});

test("[FN14] messages that its schema refuses, and errors of its handlers, are told without details", async () => {
  const socket = await open("/open/errors");
  await socket.next();
  socket.send({ n: "1" });
  await socket.expect({ code: 400 });
  socket.send({ n: -1 });
  expect(await socket.next()).toEqual({ code: 500, message: "Internal error" });
  await until("the log has the error", () => platform.stderr().includes("a secret of the socket"));
  await socket.close();
  const ofPlugin = await open("/of-plugin", user.token);
  await ofPlugin.next();
  ofPlugin.send({ crash: true });
  expect(await ofPlugin.next()).toEqual({ code: 500, message: "Internal error" });
  await until("the log has the error", () => platform.stderr().includes("a secret of the plugin"));
  await ofPlugin.close();
});

test("[FN19] messages over the rate are dropped and answered 429, and the connection stays open", async () => {
  const [flooding, other] = [await open("/echo", user.token), await open("/echo", user.token)];
  await Promise.all([flooding.next(), other.next()]);
  for (let n = 0; n < 300; n++) flooding.send({ n });
  const answers: { code?: number; message: unknown }[] = [];
  while (answers.length < 300) answers.push((await flooding.next()) as never);
  const dropped = answers.filter(({ code }) => code === 429).length;
  expect(dropped).toBeGreaterThan(0);
  expect(300 - dropped).toBeGreaterThanOrEqual(100);
  other.send({ still: "served" });
  expect(await other.next()).toEqual({ message: { still: "served" } });
  await Promise.all([flooding.close(), other.close()]);
});

test("[FN19] [SK222] a flood of messages closes the connection with 1008", async () => {
  const socket = await open("/echo", user.token);
  for (let n = 0; n < 20_000; n++) socket.send({ n });
  expect((await socket.closed).code).toBe(1008);
  expect(socket.pending.length).toBeLessThan(20_000);
});

test("[FN19] long messages are metered by their length", async () => {
  const socket = await open("/echo", user.token);
  await socket.next();
  const text = "x".repeat(900_000);
  for (let n = 0; n < 4; n++) socket.send({ text });
  const codes: (number | undefined)[] = [];
  while (codes.length < 4) codes.push(((await socket.next()) as { code?: number }).code);
  expect(codes).toContain(429);
  expect(codes).toContain(undefined);
  await socket.close();
});

test("[FN14] it ends with its session", async () => {
  const other = await signIn(platform);
  const socket = await open("/echo", other.token);
  await socket.next();
  expect((await other.post("/api/auth/signout")).status).toBe(200);
  expect((await socket.closed).code).toBe(4003);
});

test("[FN14] it ends with its service key", async () => {
  const [short, long] = ["short-key-0123456789abcdefghij", "long-key-0123456789abcdefghijk"];
  const expiresAt = new Date(Date.now() + 6_000).toISOString();
  const keys = `serviceKeys: { short: { key: "${short}", expiresAt: "${expiresAt}" }, long: { key: "${long}" } },`;
  const own = await testPlatform({ config: CONFIG.replace("  routes:", `  ${keys}\n  routes:`) });
  const openWith = (key: string) =>
    openSocket(`${own.wsUrl}/api/functions/open/keys`, { "x-platform-service-key": key });
  const [ending, lasting] = [await openWith(short), await openWith(long)];
  expect((await ending.closed).code).toBe(4003);
  await lasting.next();
  lasting.send({ n: 1 });
  ending.terminate();
  const again = await openWith(long);
  await again.next();
  again.send({ n: 2 });
  expect(await lasting.next()).toEqual({ n: 2 });
  for (const socket of [lasting, again]) await socket.close();
  await own.stop();
});

test("[FN14] [AD9] one of who acts as a user, or as nobody, ends with the administrator's session", async () => {
  const [ending, lasting] = [
    await createAdministrator(platform, SERVICE_KEY),
    await createAdministrator(platform, SERVICE_KEY),
  ];
  const openAs = (path: string, { cookie }: { cookie: string }, target: string) =>
    openSocket(`${platform.wsUrl}/api/functions${path}`, {
      cookie,
      "x-platform-admin": "1",
      "x-platform-act-as": target,
    });
  const ended = [await openAs("/echo", ending, user.id), await openAs("/open/acting", ending, "anonymous")];
  const kept = await openAs("/echo", lasting, user.id);
  expect(await kept.next()).toEqual({ auth: user.id });
  expect((await ending.delete("/api/admin/session")).status).toBe(204);
  for (const socket of ended) expect((await socket.closed).code).toBe(4003);
  kept.send({ still: "served" });
  expect(await kept.next()).toEqual({ message: { still: "served" } });
  await kept.close();
});

test("[FN14] a session that ends while its rule is awaited opens none", async () => {
  const other = await signIn(platform);
  const opening = open("/slow", other.token).then(
    () => "open",
    () => "refused",
  );
  await platform.get("/api/functions/asked");
  expect((await other.post("/api/auth/signout")).status).toBe(200);
  await platform.get("/api/functions/answer");
  expect(await opening).toBe("refused");
  // With a session that goes on, the same route opens one.
  const socket = await open("/slow", user.token);
  expect(await socket.next()).toEqual({ open: true });
  await socket.close();
});

test("[FN14] a request that is no upgrade is refused", async () => {
  expect((await user.get("/api/functions/echo")).status).toBeGreaterThanOrEqual(400);
});

test("[FN14] it ends with 1001 when the server stops", async () => {
  const own = await testPlatform({ config: CONFIG });
  const socket = await openSocket(`${own.wsUrl}/api/functions/open/last`);
  await socket.next();
  const stopped = own.stop();
  expect((await socket.closed).code).toBe(1001);
  expect(await stopped).toBe(0);
});
