import type { Database } from "bun:sqlite";
import { tablesLayout } from "../../../../schema/migrations/index.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import { quoteIdentifier as quote } from "../identifiers.ts";
import { readMeta, writeMeta } from "../meta.ts";
import { isUpToDate, layOut } from "../migrations.ts";
import { type Commits, unnumbered } from "../writer/commit-gate.ts";
import { countRows, forgetCounts } from "../writer/row-counts.ts";
import { applyFts, applyIndexes, applyPlan, dropFts, dropFtsTriggers } from "./apply.ts";
import { brokenReference, countBrokenReferences } from "./broken-references.ts";
import { type FormerDatetimes, hasFormerDatetimes, noteRewritten, rewriteDatetimes } from "./datetimes.ts";
import { isDoneAlready } from "./done-already.ts";
import { applyEmbeddings, dropEmbeddings, dropEmbeddingTriggers } from "./embeddings.ts";
import { applyGeo, dropGeo, dropGeoTriggers } from "./geo-index.ts";
import {
  DECLARED_KEY,
  isEmpty,
  readColumns,
  readIndexNames,
  readStored,
  readTableSql,
  type StoredTable,
} from "./inspect.ts";
import { applyLinks, dropLinkTriggers } from "./links.ts";
import { addition, planTable } from "./plan.ts";
import { lostTables } from "./renames.ts";
import { createTableSql } from "./sql.ts";
import { applyTombstones, dropTombstoneTriggers } from "./tombstones.ts";
import {
  type DeclaredMigration,
  type DeclaredOptions,
  type DeclaredTable,
  type FirstTable,
  MigrationFailed,
  SchemaMismatch,
} from "./types.ts";

export { type DeclaredColumn, type DeclaredTable, SchemaMismatch } from "./types.ts";

const HASH_KEY = "declared_hash";
/** The hash of a file in which a migration ended the transaction: its content follows no known declaration. */
const UNKNOWN_HASH = "";
const MIGRATION_SAVEPOINT = `"_platform_migration"`;

/**
 * Storage format, part of the hash. Increased when the same declaration is stored differently, so that every file is compared
 * again.
 */
const FORMAT = 3;

/**
 * Returns a function that changes a file's tables to match the declaration. It adds tables, columns, indexes and full-text
 * search. It drops indexes, and tables without records, that are no longer declared. A change that would lose or
 * reinterpret records, and that no migration handles, throws SchemaMismatch, which lists every such change. After that,
 * and after a failed migration, the file is unchanged. Each migration runs once, in order of version over all tables, in
 * the same transaction as all other changes. The migrations of a new table, and those that rename or drop what a file no
 * longer has, are recorded as done without being run.
 * The function can be used for many files; an unchanged file costs one query.
 */
export function declaredMigration(
  tables: readonly DeclaredTable[],
  options: DeclaredOptions = {},
): DeclaredMigrationRun {
  const hash = hashOf(tables);
  const layOutServerTables = layOut(tablesLayout);
  return (sqlite, commits = unnumbered(sqlite), onFormer = () => {}) => {
    layOutServerTables(sqlite, commits);
    const isRewritten = options.datetimes === "later" || !hasFormerDatetimes(sqlite);
    if (readMeta(sqlite, HASH_KEY) === hash && isRewritten) return;
    let former: FormerDatetimes[] = [];
    // With foreign keys enforced, dropping a table deletes the rows that refer to it. Cannot be set inside a transaction.
    sqlite.run("PRAGMA foreign_keys = OFF");
    try {
      commits.transaction(() => {
        former = migrate(sqlite, tables, hash, options);
      });
    } catch (error) {
      if (error instanceof TransactionLost) {
        attempt(
          () => commits.transaction(() => writeMeta(sqlite, HASH_KEY, UNKNOWN_HASH)),
          () => error,
        );
      }
      throw error;
    } finally {
      sqlite.run("PRAGMA foreign_keys = ON");
    }
    if (former.length > 0) onFormer(former);
  };
}

/** Migrates a file. `onFormer` is called after the commit with the fields whose datetimes could not all be rewritten. */
type DeclaredMigrationRun = (
  sqlite: Database,
  commits?: Commits,
  onFormer?: (former: readonly FormerDatetimes[]) => void,
) => void;

function hashOf(tables: readonly DeclaredTable[]): string {
  const declaration = JSON.stringify(tables, (_, value: unknown) => (typeof value === "bigint" ? `${value}n` : value));
  return new Bun.CryptoHasher("sha256").update(`${FORMAT} ${declaration}`).digest("hex");
}

