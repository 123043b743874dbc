import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import type { AddressInfo, Server } from "node:net";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { until } from "../../support/until.ts";
import { fcmConfig, logsOf, pushWorld, register, TITLED } from "../push/push-support.ts";

const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

/** Counts the connections to the mail server. */
let mailServer: Server;
let mailConnections = 0;
let platform: TestPlatform;
let world: Awaited<ReturnType<typeof pushWorld>>;

beforeAll(async () => {
  mailServer = createServer((socket) => {
    mailConnections++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => void mailServer.listen(0, "127.0.0.1", resolve));
  // A TCP server's address is an object.
  const { port } = mailServer.address() as AddressInfo;
  world = await pushWorld();
  const config = {
    push: { fcm: fcmConfig(world.fcm) },
    auth: { magicLink: true, mail: { smtp: { host: "127.0.0.1", port } } },
    databases: { shared: { tables: { notes: { access: { read: true } } } } },
  };
  platform = await testPlatform({ config, args: ["--drill"] });
}, 60_000);
afterAll(async () => {
  await platform.stop();
  await world.stop();
  mailServer.close();
});

test("[CL100] every answer of a drill has the drill header, and its health says so", async () => {
  for (const [path, status] of [
    ["/api/health", 200],
    ["/api/db/shared/tables/notes", 200],
    ["/api/db/shared/tables/none", 404],
    ["/nowhere", 404],
    ["/swagger", 200],
    ["/metrics", 401],
  ] as const) {
    const answer = await platform.fetch(path);
    expect([path, answer.status, answer.headers.get("x-platform-drill")]).toEqual([path, status, "1"]);
  }
  const preflight = await platform.fetch("/api/health", {
    method: "OPTIONS",
    headers: { origin: "https://a.example" },
  });
  expect(preflight.headers.get("x-platform-drill")).toBe("1");
  expect(preflight.headers.get("access-control-expose-headers")).toContain("x-platform-drill");
  expect((await platform.get("/api/health")).body).toMatchObject({ status: "ok", drill: true });
  expect((await platform.fetch("/api/health", { method: "DELETE" })).headers.get("x-platform-drill")).toBe("1");
});

test("[CL100] the answer to a WebSocket upgrade has the drill header", async () => {
  const { host, port } = new URL(platform.url);
  const answer = Promise.withResolvers<string>();
  const socket = connect(Number(port), "127.0.0.1", () => {
    const upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13";
    const key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==";
    socket.write(`GET /api/realtime HTTP/1.1\r\nHost: ${host}\r\n${upgrade}\r\n${key}\r\n\r\n`);
  });
  socket.once("data", (bytes) => answer.resolve(bytes.toString("latin1").toLowerCase()));
  const head = await answer.promise;
  socket.destroy();
  expect(head).toStartWith("http/1.1 101");
  expect(head).toContain("x-platform-drill: 1");
});

test("[CL100] a drill keeps its mail in the outbox, marked, and answers as usual", async () => {
  const answer = await platform.post("/api/auth/signin/magic-link", { email: "anna@example.com" });
  expect(answer.status).toBe(200);
  const outbox = join(platform.dataDirectory, "outbox");
  const [name = ""] = readdirSync(outbox);
  const mail: unknown = JSON.parse(readFileSync(join(outbox, name), "utf8"));
  expect(mail).toMatchObject({ to: "anna@example.com", drill: true });
  expect(mailConnections).toBe(0);
  expect(platform.stderr()).toContain("A drill sends no mail");
});

test("[CL100] a drill sends no push messages and answers as usual", async () => {
  const user = await signIn(platform);
  await register(user, "phone");
  const answer = await platform.service.post("/api/push/send", { userId: user.id, ...TITLED });
  expect([answer.status, answer.body]).toEqual([200, { ok: true, sent: 1, failed: 0 }]);
  expect(await logsOf(platform)).toMatchObject([{ status: "sent", error: "Not sent: this server runs as a drill" }]);
  expect(world.fcm.calls).toEqual([]);
  expect(platform.stderr()).toContain("a drill sends no push messages");
});

test("[CL100] PLATFORM_DRILL has the effect of --drill and accepts 1, true, 0 and false", async () => {
  const startWith = async (value: string): Promise<string | null> => {
    const server = await testPlatform({ config: {}, env: { PLATFORM_DRILL: value } });
    const header = (await server.fetch("/api/health")).headers.get("x-platform-drill");
    await server.stop();
    return header;
  };
  expect(await Promise.all(["1", "true", "0", ""].map(startWith))).toEqual(["1", "1", null, null]);
  expect(String(await startWith("on").catch((cause: unknown) => cause))).toContain("ended with 2");
}, 30_000);

interface Job {
  name: string;
  state: string;
  attempt: number;
  waitingFor: string | null;
}

test("[CL100] [TG14] [JB16] [JB45] nothing outside is called, nothing runs, and what waits goes out once it is no drill", async () => {
  const called: string[] = [];
  const outside = Bun.serve({
    port: 0,
    fetch(request) {
      called.push(`${request.method} ${new URL(request.url).pathname}`);
      return new Response(null, { status: 204 });
    },
  });
  const open = "{ read: true, insert: true, update: true, delete: true }";
  const store = `{ endpoint: "${outside.url.origin}", bucket: "b", accessKeyId: "id", secretAccessKey: "s" }`;
  const config = `{
    databases: { shared: { tables: { notes: { access: ${open} }, ran: { schema: { what: { type: "string" } } } } } },
    webhooks: { hook: { on: { table: "shared.notes" }, url: "${outside.url.origin}/hook", secret: "${WEBHOOK_SECRET}" } },
    triggers: { noted: { on: { table: "shared.notes" },
      run: ({ app }) => app.db("shared").table("ran").insert({ what: "trigger" }) } },
    backups: { schedule: "* * * * *", keep: 1, verify: true, to: { s3: ${store} } },
  }`;
  const drill = await testPlatform({ config, args: ["--drill"] });
  expect((await drill.post("/api/db/shared/tables/notes", { text: "x" })).status).toBe(201);
  const jobs = async () => (await drill.service.get<{ jobs: Job[] }>("/api/admin/jobs")).body.jobs;
  await until("both wait", async () => (await jobs()).length === 2);
  expect((await jobs()).map(({ state, waitingFor, attempt }) => [state, waitingFor, attempt])).toEqual([
    ["waiting", "drill", 0],
    ["waiting", "drill", 0],
  ]);
  // A new start passes over what waits, too.
  await drill.restart();
  expect((await jobs()).map(({ name }) => name).sort()).toEqual(["trigger:noted", "webhook:hook"]);
  expect((await drill.service.get("/api/db/shared/tables/ran")).body).toMatchObject({ items: [], total: 0 });
  expect(called).toEqual([]);
  await drill.kill("SIGTERM");

  const without = await testPlatform({
    config: config.replace(/backups: .*/, ""),
    args: ["--data", drill.dataDirectory],
  });
  await until("the webhook is called", () => called.length > 0);
  expect(called).toEqual(["POST /hook"]);
  const ran = () => without.service.get<{ total: number }>("/api/db/shared/tables/ran");
  await until("the trigger has run", async () => (await ran()).body.total === 1);
  await without.stop();
  await drill.stop();
  await outside.stop(true);
}, 60_000);
