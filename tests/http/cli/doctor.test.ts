import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";
import { preloaded } from "../../support/preloaded.ts";
import { runCommand } from "../backup/backup-support.ts";
import { upload } from "../storage/storage-support.ts";

const CONFIG = `{
  databases: {
    shared: { tables: { notes: { schema: { text: { type: "string" } }, fts: ["text"], indexes: [{ fields: ["text"] }] } } },
    team: { instance: true, access: { open: true }, tables: { notes: {} } },
  },
  storage: { buckets: { photos: {} } },
  kv: { cache: {} },
  vectorize: { docs: { dimensions: 3 } },
}`;

interface Report {
  status: string;
  server: string;
  checks: Record<string, { ok: boolean; problems: string[] } & Record<string, unknown>>;
}

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  await platform.service.post("/api/db/shared/tables/notes/batch", {
    inserts: Array.from({ length: 400 }, (_, at) => ({ id: `n${at}`, text: `text ${at} `.repeat(20) })),
  });
  await platform.service.post("/api/db/team/one/tables/notes", { a: 1 });
  await platform.service.post("/api/kv/cache", { action: "set", key: "a", value: 1 });
  for (const key of ["a.txt", "b.txt"]) {
    const form = new FormData();
    form.set("file", new File(["hello"], key));
    form.set("key", key);
    const headers = { "x-platform-service-key": platform.serviceKey };
    await fetch(`${platform.url}/api/storage/photos/upload`, { method: "POST", body: form, headers });
  }
});
afterAll(() => platform.stop());

const doctor = async (): Promise<{ code: number; report: Report }> => {
  const { code, stdout, stderr } = await runCommand(["doctor", "--data", platform.dataDirectory, "--json"]);
  if (stdout === "") throw new Error(stderr);
  return { code, report: JSON.parse(stdout) as Report };
};

test("[CL210] a healthy directory is 0, beside a running server and a stopped one", async () => {
  const { code, report } = await doctor();
  expect(report).toMatchObject({ status: "ok", server: "running" });
  expect(code).toBe(0);
  const { files, storage, disk } = report.checks;
  expect(Number(files?.["count"])).toBeGreaterThanOrEqual(4);
  expect([storage?.["contents"], storage?.["orphans"]]).toEqual([2, 0]);
  expect(Number(disk?.["freeBytes"])).toBeGreaterThan(0);
  await platform.kill("SIGTERM");
  const names = () => readdirSync(platform.dataDirectory, { recursive: true }).map(String).sort();
  const present = names();
  const stopped = await doctor();
  expect([stopped.code, stopped.report.status, stopped.report.server]).toEqual([0, "ok", "stopped"]);
  const text = await runCommand(["doctor", "--data", platform.dataDirectory]);
  expect([text.code, text.stdout]).toEqual([0, expect.stringContaining("is healthy; its server is stopped")]);
  expect(names()).toEqual(present);
  await platform.restart();
});

test("[CL210] instances that a running server deletes meanwhile are no problem", async () => {
  const ids = Array.from({ length: 150 }, (_, at) => `passing-${String(at).padStart(3, "0")}`);
  await Promise.all(ids.map((id) => platform.service.post(`/api/db/team/${id}/tables/notes`, { a: 1 })));
  let isDeleted = false;
  const deleting = (async () => {
    // The search is by name: those that it comes to last go first.
    for (const id of ids.toReversed()) await platform.service.delete(`/api/admin/instances/team/${id}`);
    isDeleted = true;
  })();
  const problems: string[] = [];
  while (!isDeleted) {
    const { report } = await doctor();
    problems.push(...Object.values(report.checks).flatMap((check) => check.problems));
  }
  await deleting;
  expect(problems).toEqual([]);
}, 60_000);

test("[VZ321] the library of vectors in the directory is known, also one of another version: doctor and backups name no stranger", async () => {
  const data = platform.dataDirectory;
  for (const name of ["vec0-5sd1m2xq.so", "vec0-5sd1m2xq.so.12.new", "vec0-9zz.dylib"]) {
    writeFileSync(join(data, "vectorize", name), "a library");
  }
  expect((await doctor()).report.checks["directory"]).toMatchObject({ ok: true, strangers: 0 });
  const file = join(temporaryDirectory(), "copy.tar.zst");
  const copied = await runCommand(["backup", file, "--data", data]);
  expect([copied.code, copied.stderr.includes("not included, as")]).toEqual([0, false]);
  writeFileSync(join(data, "vectorize", "vec1.so"), "something else");
  expect((await doctor()).report.checks["directory"]).toMatchObject({ strangers: 1 });
  rmSync(join(data, "vectorize", "vec1.so"));
});

