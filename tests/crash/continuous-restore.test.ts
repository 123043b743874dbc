import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { runCommand, startCommand } from "../http/backup/backup-support.ts";
import { numbersIn, untilStored, untilWhole, upTo } from "../http/backup/continuous-support.ts";
import { until, upload } from "../http/storage/storage-support.ts";
import { temporaryDirectory, testPlatform } from "../support/index.ts";

const FILES = 150;
/** Files of which a restore has noted that they are whole when it is killed. */
const RESTORED = 20;

const config = (folder: string) => `{
  databases: { shared: { tables: { notes: { schema: { n: { type: "integer" } } } } } },
  storage: { buckets: { files: {} } },
  backups: { continuous: { to: { folder: ${JSON.stringify(folder)} }, everyMs: 250, verify: false } },
}`;

/** Begins a restore, and kills it once some of its files are whole. Returns the inode of each of them, by path. */
async function killed(place: string, data: string): Promise<Map<string, number>> {
  const partial = join(data, "restore.partial");
  const log = join(partial, "restored.jsonl");
  const child = startCommand(["restore", place, "--data", data]);
  const lines = () => (existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n").slice(1) : []);
  while (lines().length < RESTORED && child.exitCode === null) await Bun.sleep(1);
  child.kill("SIGKILL");
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
  // The last line may be cut off.
  const paths = lines()
    .slice(0, -1)
    .map((line) => JSON.parse(line)[0] as string);
  expect(paths.length).toBeGreaterThanOrEqual(RESTORED - 1);
  return new Map(paths.map((path) => [path, statSync(join(partial, "files", path)).ino]));
}

test("[BK387] a restore that was killed is taken up by the next one of the same moment, and not by one of another", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await testPlatform({ config: config(place) });
  await platform.service.post("/api/db/shared/tables/notes", { n: 0 });
  for (const n of upTo(FILES)) {
    expect((await upload(platform.service, "files", `file-${n}`, `content ${n}`)).status).toBe(201);
  }
  await untilWhole(place);
  await untilStored(platform);
  const first = new Date().toISOString();
  await platform.service.post("/api/db/shared/tables/notes", { n: 1 });
  await platform.kill("SIGTERM");
  const data = join(temporaryDirectory(), "copy");
  const before = await killed(place, data);
  expect([...before.keys()]).toContain("system.db");
  expect((await runCommand(["restore", place, "--data", data])).code).toBe(0);
  expect(new Map([...before.keys()].map((path) => [path, statSync(join(data, path)).ino]))).toEqual(before);
  expect(readdirSync(data)).not.toContain("restore.partial");
  expect(numbersIn(data, "databases/shared", "notes")).toEqual([0, 1]);
  const other = join(temporaryDirectory(), "other");
  await killed(place, other);
  const { code, stderr } = await runCommand(["restore", place, "--data", other, "--at", first]);
  expect([code, stderr]).toEqual([0, expect.stringContaining("as of")]);
  expect(numbersIn(other, "databases/shared", "notes")).toEqual([0]);
  const restarted = await testPlatform({ config: config(join(temporaryDirectory(), "new")), data });
  await until("the last file is there", async () => {
    const answer = await restarted.fetch(`/api/storage/files/file-${FILES - 1}`, {
      headers: { "x-platform-service-key": restarted.serviceKey },
    });
    return answer.status === 200 && (await answer.text()) === `content ${FILES - 1}`;
  });
  await restarted.stop();
  await platform.stop();
}, 180_000);
