import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createPlatform, defineConfig } from "platform";
import { SERVICE_KEY, type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";

setDefaultTimeout(60_000);

/** Time that container runtimes wait after SIGTERM before they kill. */
const KILLED_AFTER_MS = 10_000;

/** Stops as `docker stop` does: the exit code, or 137 where it had to be killed. */
async function dockerStop({ process: child }: TestPlatform): Promise<number> {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), KILLED_AFTER_MS);
  await child.exited;
  clearTimeout(timer);
  return child.exitCode ?? 137;
}

/** A request whose body comes byte by byte and never ends. */
async function slowUpload(platform: TestPlatform, path: string): Promise<Socket> {
  const { hostname, port } = new URL(platform.url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  socket.write(
    `PUT ${path} HTTP/1.1\r\nhost: ${hostname}\r\nx-platform-service-key: ${SERVICE_KEY}\r\n` +
      "content-type: application/octet-stream\r\ncontent-length: 1000000\r\n\r\n",
  );
  const timer = setInterval(() => socket.write("x"), 50);
  socket.once("close", () => clearInterval(timer));
  return socket;
}

test("[CL112] SIGTERM beside uploads, queries and rules that do not end: exit code 0 before a container is killed", async () => {
  const platform = await testPlatform({
    config: `{
      storage: { buckets: { files: {} } },
      d1: { main: {} },
      databases: { shared: { tables: {
        stuck: { access: { read: () => new Promise(() => {}) } },
        notes: { access: { insert: true } },
      } } },
      kv: { settings: {} },
    }`,
  });
  const { service } = platform;
  expect((await service.post("/api/db/shared/tables/notes", { id: "a" })).status).toBe(201);
  const signed = await service.post<{ url: string }>("/api/storage/files/signed-upload-url", { key: "slow" });
  const uploads = [
    await slowUpload(
      platform,
      new URL(signed.body.url, platform.url).pathname + new URL(signed.body.url, platform.url).search,
    ),
    await slowUpload(platform, "/api/storage/files/upload"),
  ];
  const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
  const underWay = Promise.allSettled([
    platform.get("/api/db/shared/tables/stuck"),
    service.post("/api/d1/main", { query: endless }),
  ]);
  await Bun.sleep(500);
  expect([await dockerStop(platform), platform.stderr()]).toEqual([0, expect.not.stringContaining("failed to stop")]);
  await underWay;
  for (const socket of uploads) socket.destroy();
  const left = readdirSync(join(platform.dataDirectory, "databases"));
  expect(left).toEqual(["shared.db"]);
  await platform.stop();
});

test("[HT130] a platform listens once: a second listen is refused, and the stop leaves no port serving", async () => {
  const platform = await createPlatform(defineConfig({}), { data: join(temporaryDirectory(), "data") });
  const { url } = await platform.listen({ port: 0 });
  await expect(platform.listen({ port: 0 })).rejects.toThrow(`It listens already, on ${url}`);
  expect((await fetch(`${url}/api/health`)).status).toBe(200);
  await Promise.all([platform.stop(), platform.stop()]);
  await expect(fetch(`${url}/api/health`)).rejects.toThrow();
  await expect(platform.listen({ port: 0 })).rejects.toThrow("It was stopped");
});

test("[TB147] a stop waits for the hooks after writes, and for those that their own writes set off", async () => {
  const platform = await testPlatform({
    config: `{
      kv: { settings: {} },
      databases: { shared: { tables: {
        orders: { hooks: { afterInsert: async (_auth, record, app) => {
          await Bun.sleep(700);
          await app.db("shared").table("audit").insert({ id: "first-" + record.id });
        } } },
        audit: { hooks: { afterInsert: async (_auth, record, app) => { await Bun.sleep(300); await app.kv("settings").set(record.id, "second"); } } },
        endless: { hooks: { afterInsert: () => new Promise(() => {}) } },
      } } },
    }`,
  });
  const { service } = platform;
  const path = (table: string) => `/api/db/shared/tables/${table}`;
  const inserts = ["a", "b", "c"].map((id) => ({ id }));
  expect((await service.post(`${path("orders")}/batch`, { inserts })).status).toBe(200);
  await platform.restart();
  expect((await service.get<{ total: number }>(`${path("audit")}/count`)).body.total).toBe(3);
  for (const { id } of inserts) {
    const { body } = await service.post("/api/kv/settings", { action: "get", key: `first-${id}` });
    expect(body).toEqual({ value: "second" });
  }
  expect((await service.post(path("endless"), { id: "a" })).status).toBe(201);
  expect(await dockerStop(platform)).toBe(0);
  expect(platform.stderr() + platform.stdout()).toContain("hooks after writes had not ended");
  await platform.stop();
});

test("[DB11] what goes on after the stop, as that of a client who left, is 503, opens no file and is no error of the log", async () => {
  const data = join(temporaryDirectory(), "data");
  const errors: string[] = [];
  const logger = { info() {}, warn() {}, error: (message: string) => void errors.push(message) };
  const stopped = Promise.withResolvers<boolean>();
  const insert = (_auth: unknown, { id }: { id?: unknown }) => (id === "late" ? stopped.promise : true);
  const tables = { notes: { access: { insert } } };
  const platform = await createPlatform(
    defineConfig({ databases: { clubs: { instance: true, access: { create: true, open: true }, tables } } }),
    { data, logger },
  );
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const request = new Request(`http://localhost/api/${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    return (await platform.fetch(request)).status;
  };
  expect(await post("db/clubs/red/tables/notes", { id: "early" })).toBe(201);
  const signUps = Array.from({ length: 20 }, (_, n) =>
    post("auth/signup", { email: `late-${n}@example.com`, password: "correct horse battery" }),
  );
  const late = ["red", "blue"].map((instance) => post(`db/clubs/${instance}/tables/notes`, { id: "late" }));
  await platform.stop();
  stopped.resolve(true);
  expect(await Promise.all(late)).toEqual([503, 503]);
  // Their hashes took longer than the stop, apart from the first ones.
  const statuses = await Promise.all(signUps);
  expect(statuses.filter((status) => status !== 201 && status !== 503)).toEqual([]);
  expect(statuses.at(-1)).toBe(503);
  expect(errors).toEqual([]);
  const open = readdirSync("/proc/self/fd").map((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`);
    } catch {
      // The descriptor that the directory was read with.
      return "";
    }
  });
  expect(open.filter((path) => path.startsWith(data))).toEqual([]);
});
