import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { bytesOnDisk, path, randomBytes, until, upload } from "./storage-support.ts";

const MIB = 1024 * 1024;

const mount = (directory: string): boolean =>
  Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", directory]).exitCode === 0;

/** Mounting takes root; without it there is no small disk to fill. */
const smallDisk = temporaryDirectory();
const isMounted = process.platform === "linux" && process.getuid?.() === 0 && mount(smallDisk);

describe.if(isMounted)("a small disk", () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await testPlatform({
      config: { storage: { buckets: { files: {} } } },
      args: ["--data", smallDisk],
    });
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
    expect(Buffer.from(await (await platform.service.fetch(path("files", "kept"))).arrayBuffer()).equals(kept)).toBe(
      true,
    );
    for (const { key } of records.body.objects) {
      if (key !== "kept") expect((await platform.service.delete(path("files", key))).status).toBe(200);
    }
    await until("there is room", () => onDisk().length === 1);
    expect((await upload(platform.service, "files", "again", randomBytes(3 * MIB))).status).toBe(201);
    // A disk of this size never has as much room as a healthy server asks for.
    expect((await platform.get("/api/health")).status).toBe(503);
  }, 60_000);
});
