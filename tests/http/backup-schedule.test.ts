import { expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory, testPlatform } from "../support/index.ts";
import { runCommand } from "./backup-support.ts";
import { until } from "./storage-support.ts";

// Cron has no seconds: this one takes up to a minute and what a busy machine adds.
const MINUTE_AND_MORE_MS = 100_000;

test("[BK101] after a restart /metrics tells of the last backup that is there", async () => {
  const folder = temporaryDirectory();
  const config = { backups: { schedule: "0 0 1 1 *", keep: 3, to: { folder } } };
  const platform = await testPlatform({ config });
  const metrics = async () => (await platform.service.fetch("/metrics")).text();
  expect(await metrics()).toContain("platform_backup_last_timestamp_seconds 0\n");
  writeFileSync(join(folder, "platform-2026-01-31T02-00-00Z.tar.zst"), "archive");
  await platform.restart();
  await until("the last one is known", async () => /last_timestamp_seconds [1-9]/.test(await metrics()));
  const seconds = Date.parse("2026-01-31T02:00:00Z") / 1000;
  expect(await metrics()).toContain(`platform_backup_last_timestamp_seconds ${seconds}\n`);
  expect(await metrics()).toContain("platform_backup_last_size_bytes 7\n");
  await platform.stop();
}, 30_000);

test(
  "[BK20] a server makes its backups by itself, and tells of them in the log and in /metrics",
  async () => {
    const folder = join(temporaryDirectory(), "backups");
    const platform = await testPlatform({
      config: { kv: { cache: {} }, backups: { schedule: "* * * * *", keep: 3, to: { folder } } },
    });
    await platform.service.post("/api/kv/cache", { action: "set", key: "a", value: 1 });
    const giveUpAt = Date.now() + MINUTE_AND_MORE_MS;
    while (!platform.stderr().includes("a scheduled backup") && Date.now() < giveUpAt) await Bun.sleep(100);
    expect(platform.stderr()).toContain("a scheduled backup was made");
    const [name = ""] = readdirSync(folder);
    expect(name).toMatch(/^platform-.*\.tar\.zst$/);
    const metrics = await (await platform.service.fetch("/metrics")).text();
    expect(metrics).toMatch(/^platform_backups_made_total [1-9]/m);
    expect(metrics).toContain("platform_backups_failed_total 0");
    expect(metrics).toMatch(/^platform_backup_last_size_bytes [1-9]/m);
    const data = join(temporaryDirectory(), "data");
    expect(await runCommand(["restore", join(folder, name), "--data", data])).toMatchObject({ code: 0 });
    await platform.stop();
  },
  MINUTE_AND_MORE_MS + 20_000,
);