test("[CL210] after SIGKILL it looks at the write-ahead logs too, and changes nothing", async () => {
  await platform.service.post("/api/db/shared/tables/notes", { id: "late" });
  await platform.kill("SIGKILL");
  expect((await doctor()).report).toMatchObject({ status: "ok", server: "stopped" });
  await platform.restart();
  expect((await platform.service.get("/api/db/shared/tables/notes/late")).status).toBe(200);
});

test("[CL211] damage, newer files, open permissions, orphans and missing contents are named, with exit code 1", async () => {
  await platform.kill("SIGTERM");
  const data = platform.dataDirectory;
  {
    using newer = new Database(join(data, "kv", "cache.db"));
    newer.run("PRAGMA user_version = 99");
  }
  const shared = join(data, "databases", "shared.db");
  const bytes = new Uint8Array(await Bun.file(shared).arrayBuffer());
  bytes.fill(0xff, 5 * 4_096, 9 * 4_096);
  await Bun.write(shared, bytes);
  chmodSync(data, 0o755);
  const orphan = join(data, "storage", "objects", "ab", "0f0f0f0f-0000-4000-8000-0000000000ab");
  mkdirSync(join(data, "storage", "objects", "ab"), { recursive: true });
  writeFileSync(orphan, "left over");
  const twoDaysAgo = (Date.now() - 48 * 3_600_000) / 1_000;
  utimesSync(orphan, twoDaysAgo, twoDaysAgo);
  const folders = readdirSync(join(data, "storage", "objects")).filter(
    (name) => /^[0-9a-f]{2}$/.test(name) && name !== "ab",
  );
  const folder = join(data, "storage", "objects", folders[0] ?? "");
  rmSync(join(folder, readdirSync(folder)[0] ?? ""));
  const { code, report } = await doctor();
  expect([code, report.status]).toEqual([1, "unhealthy"]);
  const { files, permissions, storage, disk } = report.checks;
  expect(files?.problems.join("\n")).toMatch(/kv\/cache\.db has version 99/);
  expect(files?.problems.join("\n")).toMatch(/databases\/shared\.db: /);
  expect(permissions?.problems.join("\n")).toContain("chmod 700");
  expect(storage?.problems.join("\n")).toMatch(/0f0f0f0f-0000-4000-8000-0000000000ab belongs to no file/);
  expect(storage?.problems.join("\n")).toMatch(/the content of photos\/[ab]\.txt is missing/);
  expect(disk?.ok).toBe(true);
  const text = await runCommand(["doctor", "--data", data]);
  expect([text.code, text.stdout]).toEqual([1, expect.stringContaining("PROBLEM permissions")]);
});

test("[CL411] a system.db that cannot be read is named, and the other checks go on", async () => {
  const data = join(temporaryDirectory(), "data");
  cpSync(platform.dataDirectory, data, { recursive: true });
  for (const suffix of ["", "-wal", "-shm"]) rmSync(join(data, `system.db${suffix}`), { force: true });
  writeFileSync(join(data, "system.db"), "this was a database once, before something wrote over its beginning");
  const { code, stdout, stderr } = await runCommand(["doctor", "--data", data]);
  expect([code, stderr]).toEqual([1, ""]);
  expect(stdout).toContain("system.db: file is not a database");
  expect(stdout).toMatch(/PROBLEM storage\s+- cannot be checked: file is not a database/);
  expect(stdout).toContain("is not healthy");
});

