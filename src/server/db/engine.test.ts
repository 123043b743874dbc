import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import fs, { copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tablesLayout } from "../../../schema/migrations/index.ts";
import { systemClock } from "../../kernel/clock.ts";
import { createStorageEngine } from "./engine.ts";
import { CHECKPOINT_BYTES, WAL_BYTES_MAX, WAL_BYTES_STOP } from "./limits.ts";
import type { StorageEngine } from "./types.ts";

/** Includes the table of row counts, like every file whose changes are announced. */
const CREATE = [
  "CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY NOT NULL, v TEXT) STRICT",
  ...tablesLayout.steps,
].join(";\n");

let directory: string;
let engine: StorageEngine;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "engine-"));
  engine = createStorageEngine({ clock: systemClock });
});

afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

test("[DB21] a file opens with WAL, foreign keys and no automatic checkpoint", () => {
  const { sqlite } = engine.open(join(directory, "a.db"), { cacheKiB: 512 });
  const pragma = (name: string) => Object.values(sqlite.query(`PRAGMA ${name}`).get() ?? {})[0];
  expect(pragma("journal_mode")).toBe("wal");
  expect(pragma("foreign_keys")).toBe(1);
  expect(pragma("wal_autocheckpoint")).toBe(0);
  expect(pragma("page_size")).toBe(4096);
  expect(pragma("cache_size")).toBe(-512);
});

test("[DB22] a file that is not a database, damaged, locked or not accessible: an error that names it and the reason", () => {
  const broken = join(directory, "broken.db");
  writeFileSync(broken, "this is a text file, and has been one for more than the length of a header of SQLite 3 files");
  expect(() => engine.open(broken, {})).toThrow(`${broken}: it is not an SQLite database`);

  const missing = join(directory, "nowhere", "a.db");
  expect(() => engine.open(missing, {})).toThrow(`${missing}: it cannot be opened`);

  const locked = join(directory, "locked.db");
  const other = new Database(locked);
  other.run("CREATE TABLE t (a)");
  other.run("BEGIN EXCLUSIVE");
  expect(() => engine.open(locked, {})).toThrow(`${locked}: another process has locked it`);
  other.close();
  expect(engine.openFiles).toBe(0);
});

test("[DB22] a file that is already open is refused: it has one writer", () => {
  const path = join(directory, "a.db");
  engine.open(path, {});
  expect(() => engine.open(path, {})).toThrow("is open already");
});

test("[DB23] a migration that throws leaves no new file behind", () => {
  const migrate = () => {
    throw new Error("no");
  };
  expect(() => engine.open(join(directory, "a.db"), { migrate })).toThrow("no");
  expect(fs.readdirSync(directory)).toEqual([]);
});

test("[DB13] under constant writes the WAL stays bounded, and checkpoints go on", async () => {
  const path = join(directory, "a.db");
  const file = engine.open(path, { migrate: (sqlite) => sqlite.run(CREATE) });
  const text = "x".repeat(20_000);
  let written = 0;
  let walBytesMax = 0;
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (written * text.length < 6 * WAL_BYTES_MAX) {
        written += 1;
        const id = `${written}`;
        await file.write((tx) => tx.query("INSERT INTO items VALUES (?, ?)").run(id, text));
        walBytesMax = Math.max(walBytesMax, fs.statSync(`${path}-wal`).size);
      }
    }),
  );
  expect(walBytesMax).toBeGreaterThan(4 * 1024 * 1024);
  // The transaction that passes the bound is the last before the pause, and is written in full.
  expect(walBytesMax).toBeLessThan(WAL_BYTES_STOP + 4 * 1024 * 1024);
  expect(fs.statSync(path).size).toBeGreaterThan(4 * WAL_BYTES_MAX);
  expect(file.query("SELECT count(*) AS n FROM items").get()).toEqual({ n: written });
});

