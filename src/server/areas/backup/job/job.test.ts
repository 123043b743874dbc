import { beforeAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory, testClock, testPlatform } from "../../../../../tests/support/index.ts";
import { isOwnName } from "../destination/names.ts";
import { runBackupJob } from "./job.ts";

let dataDirectory: string;
beforeAll(async () => {
  const platform = await testPlatform({ config: { kv: { cache: {} } } });
  await platform.kill("SIGTERM");
  dataDirectory = platform.dataDirectory;
});

test("[BK304] backups that begin in one second replace none, also when the later one does not hold", async () => {
  const folder = join(temporaryDirectory(), "backups");
  const job = { dataDirectory, owner: { id: "own", directory: dataDirectory }, keep: 5, verify: true, to: { folder } };
  const clock = testClock(Date.UTC(2026, 0, 31, 2, 30));
  const { signal } = new AbortController();
  const opened = () => Promise.resolve();
  const refused = () => Promise.reject(new Error("it does not open"));
  const make = (tryOpening: () => Promise<void>) => runBackupJob(job, { clock, signal, tryOpening });
  const names = () =>
    readdirSync(folder)
      .filter((name) => name.startsWith("platform-"))
      .sort();

  const first = "platform-2026-01-31T02-30-00Z.tar.zst";
  const second = "platform-2026-01-31T02-30-01Z.tar.zst";
  expect((await make(opened)).name).toBe(first);
  await expect(make(refused)).rejects.toThrow("it does not open");
  expect(names()).toEqual([first, `${second}.failed`]);
  await expect(make(refused)).rejects.toThrow("it does not open");
  expect(names()).toEqual([first, "platform-2026-01-31T02-30-02Z.tar.zst.failed"]);
  const fourth = "platform-2026-01-31T02-30-03Z.tar.zst";
  expect((await make(opened)).name).toBe(fourth);
  expect(names()).toEqual([first, "platform-2026-01-31T02-30-02Z.tar.zst.failed", fourth]);
});

test("[BK304] of backups that are made within one second, the latest are kept", async () => {
  const folder = join(temporaryDirectory(), "backups");
  const job = { dataDirectory, owner: { id: "own", directory: dataDirectory }, keep: 2, verify: false, to: { folder } };
  const clock = testClock(Date.UTC(2026, 0, 31, 2, 30));
  const made: string[] = [];
  for (let count = 0; count < 4; count++) {
    const { signal } = new AbortController();
    made.push((await runBackupJob(job, { clock, signal, tryOpening: () => Promise.resolve() })).name);
  }
  const kept = readdirSync(folder).filter((name) => name.startsWith("platform-"));
  expect(kept.sort()).toEqual(made.slice(2));
});

test("[BK303] a backup has no name before it is verified: a SIGKILL meanwhile leaves none", async () => {
  const folder = join(temporaryDirectory(), "backups");
  const job = { dataDirectory, owner: { id: "own", directory: dataDirectory }, keep: 1, verify: true, to: { folder } };
  const clock = testClock(Date.UTC(2026, 0, 31, 2, 30));
  const names = () => readdirSync(folder).filter(isOwnName);
  const { signal } = new AbortController();
  const seen: string[][] = [];
  const tryOpening = async (): Promise<void> => void seen.push(names());
  const { name } = await runBackupJob(job, { clock, signal, tryOpening });
  expect([seen, names()]).toEqual([[[]], [name]]);
  // What such a kill leaves is removed by the next backup.
  mkdirSync(join(folder, "platform-2026-01-31T02-30-01Z.tar.zst.partial/archive.verify"), { recursive: true });
  const next = await runBackupJob(job, { clock, signal, tryOpening });
  expect([seen.at(-1), readdirSync(folder).filter((one) => one.startsWith("platform-"))]).toEqual([
    [name],
    [next.name],
  ]);
});
