import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tablesLayout } from "../../../../schema/migrations/index.ts";
import { testClock } from "../../../../tests/support/clock.ts";
import { type Clock, systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine } from "../engine.ts";
import { CHECKPOINT_BYTES } from "../limits.ts";
import { layOut } from "../migrations.ts";
import type { OpenedFile, StorageEngine } from "../types.ts";
import { type CommitGate, CommitOrder } from "./commit-gate.ts";
import { FileWork } from "./file-work.ts";

interface Row {
  number: number;
  nonce: number;
  at: number;
  place: number;
  file: string;
}

let directory: string;
let engine: StorageEngine;
const seen: { id: string; seq: number }[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "commits-"));
  engine = createStorageEngine({ clock: systemClock });
  seen.length = 0;
});
afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
});

function open(name = "a"): OpenedFile {
  return engine.open(join(directory, `${name}.db`), {
    migrate(sqlite, commits) {
      layOut(tablesLayout)(sqlite, commits);
      sqlite.run("CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, text TEXT) STRICT");
    },
    onChange(groups, seqs) {
      for (const [group, changes] of groups.entries()) {
        for (const [index, { id }] of changes.entries()) seen.push({ id, seq: (seqs[group] ?? 0) + index });
      }
    },
  });
}

const insert = (file: OpenedFile, ids: readonly string[], text = ""): Promise<void> =>
  file.write((tx) => {
    for (const id of ids) {
      tx.query("INSERT INTO items VALUES (?, ?)").run(id, text);
      tx.change({ table: "items", id, before: null, after: { id } });
    }
  });

function rowOf(file: OpenedFile): Row {
  const row = file.query<Row>(`SELECT "number", "nonce", "at", "place", "file" FROM "_platform_commit"`).get();
  if (row === null) throw new Error("the file has no row");
  return row;
}

async function restart(clock: Clock = systemClock): Promise<void> {
  await engine.stop();
  engine = createStorageEngine({ clock });
}

test("[DB340] each commit that changes the file has the next number, and one that changes nothing has none", async () => {
  const file = open();
  await insert(file, ["a"]);
  const first = rowOf(file);
  expect(first.number).toBeGreaterThan(1_600_000_000_000_000);
  expect(Math.abs(first.at - Date.now())).toBeLessThan(60_000);
  await insert(file, ["b"]);
  expect(rowOf(file)).toMatchObject({ number: first.number + 1, nonce: first.nonce, file: first.file });
  // Two writes in one transaction.
  await Promise.all([insert(file, ["c"]), insert(file, ["d"])]);
  expect(rowOf(file).number).toBe(first.number + 2);
  const nothing = () => file.write((tx) => void tx.query("SELECT 1").get());
  await nothing();
  const { number } = rowOf(file);
  await nothing();
  await expect(
    file.write((tx) => {
      tx.query("DELETE FROM items").run();
      throw new Error("undone");
    }),
  ).rejects.toThrow("undone");
  expect(rowOf(file).number).toBe(number);
  await file.write((tx) => void tx.query("CREATE TABLE more (x)").run());
  expect(rowOf(file).number).toBe(number + 1);
});

test("[DB340] the restart of a WAL is a commit with a number, after which the server continues", async () => {
  const file = open();
  await insert(file, ["0"]);
  const first = rowOf(file);
  const text = "x".repeat(100_000);
  const ids = Array.from({ length: Math.ceil((1.5 * CHECKPOINT_BYTES) / text.length) }, (_, index) => `a${index}`);
  await insert(file, ids, text);
  while (rowOf(file).number < first.number + 2) await Bun.sleep(20);
  await insert(file, ["last"]);
  expect(rowOf(file)).toMatchObject({ number: first.number + 3, nonce: first.nonce });
});

test("[DB341] [DB343] a file without the row gets it when it is opened, and continues across restarts with another nonce", async () => {
  const path = join(directory, "a.db");
  {
    using old = new Database(path);
    old.run("PRAGMA journal_mode = WAL");
    layOut(tablesLayout)(old);
    old.run("CREATE TABLE items (id TEXT PRIMARY KEY, text TEXT) STRICT");
  }
  let file = open();
  expect(rowOf(file)).toMatchObject({ number: 0 });
  await insert(file, ["a"]);
  const first = rowOf(file);
  await restart();
  file = open();
  expect(rowOf(file)).toEqual(first);
  await insert(file, ["b"]);
  const second = rowOf(file);
  expect(second.file).toBe(first.file);
  expect(second.number).toBeGreaterThan(first.number);
  expect(second.nonce).not.toBe(first.nonce);
  expect(file.query("PRAGMA user_version").values()).toEqual([[tablesLayout.steps.length]]);
});

