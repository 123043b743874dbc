import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { createStorageEngine } from "../engine.ts";
import { INDEXED_NOW_LENGTH_MAX, REBUILD_NOW_ROWS_MAX } from "../limits.ts";
import { declaredMigration } from "../schema/declared.ts";
import type { DeclaredTable } from "../schema/types.ts";
import type { DatabaseFile, StorageEngine, Transaction } from "../types.ts";

const notes = (tokenize: "unicode61" | "trigram" = "unicode61"): DeclaredTable => ({
  name: "notes",
  kind: "schema",
  columnKinds: { id: "string", text: "text" },
  indexes: [],
  migrations: [],
  columns: [
    { name: "id", type: "TEXT", notNull: true, unique: false, check: null, references: null },
    { name: "text", type: "TEXT", notNull: false, unique: false, check: null, references: null },
  ],
  fts: { fields: ["text"], tokenize },
});

let directory: string;
let engine: StorageEngine;
let file: DatabaseFile;
const failures: unknown[] = [];

function open(declared: DeclaredTable = notes(), rebuildTexts: "now" | "later" = "now"): DatabaseFile {
  return engine.open(join(directory, "a.db"), { migrate: declaredMigration([declared], { rebuildTexts }) });
}
const newEngine = () => createStorageEngine({ clock: systemClock, onFailure: (_path, cause) => failures.push(cause) });

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "indexer-"));
  failures.length = 0;
  engine = newEngine();
  file = open();
});

afterEach(async () => {
  await engine.stop();
  rmSync(directory, { recursive: true });
  expect(failures).toEqual([]);
});

/** Distinct words, as in real texts: one repeated word is indexed in no time. */
const LONG = Array.from({ length: INDEXED_NOW_LENGTH_MAX / 4 }, (_, n) => `w${n.toString(36)}`).join(" ");

function insert(tx: Transaction, id: string, text: string): void {
  tx.indexText("notes", id, text.length);
  tx.query("INSERT INTO notes (id, text) VALUES (?, ?)").run(id, text);
  tx.change({ table: "notes", id, before: null, after: {} });
}
function update(tx: Transaction, id: string, text: string): void {
  tx.indexText("notes", id, text.length);
  tx.query("UPDATE notes SET text = ? WHERE id = ?").run(text, id);
}

const FOUND = "SELECT id FROM notes WHERE rowid IN (SELECT rowid FROM notes_fts WHERE notes_fts MATCH ?) ORDER BY id";
const found = (word: string) => file.query(FOUND).values(word).flat();
const pending = () => file.query(`SELECT "id" FROM "_platform_pending_texts" ORDER BY 1`).values().flat();

async function indexed(): Promise<void> {
  for (let wait = 0; wait < 2_000 && pending().length > 0; wait++) await Bun.sleep(10);
  expect(pending()).toEqual([]);
}

test("[DB144] text beyond 16 KiB of a write is recorded with it, and searchable soon after its commit", async () => {
  const writing = file.write((tx) => {
    insert(tx, "small", "apple");
    insert(tx, "large", `${LONG} apple`);
    insert(tx, "next", "apple");
    return pending();
  });
  expect(await writing).toEqual(["large", "next"]);
  await indexed();
  expect(found("apple")).toEqual(["large", "next", "small"]);
  await file.write((tx) => insert(tx, "another", "apple"));
  expect([pending(), found("apple")]).toEqual([[], ["another", "large", "next", "small"]]);
});

test("[DB145] texts that are changed or deleted while they wait leave nothing in the index", async () => {
  await file.write((tx) => {
    for (const id of ["a", "b", "c", "d"]) insert(tx, id, `${LONG} first${id}`);
  });
  await file.write((tx) => {
    update(tx, "a", "second");
    tx.query("DELETE FROM notes WHERE id = 'b'").run();
    tx.query("UPDATE notes SET text = NULL WHERE id = 'c'").run();
  });
  await indexed();
  expect([found("firsta OR firstb OR firstc"), found("firstd"), found("second")]).toEqual([[], ["d"], ["a"]]);
  // An indexed text that is replaced by a long one is not found after the commit.
  await file.write((tx) => update(tx, "a", `${LONG} third`));
  expect(found("second")).toEqual([]);
  await indexed();
  expect(found("third")).toEqual(["a"]);
  // A rowid is reused.
  await file.write((tx) => tx.query("DELETE FROM notes").run());
  expect(found("w1 OR second OR third")).toEqual([]);
  await file.write((tx) => insert(tx, "e", "fourth"));
  expect([found("w1"), found("fourth")]).toEqual([[], ["e"]]);
  file.query("INSERT INTO notes_fts (notes_fts) VALUES ('integrity-check')").run();
});

