import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { CommandError } from "../../errors.ts";
import { canonical } from "../load/comparison.ts";
import type { Print } from "./decide.ts";

const FILE = "moved.db";
const FILE_MODE = 0o600;
/** Characters of a hash in base64: 72 bits. */
const HASH_CHARACTERS = 12;

/** Hashes of every field that a move has brought, by which a later one sees what has changed since, and on which side. */
export interface MovedState {
  /** The config as the move wrote it, which may have been edited since. */
  config: string;
  tables: ReadonlyMap<string, ReadonlyMap<string, Print>>;
}

/** Returns the hashes of a record's fields. */
export const printOf = (record: JsonObject): Print =>
  new Map(
    Object.entries(record).map(([name, value]) => [
      name,
      createHash("sha256").update(canonical(value)).digest("base64").slice(0, HASH_CHARACTERS),
    ]),
  );

/** Reads what the last move has brought. Errors: CommandError where there is no account of it. */
export function readState(data: string): MovedState {
  const file = join(data, FILE);
  if (!existsSync(file)) {
    throw new CommandError(`${file} is not there, which says what was moved: move into a new folder, without --again`);
  }
  const sqlite = new Database(file, { readonly: true });
  try {
    const config = sqlite.query<{ text: string }, []>("SELECT text FROM config").get()?.text ?? "";
    const tables = new Map<string, Map<string, Print>>();
    for (const { name, fields } of sqlite
      .query<{ name: string; fields: string }, []>("SELECT name, fields FROM tables")
      .all()) {
      // Written below.
      const names = JSON.parse(fields) as string[];
      const records = new Map<string, Print>();
      const rows = sqlite.query<{ id: string; hashes: string }, [string]>(
        "SELECT id, hashes FROM records WHERE name = ?",
      );
      for (const { id, hashes } of rows.iterate(name)) {
        const entries = names.map((field, index): [string, string] => {
          return [field, hashes.slice(index * HASH_CHARACTERS, (index + 1) * HASH_CHARACTERS)];
        });
        records.set(id, new Map(entries.filter(([, hash]) => hash.trim() !== "")));
      }
      tables.set(name, records);
    }
    return { config, tables };
  } finally {
    sqlite.close();
  }
}

/** Writes what a move has brought, in place of what one before has. */
export function writeState(data: string, { config, tables }: MovedState): void {
  const file = join(data, FILE);
  for (const end of ["", "-journal"]) rmSync(file + end, { force: true });
  const sqlite = new Database(file, { create: true, readwrite: true });
  try {
    chmodSync(file, FILE_MODE);
    sqlite.run("CREATE TABLE config (text TEXT NOT NULL) STRICT");
    sqlite.run("CREATE TABLE tables (name TEXT PRIMARY KEY, fields TEXT NOT NULL) STRICT");
    sqlite.run(
      "CREATE TABLE records (name TEXT NOT NULL, id TEXT NOT NULL, hashes TEXT NOT NULL, PRIMARY KEY (name, id)) STRICT, WITHOUT ROWID",
    );
    sqlite.transaction(() => {
      sqlite.run("INSERT INTO config VALUES (?)", [config]);
      for (const [name, records] of tables) {
        const fields = [...new Set([...records.values()].flatMap((print) => [...print.keys()]))];
        sqlite.run("INSERT INTO tables VALUES (?, ?)", [name, JSON.stringify(fields)]);
        const insert = sqlite.prepare("INSERT INTO records VALUES (?, ?, ?)");
        for (const [id, print] of records) {
          insert.run(name, id, fields.map((field) => print.get(field) ?? " ".repeat(HASH_CHARACTERS)).join(""));
        }
      }
    })();
  } finally {
    sqlite.close();
  }
}
