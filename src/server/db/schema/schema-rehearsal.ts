import { Database, type SQLQueryBindings } from "bun:sqlite";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "../../../kernel/errors.ts";
import { EMPTY_FILE, isEmptyFile } from "../files/file-identity.ts";
import { quoteIdentifier as quote } from "../identifiers.ts";
import { REHEARSAL_LOCK_TIMEOUT_MS } from "../limits.ts";
import { hasWal, openUnchanged } from "../open-unchanged.ts";
import { openError } from "../writer/sqlite-errors.ts";
import { declaredMigration, hasPendingMigrations, isAsDeclared, plannedProblems } from "./declared.ts";
import { type DeclaredTable, type FirstTable, SchemaMismatch } from "./types.ts";

/** Header offsets of the journal version, and the value for "no WAL": a copy in memory cannot have a WAL. */
const JOURNAL_VERSION_OFFSETS = [18, 19];
const ROLLBACK_VERSION = 1;
const ENDING = ".db";
/** Why an empty instance is not tried: it opens, as one that a power cut left during its creation looks the same. */
const EMPTY_INSTANCE =
  "its file is empty (0 bytes): its data was lost, or a power cut left it before anything was stored";

/** The result of opening a file with the declared tables. */
type Rehearsed =
  | { state: "fits" }
  | { state: "unfit"; problems: readonly string[] }
  /** The file was not tried; `reason` says why. */
  | { state: "untried"; reason: string };

interface RehearsalNamespace {
  name: string;
  isDynamic: boolean;
  tables: readonly DeclaredTable[];
  /** The table that is there before migrations run, as `DeclaredOptions.first`; absent: none. Here it has the ids of accounts alone. */
  first?: FirstTable;
}

export interface RehearsalJob {
  /** The directory of `NAME.db` and `NAME/INSTANCE.db`. */
  directory: string;
  namespaces: readonly RehearsalNamespace[];
  /** The file with the accounts, for a table that is there before migrations run. */
  accounts?: string;
  /** Larger files are not copied, and their migrations are not tried. */
  copyMaxBytes: number;
  /**
   * Whether to skip files with a WAL, while a server runs. The server has such a file open, or a crash left the WAL. In the second
   * case the first connection recovers it under a lock, which could block the server.
   */
  skipsWals: boolean;
}

export type RehearsedFile = Rehearsed & { namespace: string; instanceId: string | null };

/**
 * Tries the declared tables on every existing file, one after another. No file is changed or locked, so a server may run
 * meanwhile. An unchanged file costs one query; any other file is copied into memory and migrated there.
 */
export function* rehearseFiles(job: RehearsalJob): Generator<RehearsedFile> {
  const { directory, namespaces, skipsWals } = job;
  for (const namespace of namespaces) {
    const { name, isDynamic } = namespace;
    const rehearse = createRehearsal(namespace, job);
    if (!isDynamic) {
      const path = join(directory, name + ENDING);
      if (!existsSync(path)) continue;
      const found: Rehearsed = isEmptyFile(path) ? { state: "unfit", problems: [EMPTY_FILE] } : rehearse(path);
      yield { namespace: name, instanceId: null, ...found };
      continue;
    }
    const folder = join(directory, name);
    if (!existsSync(folder)) continue;
    for (const entry of readdirSync(folder).sort()) {
      if (!entry.endsWith(ENDING) || (skipsWals && hasWal(join(folder, entry)))) continue;
      const path = join(folder, entry);
      const found: Rehearsed = isEmptyFile(path) ? { state: "untried", reason: EMPTY_INSTANCE } : rehearse(path);
      yield { namespace: name, instanceId: entry.slice(0, -ENDING.length), ...found };
    }
  }
}

function createRehearsal(
  { name: namespace, tables, first }: RehearsalNamespace,
  { copyMaxBytes, accounts }: Pick<RehearsalJob, "copyMaxBytes" | "accounts">,
): (path: string) => Rehearsed {
  const users = tables.find(({ name }) => name === first?.table);
  const fill = (sqlite: Database): void => fillIds(sqlite, users, accounts);
  const made = first === undefined ? {} : { first: { ...first, fill } };
  const migrate = declaredMigration(tables, { namespace, ...made });
  const isCurrent = isAsDeclared(tables);

  const onCopy = (sqlite: Database): Rehearsed => {
    const copy = copyInMemory(sqlite);
    try {
      migrate(copy);
      return { state: "fits" };
    } catch (cause) {
      return { state: "unfit", problems: problemsOf(cause) };
    } finally {
      copy.close();
    }
  };
  const inPlace = (sqlite: Database): Rehearsed => {
    if (hasPendingMigrations(sqlite, tables)) {
      return { state: "untried", reason: `it has more than ${copyMaxBytes} bytes, and migrations that have not run` };
    }
    const problems = plannedProblems(sqlite, tables, { namespace });
    return problems.length === 0 ? { state: "fits" } : { state: "unfit", problems };
  };
  return (path) => {
    try {
      using sqlite = openUnchanged(path);
      // The server locks a file for the moment in which it opens or closes it.
      sqlite.run(`PRAGMA busy_timeout = ${REHEARSAL_LOCK_TIMEOUT_MS}`);
      if (isCurrent(sqlite)) return { state: "fits" };
      return statSync(path).size <= copyMaxBytes ? onCopy(sqlite) : inPlace(sqlite);
    } catch (cause) {
      // An instance that was deleted in the meantime has no problem.
      return existsSync(path) ? { state: "untried", reason: openError(path, cause).message } : { state: "fits" };
    }
  };
}

/** Gives a new table the id of each account, and values that it takes for the other columns. */
function fillIds(sqlite: Database, table: DeclaredTable | undefined, accounts: string | undefined): void {
  if (table === undefined || accounts === undefined || !existsSync(accounts)) return;
  using file = openUnchanged(accounts);
  const ids = file.prepare<[string], []>("SELECT id FROM users");
  const columns = table.columns.map(({ name }) => quote(name)).join(", ");
  const empty = { TEXT: "", INTEGER: 0, REAL: 0 } as const;
  using insert = sqlite.prepare(
    `INSERT INTO ${quote(table.name)} (${columns}) VALUES (${table.columns.map(() => "?").join(", ")})`,
  );
  for (const [id] of ids.values()) {
    const values = table.columns.map((column) => {
      if (column.name === "id") return id;
      if (table.columnKinds[column.name] === "datetime" && column.default === undefined)
        return new Date(0).toISOString();
      return column.notNull ? (column.default ?? empty[column.type]) : null;
    });
    insert.run(...(values as SQLQueryBindings[]));
  }
  ids.finalize();
}

function copyInMemory(sqlite: Database): Database {
  const content = sqlite.serialize();
  for (const offset of JOURNAL_VERSION_OFFSETS) content[offset] = ROLLBACK_VERSION;
  return Database.deserialize(content);
}

function problemsOf(cause: unknown): readonly string[] {
  if (cause instanceof SchemaMismatch) return cause.problems;
  return [reasonOf(cause)];
}