test("[DB343] a copy that was written to has another history, also where the numbers are equal", async () => {
  // A clock that stands still, as where one is set back.
  await restart(testClock(Date.now() - 3_600_000));
  let file = open();
  await insert(file, ["a"]);
  await file.close();
  copyFileSync(join(directory, "a.db"), join(directory, "copy.db"));
  file = open();
  const copy = open("copy");
  expect(rowOf(copy)).toEqual(rowOf(file));
  await insert(file, ["b"]);
  await insert(copy, ["c"]);
  const [one, other] = [rowOf(file), rowOf(copy)];
  expect([other.number, other.file]).toEqual([one.number, one.file]);
  expect([other.nonce, other.place]).not.toEqual([one.nonce, one.place]);
});

test("[DB360] a file that was put back continues above every number of its former history", async () => {
  let file = open();
  await insert(file, ["a"]);
  const kept = rowOf(file);
  await file.close();
  copyFileSync(join(directory, "a.db"), join(directory, "kept"));
  file = open();
  await insert(file, ["b"]);
  await insert(file, ["c"]);
  const lost = rowOf(file);
  await file.close();
  copyFileSync(join(directory, "kept"), join(directory, "a.db"));
  file = open();
  expect(rowOf(file)).toEqual(kept);
  await insert(file, ["d"]);
  const first = rowOf(file);
  expect(first.number).toBeGreaterThan(lost.number);
  await insert(file, ["e"]);
  expect(rowOf(file).number).toBe(first.number + 1);
});

test("[DB342] each change has a place of its own in one order of all files", async () => {
  const [a, b] = [open("a"), open("b")];
  await insert(a, ["a1", "a2"]);
  await insert(b, ["b1"]);
  await Promise.all([insert(a, ["a3"]), insert(a, ["a4", "a5"])]);
  expect(seen.map(({ id }) => id)).toEqual(["a1", "a2", "b1", "a3", "a4", "a5"]);
  const seqs = seen.map(({ seq }) => seq);
  expect(seqs).toEqual([...new Set(seqs)].sort((x, y) => x - y));
  expect(rowOf(a).place).toBe(seqs.at(-1) ?? 0);
  expect(rowOf(b).place).toBe(seqs[2] ?? 0);
});

test("[DB342] places grow across restarts, also where the clock is set back", async () => {
  let file = open();
  await insert(file, ["a", "b"]);
  await restart(testClock(Date.now() - 3_600_000));
  file = open();
  await insert(file, ["c"]);
  expect(seen.map(({ seq }) => seq)).toEqual(seen.map(({ seq }) => seq).sort((x, y) => x - y));
  expect(new Set(seen.map(({ seq }) => seq)).size).toBe(3);
});

test("[DB342] nothing is called announced that a listener has not got yet", async () => {
  let finish: (error: null) => void = () => {};
  await engine.stop();
  engine = createStorageEngine({ clock: systemClock, syncFile: (_, done) => (finish = done) });
  const file = open();
  const before = engine.lastSeq;
  const written = insert(file, ["a", "b"]);
  while (file.query("SELECT 1 FROM items").get() === null) await Bun.sleep(1);
  expect(engine.lastSeq).toBeLessThan(rowOf(file).place - 1);
  expect(engine.lastSeq).toBeGreaterThanOrEqual(before);
  let isWritten = false;
  void written.then(() => (isWritten = true));
  while (!isWritten) {
    finish(null);
    await Bun.sleep(1);
  }
  expect(engine.lastSeq).toBe(rowOf(file).place);
  await engine.stop();
});

test("[DB344] the version of a table is the commit since which it is unchanged", async () => {
  let file = open();
  await insert(file, ["a"]);
  const version = file.tableVersion("items");
  expect(version).toBe(rowOf(file).number);
  await file.write((tx) => void tx.query("CREATE TABLE more (x)").run());
  expect(file.tableVersion("items")).toBe(version);
  await restart();
  file = open();
  expect(file.tableVersion("items")).toBe(rowOf(file).number);
});

test("[DB340] what a migration changes has a number, also where it forgets to commit by the gate", async () => {
  const file = open();
  await insert(file, ["a"]);
  const { number } = rowOf(file);
  await restart();
  const byGate = engine.open(join(directory, "a.db"), {
    migrate: (sqlite, commits) => commits?.transaction(() => sqlite.run("UPDATE items SET text = 'by the gate'")),
  });
  const migrated = rowOf(byGate).number;
  expect(migrated).toBeGreaterThan(number);
  await restart();
  const forgetful = engine.open(join(directory, "a.db"), {
    migrate: (sqlite) => void sqlite.run("UPDATE items SET text = 'forgotten'"),
  });
  const forgotten = rowOf(forgetful).number;
  expect(forgotten).toBeGreaterThan(migrated);
  await restart();
  expect(rowOf(open()).number).toBe(forgotten);
});