/** Reports whether a file was last migrated to exactly these tables. Does not change the file. */
export function isAsDeclared(tables: readonly DeclaredTable[]): (sqlite: Database) => boolean {
  const hash = hashOf(tables);
  return (sqlite) =>
    isUpToDate(sqlite, tablesLayout) && readMeta(sqlite, HASH_KEY) === hash && !hasFormerDatetimes(sqlite);
}

/** Thrown when a migration ended the shared transaction, so that some changes could not be rolled back. */
class TransactionLost extends MigrationFailed {}

function migrate(
  sqlite: Database,
  tables: readonly DeclaredTable[],
  hash: string,
  { namespace, rebuildTexts = "now", datetimes = "now", first }: DeclaredOptions,
): FormerDatetimes[] {
  const pathOf = pathIn(namespace);
  const isUnknown = readMeta(sqlite, HASH_KEY) === UNKNOWN_HASH;
  const stored = readStored(sqlite);
  const before = readTableSql(sqlite);
  dropLinkTriggers(sqlite);
  const known = dropTombstoneTriggers(sqlite);
  const made = tables.filter(({ name }) => name === first?.table && !before.has(name));
  for (const table of made) sqlite.run(createTableSql(table));
  if (made.length > 0) first?.fill(sqlite);
  const isTaken = takenName(sqlite, first, pathOf).length > 0;
  const fresh = isTaken ? tables.filter(({ name }) => name === first?.table) : made;
  const migrated = runMigrations(sqlite, tables, { stored, before, fresh, isTaken, pathOf });
  const taken = takenName(sqlite, first, pathOf);
  if (taken.length > 0) throw new SchemaMismatch(taken);
  const present = migrated.size > 0 || made.length > 0 ? readTableSql(sqlite) : before;
  const isAltered = ({ name }: DeclaredTable): boolean =>
    isUnknown || !stored.has(name) || present.get(name) !== before.get(name);
  const isMigrated = ({ name }: DeclaredTable): boolean => migrated.has(name);
  const { added, missing, planned, problems } = planTables(sqlite, tables, {
    stored,
    present,
    pathOf,
    isAltered,
    isMigrated,
  });
  if (problems.length > 0) throw new SchemaMismatch(problems);

  for (const table of added) sqlite.run(createTableSql(table));
  for (const { plan } of planned) {
    attempt(
      () => applyPlan(sqlite, plan),
      (message) => new SchemaMismatch([`${pathOf(plan.table.name)}: ${message}`]),
    );
  }
  const isStale = isUnknown || migrated.size > 0;
  for (const table of tables) {
    applyIndexes(sqlite, table);
    applyFts(sqlite, table, { isStale, rebuild: rebuildTexts });
    applyGeo(sqlite, table, { isStale });
    applyEmbeddings(sqlite, table, { isStale });
  }
  for (const name of stored.keys()) {
    if (tables.some((table) => table.name === name)) continue;
    dropFts(sqlite, name);
    dropGeo(sqlite, name);
    dropEmbeddings(sqlite, name);
  }
  applyLinks(sqlite, tables, { isStale, pathOf });
  applyTombstones(sqlite, tables, { known, isStale });
  // These tables are empty.
  for (const name of missing) sqlite.run(`DROP TABLE ${quote(name)}`);
  const isUpgrade = hasFormerDatetimes(sqlite);
  // Migrations of the config write datetimes in any form.
  const rewritten = isUpgrade && datetimes === "now" ? tables : tables.filter(isMigrated);
  const former = rewriteDatetimes(sqlite, { tables: rewritten, all: tables, pathOf });
  if (isUpgrade && datetimes === "now") noteRewritten(sqlite);
  if (planned.length > 0) assertReferences(sqlite, tables, pathOf);
  countRows(
    sqlite,
    (isStale || stored.size === 0 ? tables : [...made, ...added]).map(({ name }) => name),
    quote,
  );
  forgetCounts(sqlite, missing);
  writeMeta(sqlite, DECLARED_KEY, JSON.stringify(tables.map(({ migrations: _, ...table }): StoredTable => table)));
  writeMeta(sqlite, HASH_KEY, hash);
  return former;
}

