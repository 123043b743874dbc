import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../../../src/kernel/logger.ts";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";
import { SERVICE_KEY } from "../../support/platform.ts";
import { timedPlatform } from "../../support/timed-platform.ts";
import { until } from "../../support/until.ts";
import { runCommand } from "./backup-support.ts";

let folder: string;
let platform: TestPlatform;
beforeAll(async () => {
  folder = temporaryDirectory();
  const backups = { schedule: "0 0 1 1 *", keep: 3, to: { folder } };
  platform = await testPlatform({ config: { kv: { cache: {} }, backups } });
  await platform.service.post("/api/kv/cache", { action: "set", key: "a", value: 1 });
});
afterAll(() => platform.stop());

test("[BK101] after a restart /metrics has the last backup at the destination", async () => {
  const metrics = async () => (await platform.service.fetch("/metrics")).text();
  expect(await metrics()).toContain("platform_backup_last_timestamp_seconds 0\n");
  writeFileSync(join(folder, "platform-2026-01-31T02-00-00Z.tar.zst"), "archive");
  await platform.restart();
  await until("the last backup is known", async () => /last_timestamp_seconds [1-9]/.test(await metrics()));
  const seconds = Date.parse("2026-01-31T02:00:00Z") / 1000;
  expect(await metrics()).toContain(`platform_backup_last_timestamp_seconds ${seconds}\n`);
  expect(await metrics()).toContain("platform_backup_last_size_bytes 7\n");
});

test("[BK20] the process of a scheduled backup makes one that can be restored", async () => {
  const { dataDirectory } = platform;
  const place = join(temporaryDirectory(), "backups");
  const job = { dataDirectory, owner: { id: "me", directory: dataDirectory }, keep: 1, to: { folder: place } };
  const child = Bun.spawn([...platformCommand(), "backup-job"], {
    env: testEnvironment(),
    stdin: Buffer.from(JSON.stringify(job)),
    stdout: "pipe",
    stderr: "inherit",
  });
  const { name } = JSON.parse(await child.stdout.text());
  expect(name).toMatch(/^platform-.*\.tar\.zst$/);
  const data = join(temporaryDirectory(), "data");
  expect(await runCommand(["restore", join(place, name), "--data", data])).toMatchObject({ code: 0 });
});

test("[BK20] [BK201] a server makes backups by itself, and reports them in the log and in /metrics", async () => {
  const place = join(temporaryDirectory(), "backups");
  const logged: string[] = [];
  const log = (message: string): void => void logged.push(message);
  const logger: Logger = { info: log, warn: log, error: log };
  const backups = { schedule: "0 3 * * *", keep: 3, to: { folder: place } };
  const timed = await timedPlatform({ backups }, { logger });
  timed.clock.advance(24 * 60 * 60 * 1_000);
  await until("a backup was attempted", () => logged.some((message) => message.includes("a backup")));
  expect(logged).toContain("a backup was made");
  expect(readdirSync(place).filter((name) => name.endsWith(".tar.zst"))).toHaveLength(1);
  const answer = await timed.fetch("/metrics", { headers: { "x-platform-service-key": SERVICE_KEY } });
  const metrics = await answer.text();
  expect(metrics).toContain("platform_backups_made_total 1\n");
  expect(metrics).toContain("platform_backups_failed_total 0\n");
  expect(metrics).toMatch(/^platform_backup_last_size_bytes [1-9]/m);
  const jobs = await timed.fetch("/api/admin/jobs?name=platform.backup", {
    headers: { "x-platform-service-key": SERVICE_KEY },
  });
  expect(await jobs.json()).toMatchObject({
    jobs: [{ attempt: 1, data: { scheduledAt: "2026-01-01T03:00:00.000Z" } }],
  });
  await timed.stop();
});