test("[DB321] the file of a busy WAL keeps its length when the WAL restarts, and is truncated by a quiet checkpoint", async () => {
  const path = join(directory, "a.db");
  const file = engine.open(path, { migrate: (sqlite) => sqlite.run(CREATE) });
  const walFileBytes = () => fs.statSync(`${path}-wal`).size;
  // The first salt in the header, which SQLite increments with each restart.
  const header = Buffer.alloc(4);
  const restarts = () => {
    const descriptor = fs.openSync(`${path}-wal`, "r");
    fs.readSync(descriptor, header, 0, 4, 16);
    fs.closeSync(descriptor);
    return header.readUInt32BE();
  };
  const text = "x".repeat(20_000);
  let written = 0;
  const write = () =>
    file.write((tx) => tx.query("INSERT INTO items VALUES (?, ?)").run(`${++written}`, text)).then(() => undefined);
  // A new file's WAL is empty.
  await write();
  let latest = restarts();
  let kept = 0;
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (kept < 2 && written * text.length < 20 * WAL_BYTES_MAX) {
        await write();
        if (restarts() === latest) continue;
        latest = restarts();
        // On a slow machine a checkpoint may be quiet even here, and truncate it.
        if (walFileBytes() > WAL_BYTES_MAX) kept += 1;
      }
    }),
  );
  expect(kept).toBe(2);
  // A single large write: its checkpoint covers all of the WAL, at the latest the second one does.
  const isShort = () => walFileBytes() <= CHECKPOINT_BYTES + 1024 * 1024;
  const large = "x".repeat(CHECKPOINT_BYTES + 1024 * 1024);
  for (let n = 0; n < 3 && !isShort(); n++) {
    await file.write((tx) => tx.query("INSERT INTO items VALUES (?, ?)").run(`${++written}`, large));
    const pausedAt = Date.now();
    while (!isShort() && Date.now() - pausedAt < 5_000) await Bun.sleep(1);
  }
  expect(isShort()).toBe(true);
  expect(file.query("SELECT count(*) AS n FROM items").get()).toEqual({ n: written });
  await file.close();
  expect(fs.readdirSync(directory)).toEqual(["a.db"]);
});

