import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { packTar, type TarHeader, unpackTar } from "modern-tar";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/index.ts";
import { until, upload } from "../storage/storage-support.ts";
import { runCommand, startCommand } from "./backup-support.ts";

const CONFIG = `{ kv: { cache: {} }, storage: { buckets: { files: {} } } }`;
const LOCKED_WAIT_MS = 200;
let platform: TestPlatform;
let file: string;
/** Entries of the archive, in order. */
let entries: { header: TarHeader; text: Buffer }[];

const listing = (directory: string): string[] => readdirSync(directory, { recursive: true }).map(String).sort();
const backUp = (to: string, from = platform.dataDirectory) => runCommand(["backup", to, "--data", from]);
const restore = (from: string, to: string) => runCommand(["restore", from, "--data", to]);
const sha256 = (bytes: Uint8Array) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  await platform.service.post("/api/kv/cache", { action: "set", key: "a", value: 1 });
  await upload(platform.service, "files", "one", "content");
  file = join(temporaryDirectory(), "backup.tar.zst");
  expect(await backUp(file)).toMatchObject({ code: 0 });
  const unpacked = await unpackTar(Bun.zstdDecompressSync(readFileSync(file)));
  entries = unpacked.map(({ header, data }) => ({ header, text: Buffer.from(data ?? []) }));
});
afterAll(() => platform.stop());