test("[CL211] what is no data directory is named", async () => {
  for (const [data, message] of [
    ["./nowhere", "There is no data directory at ./nowhere"],
    [temporaryDirectory(), "is not a data directory: it has no system.db"],
  ] as const) {
    const { code, stderr } = await runCommand(["doctor", "--data", data]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  }
});

test("[DB270] [CL211] a database of 0 bytes stops the start and is left as it is; doctor and check --data name it", async () => {
  const one = await testPlatform({ config: CONFIG });
  const data = one.dataDirectory;
  await one.service.post("/api/db/shared/tables/notes", { id: "a" });
  await one.service.post("/api/db/team/one/tables/notes", { a: 1 });
  await one.kill("SIGTERM");
  const config = join(temporaryDirectory(), "platform.config.ts");
  writeFileSync(config, `export default ${CONFIG};`);
  for (const name of ["databases/shared.db", "kv/cache.db", "system.db"]) {
    const path = join(data, name);
    const before = readFileSync(path);
    writeFileSync(path, "");
    const failure = await one.restart().then(
      () => "started",
      (cause: Error) => cause.message,
    );
    expect(failure).toContain("it is empty (0 bytes)");
    expect(failure).toContain(name);
    expect(statSync(path).size).toBe(0);
    const examined = await runCommand(["doctor", "--data", data]);
    expect([examined.code, examined.stdout]).toEqual([1, expect.stringContaining(`${name} is empty (0 bytes)`)]);
    if (name === "databases/shared.db") {
      const checked = await runCommand(["check", "--config", config, "--data", data]);
      expect([checked.code, checked.stderr]).toEqual([
        1,
        expect.stringContaining("databases.shared:\n  it is empty (0 bytes)"),
      ]);
    }
    writeFileSync(path, before);
  }
  // What a power cut leaves of an instance that is being made looks the same.
  writeFileSync(join(data, "databases/team/one.db"), "");
  const examined = await runCommand(["doctor", "--data", data]);
  expect([examined.code, examined.stdout]).toEqual([1, expect.stringContaining("is empty (0 bytes)")]);
  const checked = await runCommand(["check", "--config", config, "--data", data]);
  expect([checked.code, checked.stderr]).toEqual([
    0,
    expect.stringContaining("was not tried: its file is empty (0 bytes)"),
  ]);
  await one.restart();
  expect((await one.service.post("/api/db/team/one/tables/notes", { a: 1 })).status).toBe(201);
  await one.stop();
});

test("[CL211] a directory whose files have all lost their contents is not healthy", async () => {
  const files = await testPlatform({ config: { storage: { buckets: { photos: {}, papers: {} } } } });
  for (const bucket of ["photos", "papers"]) await upload(files.service, bucket, "a.txt", "hello");
  await files.kill("SIGTERM");
  rmSync(join(files.dataDirectory, "storage", "objects"), { recursive: true });
  const { code, stdout } = await runCommand(["doctor", "--data", files.dataDirectory, "--json"]);
  const { checks } = JSON.parse(stdout) as Report;
  expect([code, checks["storage"]?.problems]).toEqual([
    1,
    ["the content of papers/a.txt is missing", "the content of photos/a.txt is missing"],
  ]);
  await files.stop();
});

const FILE_SYSTEMS: [type: string, name: string | null][] = [
  ["6969", "NFS"],
  ["517b", "SMB"],
  ["ff534d42", "SMB (CIFS)"],
  ["fe534d42", "SMB 2"],
  ["1021997", "9p"],
  ["65735546", "FUSE"],
  ["ef53", null],
];
const library = preloaded("file-system.c");
if (library === null) console.warn("no file system of a network is tested: there is no C compiler here, or no Linux");

test.if(library !== null)(
  "[CL430] start and doctor name a file system on which a write-ahead log is not safe",
  async () => {
    for (const [type, name] of FILE_SYSTEMS) {
      const env = { LD_PRELOAD: library ?? "", FILE_SYSTEM_TYPE: type };
      const server = await testPlatform({ config: "{}", env });
      const warned = server.stderr();
      const { stdout } = Bun.spawnSync([...platformCommand(), "doctor", "--json", "--data", server.dataDirectory], {
        env: testEnvironment(env),
      });
      const { disk } = (JSON.parse(stdout.toString()) as Report).checks;
      const words = `is on ${name}, where SQLite's write-ahead log is not safe`;
      expect([type, disk?.ok, warned.includes(words)]).toEqual([type, name === null, name !== null]);
      expect(disk?.problems).toEqual(name === null ? [] : [`${server.dataDirectory} ${words}: use a local disk`]);
      expect(await server.stop()).toBe(0);
    }
  },
);
