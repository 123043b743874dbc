import { afterAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "../http/backup/backup-support.ts";
import { randomBytes, upload } from "../http/storage/storage-support.ts";
import { temporaryDirectory, testPlatform } from "../support/index.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const disk = mountSmallDisk(4);
afterAll(() => disk?.unmount());

if (disk === null) console.warn("no backup on a full disk is tested: this process may not mount one");

test.if(disk !== null)(
  "[BK8][BK12] a disk without room is told, and neither a backup nor a restore leaves anything on it",
  async () => {
    const directory = disk?.directory ?? "";
    const platform = await testPlatform({ config: { storage: { buckets: { files: {} } } } });
    await upload(platform.service, "files", "large", randomBytes(6 * 1024 * 1024));
    const full = await runCommand(["backup", join(directory, "b.tar.zst"), "--data", platform.dataDirectory]);
    expect([full.code, full.stderr]).toEqual([1, expect.stringContaining("not enough space for the backup")]);
    expect(readdirSync(directory)).toEqual([]);
    const file = join(temporaryDirectory(), "b.tar.zst");
    expect(await runCommand(["backup", file, "--data", platform.dataDirectory])).toMatchObject({ code: 0 });
    const restored = await runCommand(["restore", file, "--data", join(directory, "data")]);
    expect([restored.code, restored.stderr]).toEqual([1, expect.stringContaining("not enough space for the restore")]);
    expect(readdirSync(directory)).toEqual([]);
    await platform.stop();
  },
);