/** Describes a table of another kind that has the name of the one that is made first. */
function takenName(sqlite: Database, first: FirstTable | undefined, pathOf: (table: string) => string): string[] {
  if (first === undefined) return [];
  const columns = readColumns(sqlite, first.table);
  if (columns.length === 0 || columns.some(({ name }) => name === first.column)) return [];
  if (isEmpty(sqlite, first.table)) return [];
  return [
    `${pathOf(first.table)}: the file has a table of this name with records of its own, which are not those of accounts. ` +
      "Declare it under another name, with a migration that renames it, or set auth.users.table",
  ];
}

interface PlanContext {
  stored: ReadonlyMap<string, StoredTable>;
  present: ReadonlyMap<string, string>;
  pathOf: (table: string) => string;
  isAltered(table: DeclaredTable): boolean;
  isMigrated(table: DeclaredTable): boolean;
}

/** Plans each table, and collects every problem. Does not change the file. */
function planTables(sqlite: Database, tables: readonly DeclaredTable[], context: PlanContext) {
  const { stored, present, pathOf, isAltered, isMigrated } = context;
  const missing = missingTables(tables, stored, present);
  const added = tables.filter((table) => !present.has(table.name));
  const planned = tables
    .filter((table) => present.has(table.name))
    .map((table) => {
      const facts = { isMigrated: isMigrated(table), isAltered: isAltered(table) };
      return planTable(sqlite, { table, stored: stored.get(table.name) ?? null, ...facts }, pathOf(table.name));
    });
  const lost = missing.filter((name) => !isEmpty(sqlite, name));
  const problems = lostTables({ names: lost, added, stored, pathOf });
  problems.push(...planned.flatMap((entry) => entry.problems));
  return { added, missing, planned, problems };
}

/** Finds the problems that show without changing the file: no migration is run, and references are not checked. */
export function plannedProblems(
  sqlite: Database,
  tables: readonly DeclaredTable[],
  options: DeclaredOptions = {},
): string[] {
  return planTables(sqlite, tables, {
    stored: readStored(sqlite),
    present: readTableSql(sqlite),
    pathOf: pathIn(options.namespace),
    isAltered: () => false,
    isMigrated: () => false,
  }).problems;
}

function pathIn(namespace: string | undefined): (table: string) => string {
  return (table) => (namespace === undefined ? table : `${namespace}.${table}`);
}

function missingTables(
  tables: readonly DeclaredTable[],
  stored: ReadonlyMap<string, StoredTable>,
  present: ReadonlyMap<string, string>,
): string[] {
  const declared = new Set(tables.map(({ name }) => name));
  return [...stored.keys()].filter((name) => !declared.has(name) && present.has(name));
}

interface MigrationContext {
  stored: ReadonlyMap<string, StoredTable>;
  before: ReadonlyMap<string, string>;
  /** Tables whose migrations are not for what the file has. */
  fresh: readonly DeclaredTable[];
  /** Whether a table that has to be renamed has the name of another one. */
  isTaken: boolean;
  pathOf: (table: string) => string;
}

/** Runs pending migrations, and returns the tables whose migrations ran. */
function runMigrations(sqlite: Database, tables: readonly DeclaredTable[], context: MigrationContext): Set<string> {
  const pending = pendingMigrations(sqlite, tables);
  // A new table has no records to migrate, unless it may be the new name of a removed table that has records.
  const lost = missingTables(tables, context.stored, context.before).some((name) => !isEmpty(sqlite, name));
  const mayBeRenamed = lost || context.isTaken;
  const due = pending.filter(
    ({ table }) => !context.fresh.includes(table) && (context.before.has(table.name) || mayBeRenamed),
  );
  if (due.length > 0) {
    // The server's indexes would prevent dropping and renaming columns; all of them are created again afterwards.
    for (const name of readIndexNames(sqlite)) sqlite.run(`DROP INDEX ${quote(name)}`);
    for (const name of context.stored.keys()) {
      dropFtsTriggers(sqlite, name);
      dropGeoTriggers(sqlite, name);
      dropEmbeddingTriggers(sqlite, name);
    }
  }
  const record = sqlite.prepare(
    `INSERT INTO "_platform_migrations" ("table", "version", "description") VALUES (?, ?, ?)`,
  );
  const migrated = new Set<string>();
  for (const entry of pending) {
    const { table, migration } = entry;
    if (due.includes(entry) && !isDoneAlready(sqlite, migration.up)) {
      runMigration(sqlite, entry, { path: context.pathOf(table.name), tables });
      migrated.add(table.name);
    }
    record.run(table.name, migration.version, migration.description);
  }
  record.finalize();
  return migrated;
}

