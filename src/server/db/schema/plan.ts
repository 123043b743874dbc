import type { Database } from "bun:sqlite";
import { quoteIdentifier as quote } from "../identifiers.ts";
import { brokenReference, countBrokenReferences } from "./broken-references.ts";
import {
  type ActualColumn,
  countDuplicates,
  countWhere,
  hasNoValue,
  isEmpty,
  readColumns,
  readIndexNames,
  type StoredTable,
} from "./inspect.ts";
import { lostColumns } from "./renames.ts";
import { indexesSql, literal } from "./sql.ts";
import type { DeclaredColumn, DeclaredTable } from "./types.ts";
import { acceptedText, countUnaccepted, isNarrowed } from "./values.ts";

/** The changes that an existing table needs to match the declaration. */
export interface TablePlan {
  table: DeclaredTable;
  addColumns: DeclaredColumn[];
  /** Whether the rows move to a new table, because SQLite cannot alter constraints. */
  rebuild: boolean;
  /** Columns that became required and have a default: rows without a value get it. */
  fillColumns: DeclaredColumn[];
}

export interface PlanInput {
  table: DeclaredTable;
  /** The declaration stored in the file; null when the file was created without one. */
  stored: StoredTable | null;
  /** Whether a migration of this table has just run. It is responsible for converting values of changed columns. */
  isMigrated: boolean;
  /** Whether the definition in the file differs from `stored`. */
  isAltered: boolean;
}

/**
 * Plans the changes to make, and lists the problems: changes that would lose or reinterpret records. `where` is the table's path in
 * messages.
 */
export function planTable(sqlite: Database, input: PlanInput, where: string): { plan: TablePlan; problems: string[] } {
  const { table, stored, isMigrated, isAltered } = input;
  const problems: string[] = [];
  const actual = new Map(readColumns(sqlite, table.name).map((column) => [column.name, column]));
  const plan: TablePlan = { table, addColumns: [], rebuild: isMigrated || isAltered, fillColumns: [] };

  const declared = new Set(table.columns.map((column) => column.name));
  const unused = [...actual.keys()].filter(
    (column) => !declared.has(column) && hasNoValue(sqlite, table.name, { column, kind: stored?.columnKinds[column] }),
  );
  // Nothing is lost with a column that has no value: the rebuild leaves it out.
  if (unused.length > 0) plan.rebuild = true;
  const lost = new Map([...actual].filter(([name]) => !unused.includes(name)));
  problems.push(...lostColumns({ table, stored, actual: lost, where }));
  if (stored !== null && stored.kind !== table.kind && !isMigrated) {
    problems.push(
      `${where}: was declared as ${stored.kind} and is now ${table.kind}; a migration has to convert its records`,
    );
  }
  for (const column of table.columns) {
    const present = actual.get(column.name);
    const path = `${where}.${column.name}`;
    if (present === undefined) planAddition(sqlite, plan, column, path, problems);
    else planChange(sqlite, { ...input, plan, column, present, path, problems });
  }
  planUniqueness(sqlite, plan, actual, where, problems);
  // Without records nothing can be lost or reinterpreted: the table is created again as declared.
  if (problems.length > 0 && isEmpty(sqlite, table.name)) return { plan: { ...plan, rebuild: true }, problems: [] };
  return { plan, problems };
}

function planAddition(
  sqlite: Database,
  plan: TablePlan,
  column: DeclaredColumn,
  path: string,
  problems: string[],
): void {
  const { name } = plan.table;
  if (!column.notNull || (column.default !== undefined && column.default !== null)) {
    plan.addColumns.push(column);
    return;
  }
  const rowCount = countWhere(sqlite, name);
  if (rowCount > 0)
    problems.push(
      `${path}: is required and has no default, and there are ${rowCount} records without it; a migration can add it (${addition(name, column)}) and give each record a value`,
    );
  plan.rebuild = true;
}

/** Returns the statement with which a migration adds a declared column, for which it then has to provide the values. */
export const addition = (table: string, { name, type }: DeclaredColumn): string =>
  `ALTER TABLE ${quote(table)} ADD COLUMN ${quote(name)} ${type}`;

function planChange(
  sqlite: Database,
  change: PlanInput & {
    plan: TablePlan;
    column: DeclaredColumn;
    present: ActualColumn;
    path: string;
    problems: string[];
  },
): void {
  const { table, stored, isMigrated, plan, column, present, path, problems } = change;
  const before = stored?.columns.find(({ name }) => name === column.name);
  const kindBefore = stored?.columnKinds[column.name] ?? present.type;
  const kind = table.columnKinds[column.name] ?? column.type;
  const isRetyped = present.type !== column.type || (stored !== null && before !== undefined && kindBefore !== kind);
  if (isRetyped && !isMigrated) {
    problems.push(`${path}: was ${kindBefore} and is now ${kind}; a migration has to convert its values`);
    return;
  }
  if (isRetyped && kind === "json") {
    // SQLite accepts any text for it, and reads of such records would fail.
    const broken = countWhere(sqlite, table.name, `NOT json_valid(${quote(column.name)})`);
    if (broken > 0) {
      problems.push(
        `${path}: ${broken} records have no valid JSON; a migration has to convert them, as json_quote() does`,
      );
    }
  }
  if (present.type !== column.type) plan.rebuild = true;
  if (column.notNull !== present.notNull) {
    plan.rebuild = true;
    if (column.notNull) planRequired(sqlite, plan, column, path, problems);
  }
  if (column.check !== (before?.check ?? null)) {
    plan.rebuild = true;
    const breaking = column.check === null ? 0 : countBreaking(sqlite, table.name, column.check);
    if (breaking > 0) problems.push(`${path}: ${breaking} records do not pass the check ${column.check}`);
  }
  if (!Bun.deepEquals(column.references, before?.references ?? null)) {
    plan.rebuild = true;
    planReference(sqlite, table.name, column, path, problems);
  }
  if (column.linksTo !== undefined && column.linksTo !== before?.linksTo) {
    planLinks(sqlite, table.name, column, path, problems);
  }
  // A migration may have written anything into several references.
  const isRewritten = isRetyped || (isMigrated && column.linksTo !== undefined);
  planValues(sqlite, { table, column, before, path, problems, isRetyped: isRewritten });
}

