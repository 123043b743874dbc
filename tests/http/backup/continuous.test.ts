import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { upload } from "../storage/storage-support.ts";
import { runCommand } from "./backup-support.ts";
import {
  continuousOf,
  differences,
  historyOf,
  numbersIn,
  restored,
  untilPassed,
  untilStored,
  untilWhole,
  upTo,
} from "./continuous-support.ts";

const config = (folder: string, more = "") => `{
  databases: {
    shared: { tables: { notes: { schema: { n: { type: "integer" }, text: { type: "text" } }, fts: ["text"] } } },
    clubs: { instance: true, tables: { members: { schema: { n: { type: "integer" } } } } },
  },
  storage: { buckets: { files: {} } },
  kv: { cache: {} },
  d1: { ledger: {} },
  backups: { continuous: { to: { folder: ${JSON.stringify(folder)} }, everyMs: 250${more} } },
}`;

const NOTES = "/api/db/shared/tables/notes";
const CLUBS = ["a", "b", "c"];

async function add(platform: TestPlatform, n: number): Promise<void> {
  const club = CLUBS[n % CLUBS.length];
  const answers = await Promise.all([
    platform.service.post(NOTES, { n, text: `note ${n} ${"word ".repeat(n % 50)}` }),
    platform.service.post(`/api/db/clubs/${club}/tables/members`, { n }),
    platform.service.post("/api/d1/ledger", { query: "INSERT INTO l (n) VALUES (?)", params: [n] }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 200]);
}

async function begun(place: string, more = ""): Promise<TestPlatform> {
  const platform = await testPlatform({ config: config(place, more) });
  await platform.service.post("/api/d1/ledger", { query: "CREATE TABLE l (n INTEGER)" });
  return platform;
}

/** Compares every database of a stopped server with its restored copy. */
function compare(platform: TestPlatform, copy: string): void {
  const paths = ["system", "jobs", "audit", "rooms", "analytics", "databases/shared", "kv/cache", "d1/ledger"];
  const clubs = CLUBS.map((club) => `databases/clubs/${club}`);
  const present = [...paths, ...clubs].filter((path) => existsSync(join(platform.dataDirectory, `${path}.db`)));
  const found = present.map((path) => [
    path,
    differences(join(platform.dataDirectory, `${path}.db`), join(copy, `${path}.db`)),
  ]);
  expect(found).toEqual(present.map((path) => [path, []]));
}

test("[BK330] [BK331] a stop brings every commit of every file to the store, and a restore has them, page by page", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  for (const n of upTo(60)) await add(platform, n);
  expect((await upload(platform.service, "files", "a.txt", "content")).status).toBe(201);
  await platform.kill("SIGTERM");
  const copy = await restored(place);
  compare(platform, copy);
  expect(numbersIn(copy, "databases/shared", "notes")).toEqual(upTo(60));
  expect(numbersIn(copy, "d1/ledger", "l")).toEqual(upTo(60));
  const other = await testPlatform({ config: config(join(temporaryDirectory(), "other")), data: copy });
  expect((await other.service.get(`${NOTES}?limit=1`)).body).toMatchObject({ total: 60 });
  expect(
    await (
      await fetch(`${other.url}/api/storage/files/a.txt`, { headers: { "x-platform-service-key": other.serviceKey } })
    ).text(),
  ).toBe("content");
  await other.stop();
  await platform.stop();
});

test("[BK332] what was acknowledged an interval before a SIGKILL is in the store, and the next start goes on", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  for (let round = 0; round < 3; round++) {
    for (const n of upTo(20)) await add(platform, round * 20 + n);
    await untilStored(platform);
    const copyBefore = await restored(place);
    expect(numbersIn(copyBefore, "databases/shared", "notes")).toEqual(upTo((round + 1) * 20));
    await platform.kill("SIGKILL");
    const copy = await restored(place);
    expect(numbersIn(copy, "databases/shared", "notes")).toEqual(upTo((round + 1) * 20));
    expect(numbersIn(copy, "d1/ledger", "l")).toEqual(upTo((round + 1) * 20));
    await platform.restart();
  }
  await add(platform, 60);
  await platform.kill("SIGTERM");
  compare(platform, await restored(place));
  await platform.stop();
});