interface TableMigration {
  table: DeclaredTable;
  migration: DeclaredMigration;
}

/**
 * Reports whether a migration is pending for a table that the file has, or may have under another name. Does not change the file.
 */
export function hasPendingMigrations(sqlite: Database, tables: readonly DeclaredTable[]): boolean {
  if (tables.every(({ migrations }) => migrations.length === 0)) return false;
  const isRecorded = sqlite.query(`SELECT 1 FROM sqlite_master WHERE name = '_platform_migrations'`).get() !== null;
  return !isRecorded || pendingMigrations(sqlite, tables).length > 0;
}

function pendingMigrations(sqlite: Database, tables: readonly DeclaredTable[]): TableMigration[] {
  const rows = sqlite
    .query<{ table: string; version: number }, []>(`SELECT "table", "version" FROM "_platform_migrations"`)
    .all();
  const done = new Set(rows.map(({ table, version }) => `${version} ${table}`));
  return tables
    .flatMap((table) => table.migrations.map((migration) => ({ table, migration })))
    .filter(({ table, migration }) => !done.has(`${migration.version} ${table.name}`))
    .sort((a, b) => a.migration.version - b.migration.version);
}

function runMigration(
  sqlite: Database,
  { table, migration }: TableMigration,
  { path, tables }: { path: string; tables: readonly DeclaredTable[] },
): void {
  const name = `Migration ${migration.version} of ${path} (${migration.description})`;
  const isLost = (): boolean => !hasSavepoint(sqlite);
  sqlite.run(`SAVEPOINT ${MIGRATION_SAVEPOINT}`);
  attempt(
    () => sqlite.run(migration.up),
    (message) => {
      const reason = `${name} failed: ${message}${missingPart(message, table, tables)}`;
      return new (isLost() ? TransactionLost : MigrationFailed)(reason);
    },
  );
  if (isLost()) throw new TransactionLost(`${name} ended the transaction that it runs in`);
}

/**
 * Suggests what to do where a migration uses a declared column or table that the file does not have yet; empty for other errors.
 */
function missingPart(message: string, own: DeclaredTable, tables: readonly DeclaredTable[]): string {
  const column = /^no such column: (?:.*\.)?"?([^."]+)"?$|has no column named "?([^"]+)"?$/.exec(message);
  const name = column?.[1] ?? column?.[2];
  for (const table of [own, ...tables]) {
    const declared = name === undefined ? undefined : table.columns.find((one) => one.name === name);
    if (declared === undefined) continue;
    return `. Migrations run before declared fields are added: ${addition(table.name, declared)} has to come first`;
  }
  const missing = /^no such table: (?:main\.)?(.+)$/.exec(message)?.[1];
  if (!tables.some((table) => table.name === missing)) return "";
  return `. Migrations run before declared tables are added: this one has to create ${missing}`;
}

/**
 * Reports whether the savepoint exists. It ends with its transaction, so it is missing even if another transaction has begun since.
 */
function hasSavepoint(sqlite: Database): boolean {
  try {
    sqlite.run(`RELEASE ${MIGRATION_SAVEPOINT}`);
    return true;
  } catch {
    return false;
  }
}

function assertReferences(sqlite: Database, tables: readonly DeclaredTable[], pathOf: (table: string) => string): void {
  const broken = sqlite
    .query<{ table: string; to: string; column: string; toColumn: string | null }, []>(
      `SELECT DISTINCT c."table", c.parent AS "to", l."from" AS column, l."to" AS toColumn FROM pragma_foreign_key_check AS c
       JOIN pragma_foreign_key_list(c."table") AS l ON l.id = c.fkid`,
    )
    .all();
  const problems = broken.flatMap(({ toColumn, ...from }) => {
    const declared = tables.find(({ name }) => name === from.table)?.columns.find(({ name }) => name === from.column);
    const isRequired = declared?.notNull === true;
    const found = countBrokenReferences(sqlite, { ...from, toColumn: toColumn ?? "id", isRequired });
    return found === null ? [] : [brokenReference(`${pathOf(from.table)}.${from.column}`, found)];
  });
  if (problems.length > 0) throw new SchemaMismatch(problems);
}

function attempt(work: () => void, asError: (message: string) => Error): void {
  try {
    work();
  } catch (error) {
    throw Object.assign(asError(reasonOf(error)), { cause: error });
  }
}