const WRITER = `
import { createStorageEngine, layOut } from ${JSON.stringify(join(import.meta.dir, "../index.ts"))};
import { systemClock } from ${JSON.stringify(join(import.meta.dir, "../../../kernel/clock.ts"))};
const file = createStorageEngine({ clock: systemClock }).open(process.argv[1], {
  migrate: (sqlite) => sqlite.run("CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, text TEXT) STRICT"),
});
for (let n = 0; ; n++) {
  await file.write((tx) => tx.query("INSERT INTO items VALUES (?, (SELECT number FROM _platform_commit))").run(String(n)));
  process.stdout.write(n + "\\n");
}`;

test("[DB341] after a kill the row is that of the last commit in the file", async () => {
  const path = join(directory, "a.db");
  const child = Bun.spawn([process.execPath, "-e", WRITER, path], { stdout: "pipe", stderr: "inherit" });
  const answered: string[] = [];
  for await (const chunk of child.stdout) {
    answered.push(...Buffer.from(chunk).toString().trim().split("\n"));
    if (answered.length > 50) break;
  }
  child.kill("SIGKILL");
  await child.exited;
  const file = open();
  const count = file.query<{ n: number }>("SELECT count(*) AS n FROM items").get()?.n ?? 0;
  // Each record has the number of the commit before its own.
  const last = file.query<{ text: string }>("SELECT text FROM items ORDER BY CAST(id AS INTEGER) DESC LIMIT 1").get();
  expect(count).toBeGreaterThanOrEqual(50);
  expect(rowOf(file).number).toBeGreaterThanOrEqual(Number(last?.text) + 1);
});

/** Opens a file with a gate of its own, as the file of a database of users. */
function gated(name: string): { sqlite: Database; gate: CommitGate } {
  const sqlite = new Database(join(directory, name));
  sqlite.run("PRAGMA journal_mode = WAL");
  return { sqlite, gate: engine.gate(sqlite, { isRewritten: false }) };
}

test("[DB361] the observer hears of each commit before anything else runs, and of an attempt that failed", async () => {
  const { sqlite, gate } = gated("b.db");
  gate.open(() => {});
  const heard: number[] = [];
  gate.onCommitted = () => heard.push(gate.number);
  gate.transaction(() => sqlite.run("CREATE TABLE t (x)"));
  sqlite.run("BEGIN IMMEDIATE");
  sqlite.run("INSERT INTO t VALUES (1)");
  gate.commit(0);
  const first = heard[0] ?? 0;
  expect(heard).toEqual([first, first + 1]);
  await gate.elsewhere(
    async (answer) => {
      const mark = await answer("commit");
      expect(mark).toMatchObject({ number: first + 2, file: gate.file });
      sqlite.run(`UPDATE _platform_commit SET "number" = ${mark?.number}`);
    },
    () => {},
  );
  const failed = gate.elsewhere(
    async (answer) => {
      await answer("commit");
      throw new Error("the process was killed");
    },
    () => {},
  );
  await expect(failed).rejects.toThrow("killed");
  expect(heard).toEqual([first, first + 1, first + 2, first + 2]);
  gate.close();
  sqlite.close();
});

test("[DB342] a commit that another process is making holds the place up to which all commits have been made", async () => {
  const order = new CommitOrder(testClock(1_000));
  const source = {};
  const place = order.begin(source);
  expect(order.take(3)).toBe(place + 3);
  expect(order.lastMade).toBe(place - 1);
  order.ended(source);
  expect(order.lastMade).toBe(place + 3);
});

test("[DB362] [DB361] a file with an open mark, and one that a migration took out of WAL mode, count as rewritten", () => {
  const { sqlite, gate } = gated("b.db");
  gate.open(() => {});
  gate.transaction(() => {});
  const reopened = engine.gate(sqlite, { isRewritten: false });
  reopened.open(() => {});
  expect(reopened.isRewritten).toBe(false);
  sqlite.run(`UPDATE _platform_commit SET "nonce" = 0`);
  const marked = engine.gate(sqlite, { isRewritten: false });
  marked.open(() => {});
  expect(marked.isRewritten).toBe(true);
  marked.transaction(() => {});
  const later = engine.gate(sqlite, { isRewritten: false });
  later.open(() => later.outsideWal(() => {}));
  expect(later.isRewritten).toBe(true);
  for (const one of [gate, reopened, marked, later]) one.close();
  sqlite.close();
});

test("[DB363] the process of checkpoints leaves the WAL of a server that was killed", async () => {
  const file = open();
  await insert(file, ["a"]);
  // The files as a kill leaves them.
  for (const suffix of ["", "-wal"])
    copyFileSync(join(directory, `a.db${suffix}`), join(directory, `left.db${suffix}`));
  const left = join(directory, "left.db");
  const before = statSync(`${left}-wal`).size;
  expect(before).toBeGreaterThan(0);
  const work = new FileWork(systemClock);
  await work.checkpoint(left, { sync: true, next: false });
  await work.stop();
  expect(statSync(`${left}-wal`).size).toBe(before);
});
