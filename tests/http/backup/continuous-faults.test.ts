import { expect, test } from "bun:test";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { startFaultyStore } from "../../support/faulty-store.ts";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";
import { random, testSeed } from "../../support/random.ts";
import { startS3Server } from "../../support/s3-server.ts";
import { until } from "../storage/storage-support.ts";
import { continuousOf, differences, numbersIn, untilStored, upTo } from "./continuous-support.ts";

const NOTES = "/api/db/shared/tables/notes";
const ACCESS = { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "s" };
const seed = testSeed(1);

const toS3 = (endpoint: string, prefix = "server") => `{
  databases: { shared: { tables: { notes: { schema: { n: { type: "integer" } } } } } },
  backups: { continuous: { everyMs: 250, verify: false, to: { s3: {
    endpoint: ${JSON.stringify(endpoint)}, bucket: "b", accessKeyId: "a", secretAccessKey: "s", prefix: ${JSON.stringify(prefix)} } } } } }`;

const add = async (platform: TestPlatform, n: number) => {
  expect((await platform.service.post(NOTES, { n })).status).toBe(201);
};

async function restoredFrom(endpoint: string): Promise<string> {
  const data = join(temporaryDirectory(), "copy");
  const child = Bun.spawn([...platformCommand(), "restore", "s3://b/server", "--data", data], {
    env: { ...testEnvironment(), ...ACCESS, AWS_ENDPOINT_URL: endpoint },
    cwd: temporaryDirectory(),
    stdout: "ignore",
    stderr: "pipe",
  });
  const stderr = await child.stderr.text();
  expect([await child.exited, stderr]).toEqual([0, expect.any(String)]);
  return data;
}

test("[BK382] a store that ignores the conditions of writes is refused: the server starts, and health says why", async () => {
  const store = startS3Server("b");
  store.weak = true;
  const platform = await testPlatform({ config: toS3(store.endpoint) });
  await add(platform, 0);
  await until(
    "health says why",
    async () => (await continuousOf(platform)).message?.includes("If-None-Match") === true,
    40_000,
  );
  expect(await continuousOf(platform)).toMatchObject({ ok: false });
  expect((await platform.service.get<{ status: string }>("/api/health?full")).body.status).toBe("degraded");
  expect([...store.objects.keys()]).toEqual([]);
  store.weak = false;
  await untilStored(platform);
  expect(await continuousOf(platform)).toMatchObject({ ok: true, message: null });
  await platform.stop();
  await store.stop();
}, 140_000);

test("[BK383] of two servers with one copied directory both say so, and the later one is ok", async () => {
  const store = startS3Server("b");
  const first = await testPlatform({ config: toS3(store.endpoint) });
  await add(first, 0);
  await untilStored(first);
  await first.kill("SIGTERM");
  const copy = join(temporaryDirectory(), "data");
  cpSync(first.dataDirectory, copy, { recursive: true });
  await first.restart();
  await untilStored(first);
  const second = await testPlatform({ config: toS3(store.endpoint), data: copy });
  await untilStored(second);
  await add(first, 1);
  await until("the earlier one says so", async () => (await continuousOf(first)).message?.includes("later") === true);
  // Its next manifest, which a verification brings about, is when the later one looks.
  expect((await second.service.post("/api/admin/backups/continuous/verify")).status).toBe(202);
  await until(
    "the later one says so",
    async () => (await continuousOf(second)).message?.includes("another server") === true,
    90_000,
  );
  expect(await continuousOf(second)).toMatchObject({ ok: true });
  expect(await continuousOf(first)).toMatchObject({ ok: false });
  for (const platform of [first, second]) await platform.stop();
  await store.stop();
}, 140_000);

test(`[BK384] errors, throttling, lost answers and lists that lag lose nothing, and slow no write (seed ${seed})`, async () => {
  const faulty = await startFaultyStore("b", random(seed));
  const platform = await testPlatform({ config: toS3(faulty.endpoint) });
  await add(platform, 0);
  await untilStored(platform);
  faulty.chance = 0.4;
  let n = 1;
  for (let round = 0; round < 40; round++) {
    for (const each of upTo(3)) await add(platform, n + each);
    n += 3;
    await Bun.sleep(250);
  }
  expect(Object.values(faulty.met).reduce((sum, count) => sum + count)).toBeGreaterThan(10);
  faulty.chance = 0;
  await until(
    "everything is stored",
    async () => {
      const { ok, lagMs } = await continuousOf(platform);
      return ok && lagMs === 0;
    },
    90_000,
  );
  await platform.kill("SIGTERM");
  const data = await restoredFrom(faulty.endpoint);
  expect(numbersIn(data, "databases/shared", "notes")).toEqual(upTo(n));
  for (const path of ["databases/shared", "system"]) {
    const found = differences(join(platform.dataDirectory, `${path}.db`), join(data, `${path}.db`));
    expect([path, found]).toEqual([path, []]);
  }
  await platform.stop();
  await faulty.stop();
}, 300_000);
