import { expect, test } from "bun:test";
import { cpSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { until } from "../storage/storage-support.ts";
import {
  continuousOf,
  differences,
  historyOf,
  numbersIn,
  restored,
  untilStored,
  untilWhole,
  upTo,
} from "./continuous-support.ts";

const NOTES = "/api/db/shared/tables/notes";
const TABLES = `databases: { shared: { tables: { notes: { schema: { n: { type: "integer" }, text: { type: "text" } } } } } },`;

const toFolder = (folder: string) => `{ ${TABLES}
  backups: { continuous: { to: { folder: ${JSON.stringify(folder)} }, everyMs: 250 } } }`;
const toS3 = (store: S3Server) => `{ ${TABLES} backups: { continuous: { everyMs: 250, to: { s3: {
  endpoint: ${JSON.stringify(store.endpoint)}, bucket: "b", accessKeyId: "a", secretAccessKey: "s", prefix: "server" } } } } }`;

const add = async (platform: TestPlatform, n: number, text = "") => {
  expect((await platform.service.post(NOTES, { n, text })).status).toBe(201);
};

/** Runs a command with the access to the object store. */
async function withAccess(
  store: S3Server,
  ...args: string[]
): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = {
    ...testEnvironment(),
    AWS_ACCESS_KEY_ID: "a",
    AWS_SECRET_ACCESS_KEY: "s",
    AWS_ENDPOINT_URL: store.endpoint,
  };
  const child = Bun.spawn([...platformCommand(), ...args], {
    env,
    cwd: temporaryDirectory(),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

test("[BK340] an object store is restored from s3://bucket/prefix; while it fails, writes go on, and health says so", async () => {
  const store = startS3Server("b");
  const platform = await testPlatform({ config: toS3(store) });
  for (const n of upTo(10)) await add(platform, n);
  await untilStored(platform);
  store.failing = true;
  for (const n of upTo(10)) await add(platform, 10 + n);
  await until("health is not ok", async () => !(await continuousOf(platform)).ok, 40_000);
  expect(await continuousOf(platform)).toMatchObject({ ok: false, message: expect.stringContaining("object store") });
  for (const n of upTo(10)) await add(platform, 20 + n);
  store.failing = false;
  await until(
    "everything is stored",
    async () => {
      const { ok, lagMs } = await continuousOf(platform);
      return ok && lagMs === 0;
    },
    40_000,
  );
  await platform.kill("SIGKILL");
  const data = join(temporaryDirectory(), "copy");
  expect(await withAccess(store, "restore", "s3://b/server", "--data", data)).toMatchObject({ code: 0 });
  expect(numbersIn(data, "databases/shared", "notes")).toEqual(upTo(30));
  const history = await withAccess(store, "history", "s3://b/server", "--json");
  expect(JSON.parse(history.stdout).gaps).toEqual([]);
  expect((await withAccess(store, "history", "s3://b/other")).code).toBe(1);
  await platform.stop();
  await store.stop();
}, 140_000);

test("[BK340] a store that is dead stops neither start nor stop", async () => {
  const store = startS3Server("b");
  store.failing = true;
  const platform = await testPlatform({ config: toS3(store) });
  await add(platform, 0);
  expect(await platform.kill("SIGTERM")).toBe(0);
  await platform.stop();
  await store.stop();
});

test("[BK341] a place belongs to one data directory, and --take-over gives it to another", async () => {
  const place = join(temporaryDirectory(), "store");
  const first = await testPlatform({ config: toFolder(place) });
  await add(first, 0);
  await first.kill("SIGTERM");
  const second = await testPlatform({ config: toFolder(place) });
  await until(
    "health names the owner",
    async () => (await continuousOf(second)).message?.includes("belongs to") === true,
  );
  expect(await continuousOf(second)).toMatchObject({ ok: false });
  await add(second, 1);
  await second.kill("SIGTERM");
  expect(numbersIn(await restored(place), "databases/shared", "notes")).toEqual([0]);
  const third = await testPlatform({ config: toFolder(place), data: second.dataDirectory, args: ["--take-over"] });
  await untilStored(third);
  await third.kill("SIGTERM");
  expect(numbersIn(await restored(place), "databases/shared", "notes")).toEqual([1]);
  for (const platform of [first, second, third]) await platform.stop();
});

test("[BK342] of two servers with one copied directory the later one stores, and the earlier one says that it does not", async () => {
  const place = join(temporaryDirectory(), "store");
  const first = await testPlatform({ config: toFolder(place) });
  await add(first, 0);
  await untilStored(first);
  await first.kill("SIGTERM");
  const copy = join(temporaryDirectory(), "data");
  cpSync(first.dataDirectory, copy, { recursive: true });
  await first.restart();
  await untilStored(first);
  const second = await testPlatform({ config: toFolder(place), data: copy });
  await add(second, 2);
  await untilStored(second);
  await add(first, 1);
  await until(
    "the earlier one notices",
    async () => (await continuousOf(first)).message?.includes("another server") === true,
  );
  expect(await continuousOf(first)).toMatchObject({ ok: false });
  await add(second, 3);
  await second.kill("SIGTERM");
  await first.kill("SIGTERM");
  const notes = numbersIn(await restored(place), "databases/shared", "notes");
  expect(notes).toEqual([0, 2, 3]);
  for (const platform of [first, second]) await platform.stop();
});

test("[BK343] a file whose entries outgrow it gets a full copy that leaves no gap", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await testPlatform({ config: toFolder(place) });
  await untilWhole(place);
  const random = () => Array.from({ length: 90 }, () => crypto.randomUUID()).join("");
  const { body } = await platform.service.post<{ id: string }>(NOTES, { n: 0, text: random() });
  for (let round = 0; round < 60; round++) {
    const answers = await Promise.all(
      upTo(20).map(() => platform.service.patch(`${NOTES}/${body.id}`, { text: random() })),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    if (existsSync(join(place, "copies"))) break;
  }
  await until("a copy is stored", () => existsSync(join(place, "copies")), 40_000);
  const text = random();
  await platform.service.patch(`${NOTES}/${body.id}`, { text });
  await platform.kill("SIGTERM");
  const copy = await restored(place);
  expect(differences(join(platform.dataDirectory, "databases/shared.db"), join(copy, "databases/shared.db"))).toEqual(
    [],
  );
  expect((await historyOf(place)).gaps).toEqual([]);
  expect(readdirSync(join(place, "copies")).length).toBeGreaterThan(0);
  await platform.stop();
}, 140_000);

test("[BK344] a drill leaves the place alone", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await testPlatform({ config: toFolder(place), args: ["--drill"] });
  await add(platform, 0);
  await platform.kill("SIGTERM");
  expect(existsSync(place)).toBe(false);
  await platform.stop();
});

test("[BK340] what takes too much of the disk is not captured, health says so, and the files are compared when there is room", async () => {
  const store = startS3Server("b");
  const platform = await testPlatform({
    config: toS3(store).replace("everyMs: 250", "everyMs: 250, maxPendingBytes: 1000000"),
  });
  for (const n of upTo(5)) await add(platform, n);
  await untilStored(platform);
  store.failing = true;
  for (const n of upTo(60)) await add(platform, 5 + n, crypto.randomUUID().repeat(800));
  await until(
    "health says so",
    async () => (await continuousOf(platform)).message?.includes("too much of the disk") === true,
  );
  store.failing = false;
  await until(
    "it goes on",
    async () => {
      const { ok, lagMs } = await continuousOf(platform);
      return ok && lagMs === 0;
    },
    40_000,
  );
  await add(platform, 65);
  await platform.kill("SIGTERM");
  const data = join(temporaryDirectory(), "copy");
  expect(await withAccess(store, "restore", "s3://b/server", "--data", data)).toMatchObject({ code: 0 });
  expect(differences(join(platform.dataDirectory, "databases/shared.db"), join(data, "databases/shared.db"))).toEqual(
    [],
  );
  const { gaps } = JSON.parse((await withAccess(store, "history", "s3://b/server", "--json")).stdout);
  expect(gaps).toContainEqual(expect.objectContaining({ file: "databases/shared", reason: "unread" }));
  await platform.stop();
  await store.stop();
}, 140_000);