describe("backups", () => {
  test("[CL21] both commands report on standard error what they did", async () => {
    const target = join(temporaryDirectory(), "b.tar.zst");
    const content = String.raw`\d+ files, [\d.]+ KiB`;
    const { stdout, stderr } = await backUp(target);
    expect([stdout, stderr]).toEqual([
      "",
      expect.stringMatching(new RegExp(`^wrote ${target}: ${content} in .*as of 2`)),
    ]);
    const restored = await restore(target, `${target}.data`);
    expect(restored.stdout).toBe("");
    expect(restored.stderr).toMatch(
      new RegExp(`^restored ${target}.data: ${content}, as of 2.*PLATFORM_JWT_SECRET`, "s"),
    );
  });

  test("[BK6] the header identifies a backup, and the manifest has the size and hash of each file", async () => {
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const [first, ...rest] = entries;
    const manifest = rest.pop();
    expect(first?.header.name).toBe("backup.json");
    expect(JSON.parse(String(first?.text))).toEqual({
      format: "platform-backup",
      version: 1,
      platform: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
    expect(manifest?.header.name).toBe("manifest.ndjson");
    const lines = String(manifest?.text)
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(lines).toEqual(
      rest.map(({ header: { name: path }, text }) => ({ path, size: text.byteLength, sha256: sha256(text) })),
    );
    expect(rest.map(({ header }) => header.name)).toContain("system.db");
  });

  test("[BK7] the data directory of a killed server is backed up and not changed; foreign files are named", async () => {
    const other = await testPlatform({ config: CONFIG, env: { PLATFORM_SERVICE_KEY: undefined } });
    const key = /root service key: (\S+)/.exec(other.stdout())?.[1] ?? "";
    for (let n = 0; n < 20; n++) {
      await other.withKey(key).post("/api/kv/cache", { action: "set", key: `k${n}`, value: n });
    }
    await other.kill("SIGKILL");
    writeFileSync(join(other.dataDirectory, "notes.txt"), "mine");
    const isPassing = (name: string) => /-(?:wal|shm)$/.test(name);
    const before = listing(other.dataDirectory).filter((name) => !isPassing(name));
    const target = join(temporaryDirectory(), "b.tar.zst");
    const { code, stderr } = await backUp(target, other.dataDirectory);
    expect([code, stderr]).toEqual([0, expect.stringContaining("notes.txt")]);
    expect(listing(other.dataDirectory).filter((name) => !isPassing(name))).toEqual(before);
    const directory = join(temporaryDirectory(), "data");
    expect(await restore(target, directory)).toMatchObject({ code: 0 });
    expect(statSync(join(directory, "secrets.json")).mode & 0o777).toBe(0o600);
    expect(existsSync(join(directory, "notes.txt"))).toBe(false);
    const back = await testPlatform({
      ...{ config: CONFIG, args: ["--data", directory], env: { PLATFORM_SERVICE_KEY: undefined } },
    });
    const got = await back.withKey(key).post("/api/kv/cache", { action: "get", key: "k19" });
    expect(got.body).toEqual({ value: 19 });
    await Promise.all([other.stop(), back.stop()]);
  });

  test("[BK4] contents outside of the data directory are counted, and everything else is backed up", async () => {
    const other = await testPlatform({ config: CONFIG });
    for (const key of ["here", "there"]) await upload(other.service, "files", key, key);
    const objects = join(other.dataDirectory, "storage/objects");
    const contents = listing(objects).filter((name) => name.length > "ab/".length && !name.startsWith("incoming"));
    expect(contents.length).toBe(2);
    // As a bucket has it that keeps its contents in an object store: a record, and no file.
    rmSync(join(objects, contents[0] ?? ""));
    const target = join(temporaryDirectory(), "b.tar.zst");
    const { code, stderr } = await backUp(target, other.dataDirectory);
    expect([code, stderr]).toEqual([0, expect.stringContaining("1 stored file not included: their buckets keep them")]);
    await restore(target, `${target}.data`);
    expect(existsSync(join(`${target}.data/storage/objects`, contents[1] ?? ""))).toBe(true);
    await other.stop();
  });

  test("[BK5] a complete file replaces an earlier one, and the remains of a killed backup are removed", async () => {
    const directory = temporaryDirectory();
    const target = join(directory, "b.tar.zst");
    writeFileSync(target, "old");
    mkdirSync(`${target}.partial`);
    writeFileSync(join(`${target}.partial`, "archive"), "half of one");
    expect(await backUp(target)).toMatchObject({ code: 0 });
    expect(readdirSync(directory)).toEqual(["b.tar.zst"]);
    expect(await restore(target, join(directory, "data"))).toMatchObject({ code: 0 });
  });

  test("[BK5][BK9] a second backup to the same file is refused; a cancelled one leaves only the earlier file", async () => {
    const directory = temporaryDirectory();
    const target = join(directory, "b.tar.zst");
    writeFileSync(target, "old");
    const data = join(temporaryDirectory(), "data");
    mkdirSync(join(data, "kv"), { recursive: true });
    cpSync(join(platform.dataDirectory, "kv"), join(data, "kv"), { recursive: true });
    // A database that somebody has locked whole keeps a backup waiting.
    const held = new Database(join(data, "system.db"), { create: true });
    held.run("CREATE TABLE t (n)");
    held.run("BEGIN EXCLUSIVE");
    const waiting = startCommand(["backup", target, "--data", data]);
    await until("it has begun", () => existsSync(`${target}.partial`));
    await Bun.sleep(LOCKED_WAIT_MS);
    const second = await backUp(target, data);
    expect([second.code, second.stderr]).toEqual([1, expect.stringContaining("Another backup is running")]);
    waiting.kill("SIGTERM");
    held.run("ROLLBACK");
    held.close();
    expect([await waiting.exited, await waiting.stderr.text()]).toEqual([1, expect.stringContaining("was stopped")]);
    expect([readdirSync(directory), readFileSync(target, "utf8")]).toEqual([["b.tar.zst"], "old"]);
  });

  test("[BK8] a missing data directory, folder or argument is refused", async () => {
    const empty = temporaryDirectory();
    const missing = await backUp(join(empty, "b"), join(empty, "missing"));
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining("There is no data directory at")]);
    const other = await backUp(join(empty, "b"), empty);
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("it has no system.db")]);
    const nowhere = await backUp(join(empty, "no/where/b"));
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining("There is no folder")]);
    expect((await backUp(empty)).stderr).toContain("is a folder");
    expect(readdirSync(empty)).toEqual([]);
    // As root it would also replace a device, such as /dev/null.
    const pipe = join(empty, "pipe");
    Bun.spawnSync(["mkfifo", pipe]);
    const piped = await backUp(pipe);
    expect([piped.code, piped.stderr]).toEqual([1, expect.stringContaining("is a device or a pipe, and not a file")]);
    expect([readdirSync(empty), statSync(pipe).isFIFO()]).toEqual([["pipe"], true]);
  });

  test("[BK8] a file that is not a database is named", async () => {
    const data = join(temporaryDirectory(), "data");
    expect(await restore(file, data)).toMatchObject({ code: 0 });
    writeFileSync(join(data, "kv/cache.db"), "this is not a database, and long enough to be looked at ".repeat(100));
    const target = join(temporaryDirectory(), "b");
    const { code, stderr } = await backUp(target, data);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining("kv/cache.db cannot be copied: file is not a database"),
    ]);
    expect(existsSync(target)).toBe(false);
  });
});

