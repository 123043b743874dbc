import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { historyOf, untilPassed, untilWhole } from "../http/backup/continuous-support.ts";
import { until } from "../http/storage/storage-support.ts";
import { type RecordFile, sendForm, textOf } from "../http/tables/tables-files-support.ts";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../support/index.ts";
import { random as randomOf, testSeed } from "../support/random.ts";

// A server that is killed while it restores one instance. PLATFORM_CRASH_ROUNDS kills; 6 by default.

const ROUNDS = Number(process.env["PLATFORM_CRASH_ROUNDS"] ?? 6);
const RECORDS = 2_000;
/** Time of a restore of these records, over which the kills are spread. */
const RESTORE_MS = 600;

const config = (folder: string) => `{
  databases: { clubs: { instance: true, tables: {
    members: { schema: { n: { type: "integer" }, text: { type: "text" } }, fts: ["text"] },
    papers: { schema: { file: { type: "file", bucket: "files" } } },
  } } },
  storage: { buckets: { files: {} } },
  backups: { continuous: { to: { folder: ${JSON.stringify(folder)} }, everyMs: 250, verify: false } },
}`;

const TABLES = "/api/db/clubs/a/tables";

async function addMany(platform: TestPlatform, count: number, text: string): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const inserts = Array.from({ length: Math.min(500, count - from) }, (_, n) => ({ n: from + n, text }));
    const { status } = await platform.service.post(`${TABLES}/members/batch`, { inserts });
    expect(status).toBe(200);
  }
}

/** Returns how many members have each text. */
async function countsOf(platform: TestPlatform): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const text of ["former", "present"]) {
    const filter = JSON.stringify([["text", "==", text]]);
    const { body } = await platform.service.get<{ total: number }>(
      `${TABLES}/members?limit=1&filter=${encodeURIComponent(filter)}`,
    );
    counts[text] = body.total;
  }
  return counts;
}

async function paper(platform: TestPlatform, id: string): Promise<RecordFile> {
  const { status, body } = await sendForm<{ file: RecordFile }>(platform.service, `${TABLES}/papers`, {
    record: { id },
    files: [{ field: "file", content: id, name: "p.txt" }],
  });
  expect(status).toBe(201);
  return body.file;
}

const seed = testSeed(1);

test(`[BK364] after a kill during the restore of an instance it has all of the one content or all of the other (seed ${seed})`, async () => {
  const random = randomOf(seed).next;
  const place = join(temporaryDirectory(), "store");
  const platform = await testPlatform({ config: config(place) });
  await addMany(platform, RECORDS, "former");
  const first = await paper(platform, "former");
  await untilWhole(place);
  await Bun.sleep(5);
  const at = new Date().toISOString();
  await Bun.sleep(5);
  await platform.service.delete(`${TABLES}/papers/former`);
  await addMany(platform, RECORDS, "present");
  const second = await paper(platform, "present");
  await untilPassed(platform);
  const later = new Date().toISOString();
  await Bun.sleep(5);
  // What is stored next says that nothing is missing until then; a kill would make a gap of the time behind the last commit.
  await platform.service.post("/api/auth/admin/users", { email: "a@example.com", password: "correct horse battery" });
  await untilPassed(platform);
  const pathOf = ({ id }: RecordFile) => join(platform.dataDirectory, "storage", "objects", id.slice(-2), id);
  const seen = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const isBack = round % 2 === 1;
    const answer = platform.service
      .post("/api/admin/instances/clubs/a/restore", { at: isBack ? later : at })
      .then(({ status }) => status)
      .catch(() => null);
    await Promise.race([Bun.sleep(random() * RESTORE_MS), answer]);
    await platform.kill("SIGKILL");
    const status = await answer;
    await platform.restart();
    const counts = await countsOf(platform);
    const isNow = counts["present"] === RECORDS;
    expect([round, counts]).toEqual([round, { former: RECORDS, present: isNow ? RECORDS : 0 }]);
    if (status === 200) expect([round, isNow]).toEqual([round, isBack]);
    seen.add(String(isNow));
    const present = isNow ? second : first;
    const { body } = await platform.service.get<{ file: RecordFile }>(
      `${TABLES}/papers/${isNow ? "present" : "former"}`,
    );
    expect(await textOf(platform.service, body.file.url)).toBe(isNow ? "present" : "former");
    expect(existsSync(pathOf(present))).toBe(true);
    for (const one of isBack ? [at, later] : [later, at]) {
      const restored = await platform.service.post("/api/admin/instances/clubs/a/restore", { at: one });
      expect([round, one, restored.status, restored.body]).toMatchObject([round, one, 200, {}]);
    }
    expect(await countsOf(platform)).toEqual({ former: RECORDS, present: isBack ? RECORDS : 0 });
    await until("the other bytes are gone", () => !existsSync(pathOf(isBack ? first : second)));
  }
  await untilPassed(platform);
  expect((await historyOf(place)).files.map(({ file }) => file)).toContain("databases/clubs/a");
  await platform.stop();
}, 300_000);

test(`[BK364] after a kill during the restore of a deleted instance it has all of its content or is not there (seed ${seed})`, async () => {
  const random = randomOf(seed).next;
  const place = join(temporaryDirectory(), "store");
  const platform = await testPlatform({ config: config(place) });
  await addMany(platform, RECORDS, "former");
  const file = await paper(platform, "former");
  await untilWhole(place);
  await untilPassed(platform);
  await Bun.sleep(5);
  const at = new Date().toISOString();
  await Bun.sleep(5);
  // What is stored next says that nothing is missing until then.
  await platform.service.post("/api/auth/admin/users", { email: "a@example.com", password: "correct horse battery" });
  await untilPassed(platform);
  const path = join(platform.dataDirectory, "storage", "objects", file.id.slice(-2), file.id);
  const restore = () => platform.service.post("/api/admin/instances/clubs/a/restore", { at });
  const exists = () => existsSync(join(platform.dataDirectory, "databases", "clubs", "a.db"));
  for (let round = 0; round < ROUNDS; round++) {
    expect((await platform.service.delete("/api/admin/instances/clubs/a")).status).toBe(200);
    await until("its bytes are gone", () => !existsSync(path));
    const answer = restore()
      .then(({ status }) => status)
      .catch(() => null);
    await Promise.race([Bun.sleep(random() * RESTORE_MS), answer]);
    await platform.kill("SIGKILL");
    const status = await answer;
    await platform.restart();
    const isThere = exists();
    const counts = await countsOf(platform);
    const isWhole = counts["former"] === RECORDS;
    expect([round, isThere || !isWhole, counts]).toEqual([round, true, { former: isWhole ? RECORDS : 0, present: 0 }]);
    if (status === 200) expect([round, isWhole]).toEqual([round, true]);
    if (isWhole) expect(existsSync(path)).toBe(true);
    const again = await restore();
    expect([round, again.status, again.body]).toMatchObject([round, 200, {}]);
    expect(await countsOf(platform)).toEqual({ former: RECORDS, present: 0 });
    const { body } = await platform.service.get<{ file: RecordFile }>(`${TABLES}/papers/former`);
    expect(await textOf(platform.service, body.file.url)).toBe("former");
  }
  await platform.stop();
}, 300_000);