test("[BK333] a moment between two writes has the first and not the second, in all files", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  await untilWhole(place);
  const moments: number[] = [];
  for (const n of upTo(12)) {
    await add(platform, n);
    await Bun.sleep(5);
    moments.push(Date.now());
    await Bun.sleep(5);
  }
  await platform.kill("SIGTERM");
  for (const n of [0, 5, 10]) {
    const copy = await restored(place, "--at", new Date(moments[n] ?? 0).toISOString());
    expect(numbersIn(copy, "databases/shared", "notes")).toEqual(upTo(n + 1));
    expect(numbersIn(copy, "d1/ledger", "l")).toEqual(upTo(n + 1));
    const members = CLUBS.flatMap((club) => {
      const path = `databases/clubs/${club}`;
      return existsSync(join(copy, `${path}.db`)) ? numbersIn(copy, path, "members") : [];
    });
    expect(members.sort((one, other) => one - other)).toEqual(upTo(n + 1));
  }
  await platform.stop();
});

test("[BK333] single commits of d1 are moments, also around a large one and a VACUUM, which leaves a gap", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  await untilWhole(place);
  const query = async (text: string): Promise<string> => {
    expect((await platform.service.post("/api/d1/ledger", { query: text })).status).toBe(200);
    await Bun.sleep(5);
    const at = new Date().toISOString();
    await Bun.sleep(5);
    return at;
  };
  const first = await query("INSERT INTO l (n) VALUES (0)");
  const large = await query(
    "CREATE TABLE big AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) SELECT n, randomblob(3000) AS bytes FROM c",
  );
  const second = await query("INSERT INTO l (n) VALUES (1)");
  await query("DELETE FROM big WHERE n > 20");
  await query("VACUUM");
  await untilPassed(platform);
  const third = await query("INSERT INTO l (n) VALUES (2)");
  await query("INSERT INTO l (n) VALUES (3)");
  await platform.kill("SIGTERM");
  const { gaps } = await historyOf(place);
  expect(gaps.map(({ file, reason }) => [file, reason])).toEqual([["d1/ledger", "unread"]]);
  const states: [at: string, numbers: number[], big: number | null][] = [
    [first, [0], null],
    [large, [0], 2000],
    [second, [0, 1], 2000],
    [third, [0, 1, 2], 20],
  ];
  for (const [at, numbers, big] of states) {
    const copy = await restored(place, "--at", at);
    expect(numbersIn(copy, "d1/ledger", "l")).toEqual(numbers);
    if (big !== null) expect(numbersIn(copy, "d1/ledger", "big")).toHaveLength(big);
  }
  compare(platform, await restored(place));
  await platform.stop();
});

test("[BK334] an instance that was deleted is in the moments before, and not after", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  await untilWhole(place);
  for (const n of upTo(3)) await add(platform, n);
  await Bun.sleep(5);
  const before = new Date().toISOString();
  await Bun.sleep(5);
  expect((await platform.service.delete("/api/admin/instances/clubs/a")).status).toBe(200);
  await platform.service.post("/api/db/clubs/a/tables/members", { n: 100 });
  await platform.kill("SIGTERM");
  const copy = await restored(place, "--at", before, "--only", "clubs/a");
  expect(numbersIn(copy, "databases/clubs/a", "members")).toEqual([0]);
  expect(readdirSync(copy)).not.toContain("system.db");
  expect(numbersIn(await restored(place), "databases/clubs/a", "members")).toEqual([100]);
  await platform.stop();
});

test("[BK335] whatever is missing or damaged in the store fails a restore, names it, and leaves nothing", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  for (const n of upTo(5)) await add(platform, n);
  await untilStored(platform);
  for (const n of upTo(5)) await add(platform, n);
  await platform.kill("SIGTERM");
  const segments = readdirSync(join(place, "segments")).sort();
  for (const name of [...segments.map((segment) => `segments/${segment}`), "manifest"]) {
    const file = join(place, name);
    const whole = readFileSync(file);
    for (const damage of ["missing", "changed", "cut"] as const) {
      if (damage === "missing") await Bun.file(file).delete();
      else if (damage === "cut") await Bun.write(file, whole.subarray(0, whole.byteLength - 10));
      else {
        const changed = Buffer.from(whole);
        const middle = Math.floor(changed.byteLength / 2);
        changed[middle] = (changed[middle] ?? 0) ^ 1;
        await Bun.write(file, changed);
      }
      const data = join(temporaryDirectory(), "copy");
      const { code, stderr } = await runCommand(["restore", place, "--data", data]);
      expect([name, damage, code, existsSync(data)]).toEqual([name, damage, 1, false]);
      expect(stderr).toContain(name === "manifest" && damage === "missing" ? "no continuous backup" : name);
    }
    await Bun.write(file, whole);
  }
  compare(platform, await restored(place));
  await platform.stop();
}, 120_000);

