import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../support/index.ts";
import { bytesOnDisk, path, randomBytes, type StoredFile, until, upload } from "./storage-support.ts";

const MIB = 1024 * 1024;
const CONFIG = `{
  storage: { buckets: { files: { maxFileSize: ${3 * 1024 * MIB}, access: { read: true, write: true } } } },
  databases: { shared: { tables: { jobs: {
    access: { insert: true },
    hooks: { afterInsert: async (job, app) => {
      const bucket = app.storage("files");
      await bucket.put("by-app", new TextEncoder().encode("from the server"), { contentType: "text/plain", metadata: { by: "app" } });
      const refused = await bucket.put("../x", new Uint8Array(1)).then(() => "stored", (problem) => problem.message);
      const blob = await bucket.get("by-app");
      await bucket.put("report", new Blob([JSON.stringify({
        text: await blob.text(), head: await bucket.head("by-app"), missing: await bucket.get("none"), refused,
        deleted: [await bucket.delete("by-app"), await bucket.delete("by-app")],
        list: (await bucket.list({ prefix: "by-" })).objects.length,
      })]));
    } },
  } } } },
}`;

describe("one server", () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await testPlatform({ config: CONFIG });
  });
  afterAll(() => platform.stop());

  test("[ST80] what was acknowledged outlives a crash, and what it left without a record goes", async () => {
    const content = randomBytes(300_000);
    const acknowledged: string[] = [];
    const writing = (async () => {
      for (let index = 0; index < 200; index++) {
        const answer = await upload(platform.service, "files", `crash/${index}`, content).catch(() => null);
        if (answer?.status === 201) acknowledged.push(answer.body.key);
        if (answer === null) return;
      }
    })();
    await until("some are stored", () => acknowledged.length >= 10);
    await platform.kill("SIGKILL");
    await writing;
    // As a crash between a file and its record, or in the middle of a file, would leave them.
    const objects = join(platform.dataDirectory, "storage/objects");
    mkdirSync(join(objects, "ab"), { recursive: true });
    writeFileSync(join(objects, "ab/00000000-0000-7000-8000-0000000000ab"), "orphan");
    writeFileSync(join(objects, "incoming/00000000-0000-7000-8000-0000000000cd"), "half");
    await platform.restart();
    for (const key of acknowledged) {
      const answer = await platform.fetch(path("files", key));
      expect([key, answer.status, Buffer.from(await answer.arrayBuffer()).equals(content)]).toEqual([key, 200, true]);
    }
    const records = async () =>
      (await platform.service.get<{ objects: unknown[] }>("/api/storage/files", { query: { limit: 1000 } })).body
        .objects.length;
    await until("the orphans are gone", async () => bytesOnDisk(platform, "objects").length === (await records()));
  }, 60_000);

  test("[ST81] the server's own access to a bucket", async () => {
    expect((await platform.service.post("/api/db/shared/tables/jobs", { name: "x" })).status).toBe(201);
    await until("the report is there", async () => (await platform.head(path("files", "report"))).status === 200);
    const report = (await (await platform.fetch(path("files", "report"))).json()) as { head: StoredFile };
    expect(report).toMatchObject({ text: "from the server", missing: null, deleted: [true, false], list: 0 });
    expect(report).toMatchObject({ refused: expect.stringContaining("segments") as unknown as string });
    expect(report.head).toMatchObject({
      key: "by-app",
      size: 15,
      httpMetadata: { contentType: "text/plain" },
      customMetadata: { by: "app" },
    });
  });

  test("[ST7] a gigabyte up and down raises memory by at most 64 MB", async () => {
    await upload(platform.service, "files", "warm", randomBytes(8 * MIB));
    await (await platform.fetch(path("files", "warm"))).arrayBuffer();
    const baseMib = residentMib(platform);
    let peakMib = 0;
    const watch = setInterval(() => {
      peakMib = Math.max(peakMib, residentMib(platform));
    }, 5);
    const chunk = randomBytes(MIB);
    const head = `--X\r\nContent-Disposition: form-data; name="key"\r\n\r\ngib\r\n--X\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n`;
    const body = new ReadableStream<Uint8Array>({
      type: "bytes",
      async start(controller) {
        controller.enqueue(Buffer.from(head));
      },
      pull(controller) {
        sent++;
        controller.enqueue(sent <= 1024 ? chunk.slice() : Buffer.from("\r\n--X--\r\n"));
        if (sent > 1024) controller.close();
      },
    });
    let sent = 0;
    const stored = await platform.service.fetch("/api/storage/files/upload", {
      method: "POST",
      headers: { "content-type": "multipart/form-data; boundary=X" },
      body,
    });
    expect([stored.status, ((await stored.json()) as StoredFile).size]).toEqual([201, 1024 * MIB]);
    const answer = await platform.fetch(path("files", "gib"));
    let received = 0;
    for await (const part of answer.body ?? []) received += part.byteLength;
    clearInterval(watch);
    expect(received).toBe(1024 * MIB);
    expect(peakMib).toBeGreaterThan(0);
    expect(peakMib - baseMib).toBeLessThanOrEqual(64);
    expect((await platform.service.delete(path("files", "gib"))).status).toBe(200);
  }, 120_000);
});

const residentMib = (platform: TestPlatform): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${platform.process.pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

const mount = (directory: string): boolean =>
  Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", directory]).exitCode === 0;

/** Mounting takes root; without it there is no small disk to fill. */
const smallDisk = temporaryDirectory();
const isMounted = process.platform === "linux" && process.getuid?.() === 0 && mount(smallDisk);

describe.if(isMounted)("a small disk", () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await testPlatform({ config: CONFIG, args: ["--data", smallDisk] });
  });
  afterAll(async () => {
    await platform.stop();
    Bun.spawnSync(["umount", smallDisk]);
    rmSync(smallDisk, { recursive: true, force: true });
  });
  const onDisk = () => bytesOnDisk({ ...platform, dataDirectory: smallDisk });

  test("[ST8] a full disk is 507, leaves what was there, and takes files again once there is room", async () => {
    const kept = randomBytes(2 * MIB);
    expect((await upload(platform.service, "files", "kept", kept)).status).toBe(201);
    const statuses: number[] = [];
    for (let index = 0; index < 12 && !statuses.includes(507); index++) {
      statuses.push((await upload(platform.service, "files", `fill/${index}`, randomBytes(3 * MIB))).status);
    }
    expect(statuses.at(-1)).toBe(507);
    expect((await upload(platform.service, "files", "kept", randomBytes(12 * MIB))).status).toBe(507);
    const records = await platform.service.get<{ objects: { key: string }[] }>("/api/storage/files");
    await until("nothing is half-written", () => onDisk().length === records.body.objects.length);
    expect(Buffer.from(await (await platform.fetch(path("files", "kept"))).arrayBuffer()).equals(kept)).toBe(true);
    for (const { key } of records.body.objects) {
      if (key !== "kept") expect((await platform.service.delete(path("files", key))).status).toBe(200);
    }
    await until("there is room", () => onDisk().length === 1);
    expect((await upload(platform.service, "files", "again", randomBytes(3 * MIB))).status).toBe(201);
    expect((await platform.get("/api/health")).status).toBe(200);
  }, 60_000);
});
