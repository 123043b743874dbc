import { afterEach, beforeEach, expect, test } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { attemptStart } from "../../support/start-attempt.ts";
import { runCommand } from "../backup/backup-support.ts";
import { path, randomBytes, until, upload } from "./storage-support.ts";

const DAY_AND_MORE_MS = 25 * 60 * 60 * 1000;
/** Several servers are started one after the other. */
const STARTS_TIMEOUT_MS = 60_000;
const MARKER = "films/platform-owner.json";
const UNKNOWN = "films/00000000-0000-7000-8000-0000000000aa";
const UNKNOWN_LATER = "films/00000000-0000-7000-8000-0000000000bb";

let s3: S3Server;
const running: TestPlatform[] = [];
beforeEach(() => {
  s3 = startS3Server("attic");
});
afterEach(async () => {
  for (const platform of running.splice(0)) await platform.stop();
  await s3.stop();
});

const configOf = () => ({
  storage: {
    buckets: {
      films: {
        backend: {
          s3: {
            ...{ endpoint: s3.endpoint, bucket: "attic", region: "x", prefix: "films/" },
            ...{ accessKeyId: "id", secretAccessKey: "s" },
          },
        },
        thumbs: ["8x8"],
        access: { read: true, write: true, delete: true },
      },
      local: { access: { read: true, write: true, delete: true } },
    },
  },
});

async function start(options: { args?: string[]; env?: Record<string, string> } = {}): Promise<TestPlatform> {
  const platform = await testPlatform({ config: configOf(), ...options });
  running.push(platform);
  return platform;
}

/** Puts an object there that is named like a file and that no record knows. */
const plant = (key: string) =>
  fetch(`${s3.endpoint}/attic/${key}`, { method: "PUT", headers: { authorization: "AWS4-HMAC-SHA256" }, body: "x" });
const refusalOf = (problem: unknown): string => (problem instanceof Error ? problem.message : "started");

test(
  "[ST102] a prefix that belongs to another data directory is refused at start, by name",
  async () => {
    const first = await start();
    await upload(first.service, "films", "a", "kept");
    const refused = refusalOf(await start().catch((problem: unknown) => problem));
    expect(refused).toContain("platform ended with 1");
    expect(refused).toContain(
      `bucket "attic", prefix "films/", belongs to the data directory ${first.dataDirectory} on`,
    );
    expect(refused).toContain("--take-over");
    // Also when the other one does not run, and its own server comes back.
    await first.restart();
    expect(await (await first.fetch(path("films", "a"))).text()).toBe("kept");
  },
  STARTS_TIMEOUT_MS,
);

test(
  "[ST102] --take-over takes a prefix over, and the server that had it is refused from then on",
  async () => {
    const first = await start();
    await upload(first.service, "films", "a", "kept");
    const data = join(temporaryDirectory(), "data");
    cpSync(first.dataDirectory, data, { recursive: true });
    await first.kill();
    rmSync(join(data, "owner-id"));
    const second = await start({ args: ["--data", data, "--take-over"] });
    expect(await (await second.fetch(path("films", "a"))).text()).toBe("kept");
    expect((await upload(second.service, "films", "b", "new")).status).toBe(201);
    const attempt = await attemptStart({ configFile: first.configFile, dataDirectory: first.dataDirectory });
    expect([attempt.hasStarted, attempt.exitCode]).toEqual([false, 1]);
    expect(attempt.stderr).toContain(`belongs to the data directory ${data}`);
  },
  STARTS_TIMEOUT_MS,
);

test(
  "[ST102] an empty data directory does not take a prefix that has files and no marker",
  async () => {
    const first = await start();
    await upload(first.service, "films", "a", "kept");
    await first.kill();
    await fetch(`${s3.endpoint}/attic/${MARKER}`, {
      ...{ method: "DELETE", headers: { authorization: "AWS4-HMAC-SHA256" } },
    });
    const refused = refusalOf(await start().catch((problem: unknown) => problem));
    expect(refused).toContain("holds files that this data directory does not know");
    await first.restart();
    expect(s3.objects.has(MARKER)).toBe(true);
  },
  STARTS_TIMEOUT_MS,
);

test(
  "[ST102] a store that does not answer at start is asked before the first write",
  async () => {
    const first = await start();
    await first.kill();
    s3.failing = true;
    const second = await start();
    expect(second.stderr()).toContain("does not answer");
    expect((await upload(second.service, "films", "a", "x")).status).toBe(503);
    s3.failing = false;
    expect((await upload(second.service, "films", "a", "x")).status).toBe(503);
    expect([...s3.objects.keys()]).toEqual([MARKER]);
    await until("the reason is logged", () => second.stderr().includes("belongs to the data directory"));
  },
  STARTS_TIMEOUT_MS,
);

test(
  "[ST103] an object that no record names is deleted by the sweep after a day, not before",
  async () => {
    const platform = await start();
    await upload(platform.service, "films", "a", "kept");
    await platform.kill();
    await plant(UNKNOWN_LATER);
    s3.age(DAY_AND_MORE_MS);
    await plant(UNKNOWN);
    await platform.restart();
    // The sweep goes through them in the order of their names.
    await until("the old one is gone", () => !s3.objects.has(UNKNOWN_LATER));
    expect(s3.objects.has(UNKNOWN)).toBe(true);
    s3.age(DAY_AND_MORE_MS);
    await platform.restart();
    await until("the other one is gone", () => !s3.objects.has(UNKNOWN));
    expect(await (await platform.fetch(path("films", "a"))).text()).toBe("kept");
  },
  STARTS_TIMEOUT_MS,
);

test(
  "[ST104] a drill on a restored copy changes nothing in the object store, and reads it",
  async () => {
    const first = await start();
    const content = randomBytes(400_000);
    await upload(first.service, "films", "a", content);
    const archive = join(temporaryDirectory(), "b.tar.zst");
    expect((await runCommand(["backup", archive, "--data", first.dataDirectory])).code).toBe(0);
    await upload(first.service, "films", "later", "since the backup");
    await plant(UNKNOWN);
    s3.age(DAY_AND_MORE_MS);
    const before = [...s3.objects];
    const data = join(temporaryDirectory(), "data");
    expect((await runCommand(["restore", archive, "--data", data])).code).toBe(0);

    const drill = await start({ args: ["--data", data, "--drill"] });
    const back = await drill.fetch(path("films", "a"));
    expect(Buffer.from(await back.arrayBuffer()).equals(content)).toBe(true);
    expect((await upload(drill.service, "films", "b", "new")).status).toBe(503);
    expect((await drill.service.delete(path("films", "a"))).status).toBe(503);
    const batch = await drill.service.post("/api/storage/films/delete-batch", { keys: ["a"] });
    expect(batch.status).toBe(503);
    const create = await drill.service.post("/api/storage/films/multipart/create", { key: "c" });
    expect(create.status).toBe(503);
    expect((await upload(drill.service, "local", "b", "new")).status).toBe(201);
    expect(await (await drill.fetch(path("local", "b"))).text()).toBe("new");
    await drill.stop();
    expect([...s3.objects]).toEqual(before);
  },
  STARTS_TIMEOUT_MS,
);
