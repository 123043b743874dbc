import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** What is wrong with the database files of a server that was killed; they are looked at in copies. */
export function faultsOfFiles(dataDirectory: string): { files: number; faults: string[] } {
  const copies = mkdtempSync(join(tmpdir(), "platform-crash-"));
  const faults: string[] = [];
  const names = readdirSync(dataDirectory, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".db"));
  try {
    for (const name of names) {
      const copy = join(copies, basename(name));
      for (const suffix of ["", "-wal"]) {
        rmSync(copy + suffix, { force: true });
        const path = join(dataDirectory, name + suffix);
        if (existsSync(path)) copyFileSync(path, copy + suffix);
      }
      faults.push(...faultsOfFile(copy).map((fault) => `${name}: ${fault}`));
    }
    return { files: names.length, faults };
  } finally {
    rmSync(copies, { recursive: true });
  }
}

function faultsOfFile(path: string): string[] {
  const sqlite = new Database(path);
  const values = (sql: string): unknown[] => sqlite.query(sql).values().flat();
  try {
    const faults = values("PRAGMA integrity_check")
      .filter((line) => line !== "ok")
      .map(String);
    faults.push(...values("PRAGMA foreign_key_check").map((line) => `foreign key: ${String(line)}`));
    const tables = values("SELECT name FROM sqlite_schema WHERE type = 'table'").map(String);
    for (const table of tables.filter((name) => name.endsWith("_fts"))) {
      // Compares the index with the table that it is of, and throws where they differ.
      sqlite.run(`INSERT INTO ${quote(table)}(${quote(table)}, rank) VALUES ('integrity-check', 1)`);
    }
    if (tables.includes("_platform_counts")) faults.push(...faultsOfCounts(sqlite));
    return faults;
  } catch (cause) {
    return [String(cause)];
  } finally {
    sqlite.close();
  }
}

function faultsOfCounts(sqlite: Database): string[] {
  const kept = sqlite.query<{ name: string; rows: number }, []>(`SELECT "name", "rows" FROM "_platform_counts"`).all();
  return kept.flatMap(({ name, rows }) => {
    const [[count] = []] = sqlite.query(`SELECT count(*) FROM ${quote(name)}`).values();
    return count === rows ? [] : [`${name} has ${String(count)} rows, and ${rows} are kept count of`];
  });
}