test("[DB14] a reader that holds the WAL makes the writer wait for one checkpoint, not for the reader", async () => {
  const path = join(directory, "a.db");
  const file = engine.open(path, { migrate: (sqlite) => sqlite.run(CREATE) });
  await file.write((tx) => tx.query("INSERT INTO items VALUES ('first', '')").run());
  const reader = new Database(path, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM items").get();
  const text = "x".repeat(200_000);
  for (let n = 0; n * text.length < 2 * WAL_BYTES_MAX; n += 1) {
    await file.write((tx) => tx.query("INSERT INTO items VALUES (?, ?)").run(`${n}`, text));
  }
  expect(fs.statSync(`${path}-wal`).size).toBeGreaterThan(WAL_BYTES_MAX);
  reader.run("COMMIT");
  reader.close();
  await file.close();
  expect(fs.readdirSync(directory)).toEqual(["a.db"]);
});

const COUNT = "SELECT count(*) AS n FROM items";
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("[DB33] reads of one turn share a snapshot, the next turn has its own", async () => {
  const path = join(directory, "a.db");
  const file = engine.open(path, { migrate: (sqlite) => sqlite.run(CREATE) });
  const prepared = file.prepare<{ n: number }>(COUNT);
  const other = new Database(path);
  expect(file.query(COUNT).get()).toEqual({ n: 0 });
  other.run("INSERT INTO items VALUES ('theirs', '')");
  expect([file.query(COUNT).get(), prepared.get(), prepared.all()]).toEqual([{ n: 0 }, { n: 0 }, [{ n: 0 }]]);
  await nextTurn();
  expect([prepared.get(), file.query(COUNT).get()]).toEqual([{ n: 1 }, { n: 1 }]);
  other.close();
});

test("[DB33] a write ends the snapshot of its turn, and reads inside it see its changes", async () => {
  const file = engine.open(join(directory, "a.db"), { migrate: (sqlite) => sqlite.run(CREATE) });
  expect(file.query(COUNT).get()).toEqual({ n: 0 });
  const seen: unknown[] = [];
  const writing = file.write((tx) => {
    tx.query("INSERT INTO items VALUES ('ours', '')").run();
    seen.push(file.query(COUNT).get());
  });
  expect(file.query(COUNT).get()).toEqual({ n: 0 });
  await writing;
  seen.push(file.query(COUNT).get());
  const undone = file.write((tx) => {
    tx.query("DELETE FROM items").run();
    seen.push(file.query(COUNT).get());
    throw new Error("no");
  });
  expect(await undone.catch((problem: Error) => problem.message)).toBe("no");
  seen.push(file.query(COUNT).get());
  expect(seen).toEqual([{ n: 1 }, { n: 1 }, { n: 0 }, { n: 1 }]);
});

test("[DB33] a listener can read the changes it is notified of, also in a new file, whose settings change after its first write", async () => {
  const counts: unknown[] = [];
  const file = engine.open(join(directory, "a.db"), {
    migrate: (sqlite) => sqlite.run(CREATE),
    onChange: () => counts.push(file.query(COUNT).get()),
  });
  for (const id of ["1", "2"]) {
    await file.write((tx) => {
      tx.query("INSERT INTO items VALUES (?, '')").run(id);
      tx.change({ table: "items", id, before: null, after: { id } });
    });
  }
  expect(counts).toEqual([{ n: 1 }, { n: 2 }]);
  await nextTurn();
  expect(file.sqlite.query("PRAGMA synchronous").values()).toEqual([[1]]);
});

test("[DB33] under constant reads the WAL restarts, and a file that was just read can be closed", async () => {
  const path = join(directory, "a.db");
  const file = engine.open(path, { migrate: (sqlite) => sqlite.run(CREATE) });
  const text = "x".repeat(200_000);
  let readCount = 0;
  let isOver = false;
  const reading = (async () => {
    while (!isOver) {
      file.query(COUNT).get();
      readCount += 1;
      await nextTurn();
    }
  })();
  let walBytesMax = 0;
  for (let n = 0; n * text.length < 4 * WAL_BYTES_MAX; n += 1) {
    await file.write((tx) => tx.query("INSERT INTO items VALUES (?, ?)").run(`${n}`, text));
    walBytesMax = Math.max(walBytesMax, fs.statSync(`${path}-wal`).size);
  }
  isOver = true;
  await reading;
  expect(readCount).toBeGreaterThan(100);
  expect(walBytesMax).toBeLessThan(WAL_BYTES_STOP + 4 * 1024 * 1024);
  file.query(COUNT).get();
  await file.close();
  expect(fs.readdirSync(directory)).toEqual(["a.db"]);
  expect(() => file.query(COUNT)).toThrow("stopping");
});

const WRITER_SOURCE = `
import { createStorageEngine } from ${JSON.stringify(join(import.meta.dir, "index.ts"))};
import { systemClock } from ${JSON.stringify(join(import.meta.dir, "../../kernel/clock.ts"))};
const file = createStorageEngine({ clock: systemClock }).open(process.argv[1], {
  migrate: (sqlite) => sqlite.run(${JSON.stringify(CREATE)}),
});
let n = 0;
for (let writer = 0; writer < 32; writer += 1) {
  (async () => {
    for (;;) {
      const id = String((n += 1));
      await file.write((tx) => {
        tx.query("INSERT INTO items VALUES (?, ?)").run(id, "x".repeat(2000));
        tx.change({ table: "items", id, before: null, after: {} });
      });
      process.stdout.write(id + "\\n");
    }
  })();
}`;

test("[DB24] a process killed under load loses no answered write, and its row count is right", async () => {
  const path = join(directory, "a.db");
  const child = Bun.spawn([process.execPath, "-e", WRITER_SOURCE, path], { stdout: "pipe", stderr: "inherit" });
  setTimeout(() => child.kill("SIGKILL"), 700);
  const output = await new Response(child.stdout).text();
  // The last line may have been cut by the kill.
  const answered = output.split("\n").slice(0, -1);
  expect(answered.length).toBeGreaterThan(100);
  const file = engine.open(path, {});
  const stored = new Set(file.query("SELECT id FROM items").values().flat());
  expect(answered.filter((id) => !stored.has(id))).toEqual([]);
  expect(file.rowCount("items")).toBe(stored.size);
});

test("[DB25] a new file is made beside its name, whatever a crash has left there", async () => {
  const path = join(directory, "a.db");
  writeFileSync(`${path}.new`, "half of a file");
  const file = engine.open(path, { migrate: (sqlite) => sqlite.run(CREATE) });
  expect(readdirSync(directory).sort()).toEqual(["a.db", "a.db-shm", "a.db-wal"]);
  // The file is complete without its WAL.
  copyFileSync(path, join(directory, "copy.db"));
  const copy = new Database(join(directory, "copy.db"));
  expect(copy.query("SELECT name FROM sqlite_schema").values()).toContainEqual(["items"]);
  copy.close();
  await file.close();
});

test("[DB25] a file created from a template is complete, and writes to it survive", async () => {
  const source = new Database(":memory:");
  source.run(CREATE);
  source.run("INSERT INTO items VALUES ('from the template', null)");
  const content = new Uint8Array(source.serialize());
  source.close();
  content[18] = 2;
  content[19] = 2;
  const path = join(directory, "a.db");
  const file = engine.open(path, { template: () => content });
  await file.write((tx) => tx.query("INSERT INTO items VALUES ('own', null)").run());
  await file.close();
  const again = engine.open(path, { template: () => new Uint8Array() });
  expect(again.query("SELECT id FROM items ORDER BY id").values().flat()).toEqual(["from the template", "own"]);
});