test("[BK336] history says what can be restored, and there are no gaps without a kill", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  await untilWhole(place);
  for (const n of upTo(5)) await add(platform, n);
  await platform.restart();
  for (const n of upTo(5)) await add(platform, 5 + n);
  await platform.kill("SIGTERM");
  const { gaps, files, bytes, from, to } = await historyOf(place);
  expect(gaps).toEqual([]);
  expect(Date.parse(from)).toBeLessThan(Date.parse(to));
  expect(bytes).toBeGreaterThan(1000);
  expect(files.map(({ file }) => file)).toContain("databases/clubs/a");
  const empty = temporaryDirectory();
  expect((await runCommand(["history", empty])).code).toBe(1);
  await platform.stop();
});

test("[BK337] health says how far the store is, and a store that fails slows no write", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  await add(platform, 0);
  await untilStored(platform);
  expect(await continuousOf(platform)).toMatchObject({ ok: true, lagMs: 0, lagBytes: 0, message: null });
  const metrics = await fetch(`${platform.url}/metrics`, {
    headers: { "x-platform-service-key": platform.serviceKey },
  });
  expect(await metrics.text()).toMatch(/^platform_continuous_uploads_total [1-9]/m);
  await platform.stop();
});

test("[BK339] a script in another language restores a file by the description of the format", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  await untilWhole(place);
  for (const n of upTo(30)) await add(platform, n);
  await platform.kill("SIGTERM");
  for (const path of ["databases/shared", "databases/clubs/a", "d1/ledger", "system"]) {
    const copy = join(temporaryDirectory(), "copy.db");
    const script = join(import.meta.dir, "read-continuous.py");
    const { exitCode, stderr } = Bun.spawnSync(["python3", script, place, path, copy]);
    expect([exitCode, stderr.toString()]).toEqual([0, ""]);
    expect([path, differences(join(platform.dataDirectory, `${path}.db`), copy)]).toEqual([path, []]);
  }
  await platform.stop();
});

test("[BK346] moments and names that there are not, and nonsense, are refused", async () => {
  const place = join(temporaryDirectory(), "store");
  const platform = await begun(place);
  const { from } = await untilWhole(place);
  await add(platform, 0);
  await platform.kill("SIGTERM");
  const restoreWith = (...options: string[]) =>
    runCommand(["restore", place, "--data", join(temporaryDirectory(), "copy"), ...options]);
  for (const at of ["yesterday", "2026-11-26", "2026-11-26T14:03:19", "2026-11-26T14:03:19.1234Z"]) {
    expect([at, (await restoreWith("--at", at)).code]).toEqual([at, 2]);
  }
  const early = await restoreWith("--at", "2001-01-01T00:00:00Z");
  expect([early.code, early.stderr.includes(from)]).toEqual([1, true]);
  const unknown = await restoreWith("--only", "clubs/nobody");
  expect([unknown.code, unknown.stderr.includes("clubs/nobody")]).toEqual([1, true]);
  const late = await restoreWith("--at", "2999-01-01T00:00:00+01:00");
  expect([late.code, late.stderr.includes("newest")]).toEqual([0, true]);
  const archive = join(temporaryDirectory(), "b.tar.zst");
  expect((await runCommand(["backup", archive, "--data", platform.dataDirectory])).code).toBe(0);
  expect(
    (await runCommand(["restore", archive, "--only", "system", "--data", join(temporaryDirectory(), "c")])).code,
  ).toBe(2);
  expect((await runCommand(["restore", place, "--data", platform.dataDirectory])).code).toBe(1);
  expect(
    (await runCommand(["restore", "--config", platform.configFile, "--data", join(temporaryDirectory(), "d")])).code,
  ).toBe(0);
  await platform.stop();
});