test("[DB146] a write that is undone records nothing", async () => {
  const undone = file.write((tx) => {
    insert(tx, "a", `${LONG} apple`);
    throw new Error("no");
  });
  await expect(undone).rejects.toThrow("no");
  expect([pending(), found("apple")]).toEqual([[], []]);
});

test("[DB147] texts that wait when a file is closed are indexed when it is opened again", async () => {
  await file.write((tx) => {
    for (let n = 0; n < 100; n++) insert(tx, `n${n}`, `${LONG} apple`);
  });
  await file.close();
  const sqlite = new Database(join(directory, "a.db"));
  const left = sqlite.query(`SELECT count(*) AS n FROM "_platform_pending_texts"`).get() as { n: number };
  sqlite.close();
  expect(left.n).toBeGreaterThan(0);
  file = open();
  await indexed();
  expect(found("apple")).toHaveLength(100);
});

test("[DB148] writes run between the slices, in the order of arrival", async () => {
  await file.write((tx) => {
    for (let n = 0; n < 100; n++) insert(tx, `n${n}`, `${LONG} apple`);
  });
  const waiting: number[] = [];
  for (let n = 0; n < 10; n++) {
    await file.write((tx) => insert(tx, `m${n}`, "pear"));
    waiting.push(pending().length);
  }
  expect(waiting[0]).toBeGreaterThan(0);
  expect(found("pear")).toHaveLength(10);
  await indexed();
  expect(found("apple")).toHaveLength(100);
});

test("[DB149] after a change of tokenizer a large table is indexed when it is opened, or soon after", async () => {
  await file.write((tx) => {
    for (let n = 0; n < REBUILD_NOW_ROWS_MAX; n++) insert(tx, `n${n}`, "apple");
  });
  await file.close();
  file = open(notes("trigram"));
  expect([pending(), found("ppl").length]).toEqual([[], REBUILD_NOW_ROWS_MAX]);
  await file.close();
  file = open(notes(), "later");
  expect(pending().length).toBeGreaterThan(0);
  await indexed();
  expect(found("apple")).toHaveLength(REBUILD_NOW_ROWS_MAX);
  await file.write((tx) => tx.query("DELETE FROM notes WHERE id <> 'n1'").run());
  await file.close();
  file = open(notes("trigram"), "later");
  expect([pending(), found("ppl")]).toEqual([[], ["n1"]]);
});

test("[DB48] an index of an earlier release, which reads the table's texts, is rebuilt", async () => {
  await file.write((tx) => insert(tx, "a", "apple"));
  await file.close();
  const sqlite = new Database(join(directory, "a.db"));
  sqlite.run("DROP TABLE notes_fts");
  for (const event of ["insert", "delete", "update", "pending"]) sqlite.run(`DROP TRIGGER "notes_fts:${event}"`);
  sqlite.run(`DROP TABLE "_platform_pending_texts"`);
  sqlite.run("PRAGMA user_version = 0");
  sqlite.run(
    "CREATE VIRTUAL TABLE notes_fts USING fts5(text, content='notes', content_rowid='rowid', tokenize='unicode61', prefix='2 3')",
  );
  sqlite.run(
    `CREATE TRIGGER "notes_fts:insert" AFTER INSERT ON notes BEGIN INSERT INTO notes_fts (rowid, text) VALUES (new.rowid, new.text); END`,
  );
  sqlite.run(`UPDATE "_platform_meta" SET "value" = 'of before' WHERE "name" = 'declared_hash'`);
  sqlite.close();
  file = open();
  expect(found("apple")).toEqual(["a"]);
  await file.write((tx) => tx.query("DELETE FROM notes").run());
  expect(found("apple")).toEqual([]);
});
