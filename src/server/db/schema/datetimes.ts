import type { Database } from "bun:sqlite";
import { codeOf } from "../../../kernel/errors.ts";
import { instantOf } from "../../../kernel/time/iso-datetime.ts";
import { quoteIdentifier as quote } from "../identifiers.ts";
import { NAMED_RECORDS_MAX, REWRITTEN_AT_ONCE } from "../limits.ts";
import { readMeta, writeMeta } from "../meta.ts";
import type { DeclaredTable } from "./types.ts";

const DATETIMES_KEY = "datetimes";
const UTC = "utc";

/** Whether the datetimes of a file may have the forms of 0.2. */
export const hasFormerDatetimes = (sqlite: Database): boolean => readMeta(sqlite, DATETIMES_KEY) !== UTC;

export const noteRewritten = (sqlite: Database): void => writeMeta(sqlite, DATETIMES_KEY, UTC);

/** The values of a field that stayed in a form of 0.2. */
export interface FormerDatetimes {
  /** `shared.films.shownAt`. */
  path: string;
  /** Number of values without an offset. */
  unread: number;
  /** Number of values that break a constraint in the new form, as the same instant of a unique field does. */
  kept: number;
  /** Ids of the first records with such a value. */
  keptIds: readonly string[];
}

const SAVEPOINT = `"_platform_datetime"`;

/** Pattern of GLOB for the form in which instants are stored. */
const STORED = "0000-00-00T00:00:00.000Z".replaceAll("0", "[0-9]");

const isFormer = (column: string): string => `${column} IS NOT NULL AND ${column} NOT GLOB '${STORED}'`;

/**
 * Rewrites the datetimes of these tables as UTC with milliseconds, in the transaction of a migration, in which foreign keys are off.
 * What cannot be read stays, and so does the later one of two values of a unique field that are one instant. A reference to a datetime
 * follows the referenced value. `updatedAt` stays: no trigger runs. Returns the fields that keep other forms. [TB684]
 */
export function rewriteDatetimes(
  sqlite: Database,
  {
    tables,
    all,
    pathOf,
  }: { tables: readonly DeclaredTable[]; all: readonly DeclaredTable[]; pathOf(table: string): string },
): FormerDatetimes[] {
  const fields = tables.flatMap(({ name: table, columns, columnKinds }) =>
    columns
      .filter(({ name, references }) => columnKinds[name] === "datetime" && references === null)
      .map(({ name: column }) => ({ table, column })),
  );
  const former = fields.filter((field) => hasFormer(sqlite, field));
  if (former.length === 0) return [];
  return withoutTriggers(sqlite, () =>
    former.flatMap((field) => {
      const left = new Rewriting(sqlite, field, all).run();
      const isNothing = left.unread + left.kept === 0;
      return isNothing ? [] : [{ path: `${pathOf(field.table)}.${field.column}`, ...left }];
    }),
  );
}

interface Field {
  table: string;
  column: string;
}

function hasFormer(sqlite: Database, { table, column }: Field): boolean {
  using first = sqlite.prepare(`SELECT 1 FROM ${quote(table)} WHERE ${isFormer(quote(column))} LIMIT 1`);
  return first.get() !== null;
}

/** Runs `work` without any trigger, and restores them all. */
function withoutTriggers<T>(sqlite: Database, work: () => T): T {
  const triggers = sqlite
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    .all();
  for (const { name } of triggers) sqlite.run(`DROP TRIGGER ${quote(name)}`);
  const result = work();
  for (const { sql } of triggers) sqlite.run(sql);
  return result;
}

interface Row {
  row: number;
  id: string;
  value: string;
}

/** The rewriting of one field. */
class Rewriting {
  readonly #sqlite: Database;
  readonly #field: Field;
  /** Fields that refer to this one, and those that refer to them. */
  readonly #referring: readonly Field[];
  readonly #left = { unread: 0, kept: 0, keptIds: [] as string[] };

  constructor(sqlite: Database, field: Field, tables: readonly DeclaredTable[]) {
    this.#sqlite = sqlite;
    this.#field = field;
    this.#referring = referringTo(field, tables);
  }

  run(): Omit<FormerDatetimes, "path"> {
    const { table, column } = this.#field;
    const name = quote(column);
    using page = this.#sqlite.prepare<Row, [number]>(
      `SELECT rowid AS "row", "id", ${name} AS "value" FROM ${quote(table)} WHERE rowid > ? AND ${isFormer(name)}
       ORDER BY rowid LIMIT ${REWRITTEN_AT_ONCE}`,
    );
    using update = this.#sqlite.prepare<unknown, [string, number]>(
      `UPDATE ${quote(table)} SET ${name} = ? WHERE rowid = ?`,
    );
    let rows = page.all(Number.MIN_SAFE_INTEGER);
    while (rows.length > 0) {
      for (const row of rows) this.#rewrite(row, (instant) => update.run(instant, row.row));
      rows = page.all(rows.at(-1)?.row ?? Number.MAX_SAFE_INTEGER);
    }
    return this.#left;
  }

  #rewrite({ id, value }: Row, update: (instant: string) => unknown): void {
    const instant = instantOf(value);
    if (instant === null) {
      this.#left.unread += 1;
      return;
    }
    try {
      if (this.#referring.length === 0) update(instant);
      else this.#follow(value, instant, update);
    } catch (cause) {
      if (!isConstraint(cause)) throw cause;
      this.#left.kept += 1;
      if (this.#left.keptIds.length < NAMED_RECORDS_MAX) this.#left.keptIds.push(id);
    }
  }

  /** Rewrites the value, and the references to it: all or none. */
  #follow(value: string, instant: string, update: (instant: string) => unknown): void {
    this.#sqlite.run(`SAVEPOINT ${SAVEPOINT}`);
    try {
      update(instant);
      for (const { table, column } of this.#referring) {
        const name = quote(column);
        this.#sqlite.run(`UPDATE ${quote(table)} SET ${name} = ?1 WHERE ${name} = ?2`, [instant, value]);
      }
    } catch (cause) {
      this.#sqlite.run(`ROLLBACK TO ${SAVEPOINT}`);
      throw cause;
    } finally {
      this.#sqlite.run(`RELEASE ${SAVEPOINT}`);
    }
  }
}

const isConstraint = (cause: unknown): boolean => codeOf(cause).startsWith("SQLITE_CONSTRAINT");

function referringTo(field: Field, tables: readonly DeclaredTable[]): Field[] {
  const found: Field[] = [];
  const isNew = ({ table, column }: Field) =>
    ![field, ...found].some((one) => one.table === table && one.column === column);
  for (let at: Field | undefined = field, next = 0; at !== undefined; at = found[next++]) {
    const { table: target, column: to } = at;
    for (const { name: table, columns } of tables) {
      const from = columns.filter(({ references }) => references?.table === target && references.column === to);
      found.push(...from.map(({ name }) => ({ table, column: name })).filter(isNew));
    }
  }
  return found;
}
