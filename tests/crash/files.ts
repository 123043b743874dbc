import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Returns the faults in the database files of a server that was killed; they are looked at in copies. */
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
      // Throws where the index contradicts itself.
      sqlite.run(`INSERT INTO ${quote(table)}(${quote(table)}) VALUES ('integrity-check')`);
      faults.push(...faultsOfIndex(sqlite, table));
    }
    // A power cut may leave the file of an instance empty whose first write was not answered.
    if (tables.length > 0) faults.push(...faultsOfCommits(sqlite));
    if (tables.includes("_platform_counts")) faults.push(...faultsOfCounts(sqlite));
    return faults;
  } catch (cause) {
    return [String(cause)];
  } finally {
    sqlite.close();
  }
}

/** Against one that is made of the records anew; those whose texts wait are in neither. */
function faultsOfIndex(sqlite: Database, table: string): string[] {
  const records = table.slice(0, -"_fts".length);
  const [[sql] = []] = sqlite.query("SELECT sql FROM sqlite_schema WHERE name = ?").values(table);
  const columns = sqlite.query<{ name: string }, [string]>("SELECT name FROM pragma_table_info(?)").all(table);
  const names = columns.map(({ name }) => quote(name)).join(", ");
  sqlite.run(String(sql).replace(`CREATE VIRTUAL TABLE ${quote(table)}`, "CREATE VIRTUAL TABLE temp.anew"));
  sqlite.run(
    `INSERT INTO temp.anew (rowid, ${names}) SELECT rowid, ${names} FROM ${quote(records)}
     WHERE "id" NOT IN (SELECT "id" FROM "_platform_pending_texts" WHERE "table" = ?)`,
    [records],
  );
  sqlite.run(`CREATE VIRTUAL TABLE temp.terms_kept USING fts5vocab('main', ${quote(table)}, 'instance')`);
  sqlite.run("CREATE VIRTUAL TABLE temp.terms_anew USING fts5vocab('temp', 'anew', 'instance')");
  const difference = (one: string, other: string) =>
    sqlite.query(`SELECT count(*) FROM (SELECT * FROM ${one} EXCEPT SELECT * FROM ${other})`).values().flat();
  const [more, less] = [difference("terms_kept", "terms_anew"), difference("terms_anew", "terms_kept")].flat();
  for (const name of ["terms_kept", "terms_anew", "anew"]) sqlite.run(`DROP TABLE temp.${name}`);
  return more === 0 && less === 0 ? [] : [`${table} has ${more} words that no record has, and lacks ${less}`];
}

/** Against the row of the last commit, which every file has. 0: nothing has been committed. */
function faultsOfCommits(sqlite: Database): string[] {
  const rows = sqlite
    .query<{ number: number; nonce: number; file: string }, []>("SELECT * FROM _platform_commit")
    .all();
  const [row] = rows;
  if (row === undefined || rows.length > 1) return [`it has ${rows.length} commit rows`];
  const isSound = row.number === 0 ? row.file === "" : row.nonce > 0 && row.file !== "";
  return isSound ? [] : [`its commit row is ${JSON.stringify(row)}`];
}

function faultsOfCounts(sqlite: Database): string[] {
  const kept = sqlite.query<{ name: string; rows: number }, []>(`SELECT "name", "rows" FROM "_platform_counts"`).all();
  return kept.flatMap(({ name, rows }) => {
    const [[count] = []] = sqlite.query(`SELECT count(*) FROM ${quote(name)}`).values();
    return count === rows ? [] : [`${name} has ${String(count)} rows, and ${rows} are kept count of`];
  });
}