describe("restores", () => {
  test("[BK11] a restore requires an empty directory", async () => {
    const full = temporaryDirectory();
    writeFileSync(join(full, "mine.txt"), "mine");
    const refused = await restore(file, full);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('is not empty ("mine.txt" is in it)')]);
    expect(readdirSync(full)).toEqual(["mine.txt"]);
    expect(await restore(file, platform.dataDirectory)).toMatchObject({ code: 1 });
    const empty = temporaryDirectory();
    expect(await restore(file, empty)).toMatchObject({ code: 0 });
    expect(readdirSync(empty)).toContain("system.db");
    const missing = join(full, "a/data");
    expect(await restore(file, missing)).toMatchObject({ code: 0 });
    expect(statSync(missing).mode & 0o777).toBe(0o700);
    expect((await restore(join(full, "mine.txt"), full)).code).toBe(1);
    expect((await restore(join(full, "missing"), join(full, "x"))).stderr).toContain("There is no file");
  });

  test("[BK11] a directory used by another process is refused", async () => {
    const directory = temporaryDirectory();
    const lock = new Database(join(directory, "platform.lock"), { create: true });
    lock.run("BEGIN EXCLUSIVE");
    const { code, stderr } = await restore(file, directory);
    lock.close();
    expect([code, stderr]).toEqual([1, expect.stringContaining("is in use by another process")]);
    expect(readdirSync(directory)).toEqual(["platform.lock"]);
  });

  test("[BK15] after an interrupted restore no server starts, and the next restore starts from the beginning", async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, "restore.partial/files"), { recursive: true });
    mkdirSync(join(directory, "kv"));
    writeFileSync(join(directory, "kv/old.db"), "half");
    const config = join(temporaryDirectory(), "platform.config.ts");
    writeFileSync(config, `export default ${CONFIG};`);
    const start = await runCommand(["start", "--config", config, "--data", directory, "--port", "0"]);
    expect([start.code, start.stderr]).toEqual([1, expect.stringContaining("was interrupted")]);
    const backedUp = await backUp(join(temporaryDirectory(), "b"), directory);
    expect([backedUp.code, backedUp.stderr]).toEqual([1, expect.stringContaining("was interrupted")]);
    expect(await restore(file, directory)).toMatchObject({ code: 0 });
    expect(listing(directory)).not.toContain("kv/old.db");
    expect(listing(directory)).not.toContain("restore.partial");
  });

  interface Part {
    header: TarHeader;
    text: Buffer;
  }
  const archive = async (parts: readonly Part[]): Promise<string> => {
    const path = join(temporaryDirectory(), "hostile.tar.zst");
    const tar = await packTar(parts.map(({ header, text }) => ({ header, body: new Uint8Array(text) })));
    writeFileSync(path, Bun.zstdCompressSync(tar));
    return path;
  };
  const part = (name: string, text: string, header: Partial<TarHeader> = {}): Part => ({
    header: { name, size: Buffer.byteLength(text), type: "file", ...header },
    text: Buffer.from(text),
  });
  /** Entries of a good archive with another one among them, which the manifest lists too. */
  const withEntry = (extra: Part): Part[] => {
    const { header, text } = extra;
    const line = JSON.stringify({ path: header.name, size: text.byteLength, sha256: sha256(text) });
    const manifest = `${entries.at(-1)?.text}${line}\n`;
    return [...entries.slice(0, -1), extra, part("manifest.ndjson", manifest)];
  };
  const withManifest = (manifest: string): Part[] => [...entries.slice(0, -1), part("manifest.ndjson", manifest)];
  const manifestText = () => String(entries.at(-1)?.text);

  const HOSTILE: [rule: string, what: string, parts: () => Part[], words: string][] = [
    ["BK13", "an absolute path", () => withEntry(part("/tmp/evil.db", "x")), "which no data directory has"],
    ["BK13", "a path with ..", () => withEntry(part("kv/../../evil.db", "x")), "which no data directory has"],
    ["BK13", "a name that no server has", () => withEntry(part("kv/evil.sh", "x")), "which no data directory has"],
    ["BK13", "another's lock", () => withEntry(part("platform.lock", "x")), "which no data directory has"],
    ["BK13", "a link", () => withEntry(part("kv/l.db", "", { type: "symlink", linkname: "/etc/passwd" })), "symlink"],
    ["BK13", "a hard link", () => withEntry(part("kv/l.db", "", { type: "link", linkname: "system.db" })), "link"],
    ["BK13", "a device", () => withEntry(part("kv/d.db", "", { type: "character-device" })), "character-device"],
    ["BK13", "a pipe", () => withEntry(part("kv/d.db", "", { type: "fifo" })), "fifo"],
    ["BK13", "a folder", () => withEntry(part("kv/", "", { type: "directory" })), "directory"],
    ["BK13", "a file twice", () => withEntry(part("kv/cache.db", "x")), "it contains kv/cache.db twice"],
    ["BK14", "no manifest", () => entries.slice(0, -1), "its end is missing"],
    ["BK14", "a file after the manifest", () => [...entries, part("kv/x.db", "x")], "entries after its manifest"],
    ["BK14", "a manifest that is none", () => withManifest("nothing\n"), "manifest cannot be read"],
    ["BK14", "a line without end", () => withManifest(`"${"x".repeat(100_000)}`), "manifest cannot be read"],
    [
      "BK14",
      "another hash",
      () => withManifest(manifestText().replace(/"sha256":"..../, '"sha256":"0000')),
      "does not match the manifest",
    ],
    [
      "BK14",
      "another size",
      () => withManifest(manifestText().replace(/"size":\d/, '"size":99')),
      "does not match the manifest",
    ],
    ["BK14", "a file that the manifest lacks", () => withManifest(""), "is not in the manifest"],
    [
      "BK14",
      "a file listed that is not there",
      () => withManifest(manifestText().repeat(2)),
      "does not match the manifest",
    ],
    ["BK14", "nothing at all", () => [], "is not a backup"],
    ["BK14", "another tar", () => [part("a.txt", "x")], "is not a backup"],
    [
      "BK14",
      "a later version",
      () => [part("backup.json", `{"format":"platform-backup","version":99,"platform":"9.0.0"}`)],
      "was made by a later version",
    ],
    ["BK14", "an endless head", () => [part("backup.json", "x".repeat(100_000))], "is not a backup"],
  ];
  for (const [rule, what, parts, words] of HOSTILE) {
    test(`[${rule}][BK12] ${what} is refused and leaves nothing`, async () => {
      const parent = temporaryDirectory();
      const { code, stdout, stderr } = await restore(await archive(parts()), join(parent, "a/data"));
      expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining(words)]);
      expect(readdirSync(parent)).toEqual([]);
    });
  }

  test("[BK14][BK12] a truncated or changed archive is refused, and the directory stays empty", async () => {
    const whole = readFileSync(file);
    const broken = [
      ...[0, 3, 100, Math.floor(whole.length / 2), whole.length - 50].map((length) => whole.subarray(0, length)),
      ...[0, 2, Math.floor(whole.length / 2), whole.length - 2].map((place) => {
        const changed = Buffer.from(whole);
        // One byte in a thousand is unused by zstd, and says nothing else when it is changed.
        for (const at of [place, place + 1, place + 40, place + 41]) changed[at] = (changed[at] ?? 0) ^ 0xff;
        return changed;
      }),
    ];
    for (const bytes of broken) {
      const directory = temporaryDirectory();
      const path = join(temporaryDirectory(), "broken");
      writeFileSync(path, bytes);
      const { code, stderr } = await restore(path, directory);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/is (?:damaged|not a backup)/)]);
      expect(readdirSync(directory)).toEqual([]);
    }
  });

  test("[BK12] a directory that cannot be written to is not changed", async () => {
    const parent = temporaryDirectory();
    const path = join(parent, "file");
    writeFileSync(path, "not a folder");
    chmodSync(path, 0o400);
    const { code, stderr } = await restore(file, path);
    expect([code, stderr]).toEqual([1, expect.stringContaining("is not a directory")]);
    expect((await restore(file, join(path, "below"))).code).toBe(1);
    expect(readFileSync(path, "utf8")).toBe("not a folder");
  });
});
