import { expect, test } from "bun:test";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";

// What the code of a config can do to its server.

const CONFIG = `{
  kv: { notes: {} },
  databases: { shared: { tables: { orders: {
    schema: { kind: { type: "string", required: true } },
    access: { read: true, insert: true },
  } } } },
  jobs: { leaks: { run: () => { (globalThis.leaked ??= []).push(new Uint8Array(96 * 1024 * 1024).fill(1)); } } },
  routes: (api) => api.post("/leak", async ({ app }) => ({ id: await app.jobs.enqueue("leaks", null) }), { access: true }),
  triggers: {
    kills: { on: { table: "shared.orders" }, filter: [["kind", "==", "kills"]], retries: 1,
      run: () => { process.kill(process.pid, "SIGKILL"); return new Promise(() => {}); } },
    blocks: { on: { table: "shared.orders" }, filter: [["kind", "==", "blocks"]],
      run: async ({ app }) => {
        for (const end = Date.now() + 300; Date.now() < end; );
        await app.kv("notes").set("blocked", true);
      } },
  },
}`;

interface Job {
  state: string;
  attempt: number;
}

const insert = (platform: TestPlatform, kind: string) => platform.post("/api/db/shared/tables/orders", { kind });
async function jobOf(platform: TestPlatform, name: string): Promise<Job | undefined> {
  const { body } = await platform.service.get<{ jobs: Job[] }>(`/api/admin/jobs?name=trigger:${name}`);
  return body.jobs[0];
}

test("[JB6] [TG16] a run that kills the process has failed after its tries, and the server then stays up", async () => {
  const platform = await testPlatform({ config: CONFIG });
  expect((await insert(platform, "kills")).status).toBe(201);
  const hasFailed = async () => (await jobOf(platform, "kills").catch(() => undefined))?.state === "failed";
  const isDead = () => platform.process.exitCode !== null || platform.process.signalCode !== null;
  let deaths = 0;
  for (;;) {
    await until("the run has killed the server, or failed", async () => isDead() || (await hasFailed()));
    if (!isDead()) break;
    deaths += 1;
    expect(deaths).toBeLessThanOrEqual(3);
    // It may be killed before it listens.
    await platform.restart().catch(() => {});
  }
  expect(deaths).toBeGreaterThanOrEqual(2);
  expect((await insert(platform, "other")).status).toBe(201);
  await platform.stop();
});

test("[TG16] a run that blocks the event loop delays the server, which goes on afterwards", async () => {
  const platform = await testPlatform({ config: CONFIG });
  await insert(platform, "blocks");
  await until("the run is done", async () => (await jobOf(platform, "blocks"))?.state === "done");
  expect((await platform.get("/api/health")).status).toBe(200);
  await platform.stop();
});

async function residentBytes(platform: TestPlatform): Promise<number> {
  const metrics = await (await platform.service.fetch("/metrics")).text();
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1]);
}

test("[TG16] code that leaks memory takes it from the server until its end, which the metrics show; nothing acknowledged is lost", async () => {
  const platform = await testPlatform({ config: CONFIG });
  const before = await residentBytes(platform);
  const runs = async () => {
    const { body } = await platform.service.get<{ jobs: Job[] }>("/api/admin/jobs?name=leaks&state=done");
    return body.jobs.length;
  };
  for (let n = 0; n < 3; n++) expect((await platform.post("/api/functions/leak")).status).toBe(200);
  await until("they have run", async () => (await runs()) === 3);
  expect((await residentBytes(platform)) - before).toBeGreaterThan(200 * 1024 * 1024);
  expect((await platform.get("/api/health")).status).toBe(200);
  // As the system ends a process that takes too much.
  await platform.kill("SIGKILL");
  await platform.restart();
  expect(await runs()).toBe(3);
  expect((await residentBytes(platform)) - before).toBeLessThan(200 * 1024 * 1024);
  await platform.stop();
});