/** Plans a reference. It counts broken ones here too, because a large file is compared without being rebuilt. */
function planReference(
  sqlite: Database,
  table: string,
  { name, references, notNull: isRequired }: DeclaredColumn,
  path: string,
  problems: string[],
): void {
  if (references === null) return;
  const { table: to, column: toColumn } = references;
  const broken = countBrokenReferences(sqlite, { table, column: name, to, toColumn, isRequired });
  if (broken !== null) problems.push(brokenReference(path, broken));
}

/** Counts the records with an id that no record has, for a large file that is compared without being changed. */
function planLinks(
  sqlite: Database,
  table: string,
  { name, linksTo }: DeclaredColumn,
  path: string,
  problems: string[],
): void {
  if (linksTo === undefined || linksTo === null) return;
  const broken = countBrokenReferences(sqlite, { table, column: name, to: linksTo, toColumn: null, isRequired: false });
  if (broken !== null) problems.push(brokenReference(path, broken));
}

function planValues(
  sqlite: Database,
  change: Pick<PlanInput, "table"> & {
    column: DeclaredColumn;
    before: DeclaredColumn | undefined;
    path: string;
    problems: string[];
    isRetyped: boolean;
  },
): void {
  const { table, column, before, path, problems, isRetyped } = change;
  const { values = null } = column;
  if (values === null || !isNarrowed(column, before, isRetyped)) return;
  const count = countUnaccepted(sqlite, table.name, column.name, values);
  if (count === 0) return;
  const must = acceptedText({ values, columnKind: table.columnKinds[column.name] ?? "" });
  const settled = values.form === null ? ', or validate: "new" leaves them as they are' : "";
  problems.push(`${path}: ${must}, and ${count} records have another value; a migration has to change them${settled}`);
}

function planRequired(
  sqlite: Database,
  plan: TablePlan,
  column: DeclaredColumn,
  path: string,
  problems: string[],
): void {
  const missing = countWhere(sqlite, plan.table.name, `${quote(column.name)} IS NULL`);
  if (missing === 0) return;
  if (column.default !== undefined && column.default !== null) plan.fillColumns.push(column);
  else problems.push(`${path}: became required and has no default, and ${missing} records have no value`);
}

/** Counts the rows that SQLite would refuse. A check that uses a column not yet added is left to the rebuild. */
function countBreaking(sqlite: Database, table: string, check: string): number {
  try {
    return countWhere(sqlite, table, `NOT (${check})`);
  } catch {
    return 0;
  }
}

function planUniqueness(
  sqlite: Database,
  { table, addColumns, fillColumns }: TablePlan,
  actual: ReadonlyMap<string, ActualColumn>,
  where: string,
  problems: string[],
): void {
  const present = new Set(readIndexNames(sqlite, table.name));
  const wanted = [
    ...table.columns.filter(({ name, unique }) => unique && name !== "id").map(({ name }) => [name]),
    ...table.indexes.filter(({ unique }) => unique).map(({ fields }) => fields),
  ];
  const names = [...indexesSql(table).keys()].filter((name) => name.startsWith("ux:"));
  // The values that records without one get.
  const defaults = new Map(
    [...addColumns.filter(({ notNull }) => notNull), ...fillColumns].map((column) => [
      column.name,
      column.default ?? null,
    ]),
  );
  /**
   * Returns the value that records will have, as SQL; `ifnull` also prevents GROUP BY from taking a number for the index of a
   * column.
   */
  const valueIn = (field: string): string => {
    const before = actual.has(field) ? quote(field) : "NULL";
    return defaults.has(field) ? `ifnull(${before}, ${literal(defaults.get(field) ?? null)})` : before;
  };
  for (const fields of wanted) {
    const name = `ux:${table.name}:${fields.join(",")}`;
    const filled = fields.filter((field) => defaults.has(field));
    if (!names.includes(name) || (present.has(name) && filled.length === 0)) continue;
    // A record is no duplicate without a value for each of the fields.
    if (!fields.every((field) => actual.has(field) || defaults.has(field))) continue;
    const path = `${where}.${fields.join(",")}`;
    const duplicates = countDuplicates(sqlite, table.name, fields.map(valueIn));
    if (duplicates === 0) continue;
    if (filled.length === 0) problems.push(`${path}: is unique now, and ${duplicates} values occur more than once`);
    else {
      problems.push(
        `${path}: is unique, and several records would get the same default of ${filled.join(", ")}; declare it without required and default, or give each record a value of its own in a migration`,
      );
    }
  }
}
