import type { Database } from "bun:sqlite";
import { closeSync, openSync, readSync } from "node:fs";
import { reasonOf } from "../../../../kernel/errors.ts";
import { instantOf, isIsoDate } from "../../../../kernel/time/iso-datetime.ts";
import { writtenInstant } from "../../../../kernel/transfer/csv-cells.ts";
import { openUnchanged, quoteIdentifier } from "../../../db/index.ts";
import { CommandError } from "../../errors.ts";
import type { Remarks } from "../remarks.ts";
import type { PgColumn, PgForeignKey, PgRow, PgSource, PgTable } from "../supabase/source.ts";

const HEADER = "SQLite format 3\0";
const PUBLIC = "public";
const ROWID = "rowid";

/** Whether a file is a database of SQLite. */
export function isSqliteFile(path: string): boolean {
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(HEADER.length);
    readSync(file, head, 0, HEADER.length, 0);
    return head.toString("latin1") === HEADER;
  } finally {
    closeSync(file);
  }
}

type Value = string | number | bigint | Uint8Array | null;
type Row = Record<string, Value>;

interface Info {
  name: string;
  type: string;
  notnull: number;
  dflt_value: string | null;
  pk: number;
  hidden: number;
}

/** A column with the way in which its values become texts. */
interface Reading {
  column: PgColumn;
  textOf: (value: Value) => string | null;
}

/**
 * Opens a database of SQLite as tables of a source, read as they are at one moment; nothing in it is changed. Types are those of the
 * declarations as far as every stored value fits. Errors: CommandError for a file that is none.
 */
export function openSqlite(path: string, remarks: Remarks): PgSource & { close(): void } {
  let sqlite: Database;
  try {
    sqlite = openUnchanged(path);
    sqlite.run("BEGIN");
    sqlite.query("SELECT count(*) FROM sqlite_schema").get();
  } catch (cause) {
    throw new CommandError(`${path} cannot be read as a database of SQLite: ${reasonOf(cause)}`, { cause });
  }
  const listed = sqlite
    .query<{ name: string; type: string; wr: number }, []>(
      "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )
    .all();
  const readings = new Map<string, readonly Reading[]>();
  const tables = listed
    .filter(({ type }) => type === "table")
    .map(({ name, wr }): PgTable => tableOf(sqlite, name, wr === 1, readings));
  for (const { name, type } of listed) {
    if (type === "virtual") remarks.lost(name, "a virtual table, such as an index of texts");
  }
  const others = sqlite
    .query<{ kind: string; place: string; sql: string }, []>(
      "SELECT type AS kind, tbl_name AS place, sql FROM sqlite_schema WHERE type IN ('view', 'trigger') AND sql IS NOT NULL ORDER BY name",
    )
    .all()
    .map(({ kind, place, sql }) => ({ kind, place: `${PUBLIC}.${place}`, sql }));
  const named = new Map(tables.map((table) => [table.name, table]));
  tellChecks(sqlite, remarks);
  for (const { name, columns } of tables) {
    for (const column of columns.filter((one) => one.type === "text")) {
      const hasBytes = [...valuesOf(sqlite, name, column.name)].some((value) => value instanceof Uint8Array);
      if (hasBytes) remarks.look(`${name}.${column.name}`, "its bytes are texts in base64 here");
    }
  }
  for (const table of tables) clearDangling(sqlite, { table, named, readings, remarks });
  return {
    tables,
    enums: new Map(),
    others,
    table: (schema, name) => (schema === PUBLIC ? (named.get(name) ?? null) : null),
    rows: ({ schema, name }) => (schema === PUBLIC ? rowsOf(sqlite, name, readings.get(name) ?? []) : []),
    close: () => sqlite.close(),
  };
}

function tellChecks(sqlite: Database, remarks: Remarks): void {
  const tables = sqlite
    .query<{ name: string; sql: string }, []>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%check%'",
    )
    .all();
  for (const { name, sql } of tables) {
    const shown = sql.replace(/\s+/g, " ").replaceAll("`", "'");
    if (/\bcheck\s*\(/i.test(sql))
      remarks.lost(name, `its CHECKs, to be written again as \`check\` of fields: \`${shown}\``);
  }
}

function tableOf(
  sqlite: Database,
  name: string,
  isWithoutRowid: boolean,
  readings: Map<string, readonly Reading[]>,
): PgTable {
  const infos = sqlite.query<Info, [string]>("SELECT * FROM pragma_table_xinfo(?)").all(name);
  const primaryKey = [...infos].filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  const found = infos.map((info) => readingOf(sqlite, name, info));
  const key = primaryKey.map((column) => column.name);
  if (key.length === 0 && !isWithoutRowid && !infos.some((info) => info.name.toLowerCase() === ROWID)) {
    const column = {
      name: ROWID,
      type: "bigint",
      isNotNull: true,
      default: null,
      isGenerated: false,
      isIdentity: true,
    };
    found.push({ column, textOf: plainText });
    key.push(ROWID);
  }
  readings.set(name, found);
  const indexes = indexesOf(sqlite, name);
  return {
    schema: PUBLIC,
    name,
    columns: found.map(({ column }) => column),
    primaryKey: key,
    uniques: [],
    indexes,
    foreignKeys: foreignKeysOf(sqlite, name),
    checks: [],
    // Without policies, for nobody.
    isSecured: true,
    policies: [],
    grants: [],
  };
}

function indexesOf(sqlite: Database, table: string): { fields: readonly string[]; isUnique: boolean }[] {
  const list = sqlite
    .query<{ name: string; unique: number; origin: string; partial: number }, [string]>(
      `SELECT name, "unique", origin, partial FROM pragma_index_list(?)`,
    )
    .all(table);
  return list.flatMap(({ name, unique, origin, partial }) => {
    if (origin === "pk") return [];
    const fields = sqlite
      .query<{ name: string | null }, [string]>("SELECT name FROM pragma_index_info(?) ORDER BY seqno")
      .all(name)
      .map((column) => column.name);
    const names = fields.flatMap((field) => field ?? []);
    // One of an expression is left out, and one for some records is not unique for all.
    if (names.length < fields.length) return [];
    return [{ fields: names, isUnique: unique === 1 && partial === 0 }];
  });
}

function foreignKeysOf(sqlite: Database, table: string): PgForeignKey[] {
  const rows = sqlite
    .query<{ id: number; table: string; from: string; to: string | null; on_delete: string }, [string]>(
      "SELECT * FROM pragma_foreign_key_list(?) ORDER BY id, seq",
    )
    .all(table);
  const keys = new Map<number, PgForeignKey & { columns: string[]; targetColumns: string[] }>();
  for (const { id, table: target, from, to, on_delete } of rows) {
    const key = keys.get(id) ?? {
      columns: [],
      target: { schema: PUBLIC, name: target },
      targetColumns: [],
      onDelete: on_delete.toLowerCase(),
    };
    key.columns.push(from);
    if (to !== null) key.targetColumns.push(to);
    keys.set(id, key);
  }
  return [...keys.values()];
}

/** Types of PostgreSQL by the beginning of a declaration, with the values that fit. */
const TYPES: readonly [declared: RegExp, type: string, textOf: (value: Value) => string | null | undefined][] = [
  [/^bool/i, "boolean", (value) => (Number(value) === 1 ? "t" : Number(value) === 0 ? "f" : undefined)],
  [/^(?:datetime|timestamp)/i, "timestamp with time zone", instantText],
  [/^date/i, "date", (value) => (typeof value === "string" && isIsoDate(value) ? value : undefined)],
  [/^json/i, "jsonb", jsonText],
  [/int/i, "bigint", (value) => (isNumber(value) || DIGITS.test(String(value)) ? String(value) : undefined)],
  [/^(?:real|doub|floa)/i, "double precision", (value) => (isNumber(value) ? String(value) : undefined)],
  [/^(?:num|dec)/i, "numeric", (value) => (isNumber(value) ? String(value) : undefined)],
];

/** An integer that was selected as its digits. */
const DIGITS = /^-?\d{16,19}$/;

const isNumber = (value: Value): boolean => typeof value === "number" || typeof value === "bigint";

/** Returns an instant as PostgreSQL writes it. */
function instantText(value: Value): string | undefined {
  if (typeof value !== "string") return undefined;
  const instant = instantOf(writtenInstant(value)) ?? instantOf(`${value}Z`);
  return instant?.replace("T", " ").replace("Z", "+00");
}

function jsonText(value: Value): string | undefined {
  try {
    if (typeof value === "string") JSON.parse(value);
    return typeof value === "string" ? value : isNumber(value) ? String(value) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns any value as a text: bytes in base64. */
const plainText = (value: Value): string | null =>
  value === null ? null : value instanceof Uint8Array ? Buffer.from(value).toString("base64") : String(value);

function readingOf(sqlite: Database, table: string, info: Info): Reading {
  const { name, type, notnull, dflt_value: text, pk, hidden } = info;
  const [, known, textOf] = TYPES.find(([pattern]) => pattern.test(type)) ?? [];
  const isFit =
    textOf !== undefined &&
    [...valuesOf(sqlite, table, name)].every((value) => value === null || textOf(value) !== undefined);
  const found = isFit ? (known ?? "text") : "text";
  const isNow = text !== null && /^(?:current_timestamp|datetime\('now'\))$/i.test(text);
  const column: PgColumn = {
    name,
    type: found,
    isNotNull: notnull === 1 || pk > 0,
    default: isNow ? (found.startsWith("timestamp") ? "now()" : text) : defaultOf(text, found),
    isGenerated: hidden === 2 || hidden === 3,
    isIdentity: pk > 0 && /^integer$/i.test(type),
  };
  return { column, textOf: (value) => (isFit && value !== null ? (textOf(value) ?? null) : plainText(value)) };
}

const defaultOf = (text: string | null, type: string): string | null => {
  if (text !== null && type === "boolean" && /^[01]$/.test(text)) return String(text === "1");
  return text?.replace(/^"(.*)"$/s, "'$1'") ?? null;
};

/** Yields the values of a column; a rowid that is no column has plain ones. */
function* valuesOf(sqlite: Database, table: string, column: string): Generator<Value> {
  const statement = sqlite.query<{ value: Value }, []>(
    `SELECT ${exact(column)} AS value FROM ${quoteIdentifier(table)}`,
  );
  for (const { value } of statement.iterate()) yield value;
}

/** Selects a value; an integer that a double does not hold as its digits. */
function exact(column: string): string {
  const name = quoteIdentifier(column);
  return `iif(typeof(${name}) = 'integer' AND (${name} > ${Number.MAX_SAFE_INTEGER} OR ${name} < ${Number.MIN_SAFE_INTEGER}), CAST(${name} AS TEXT), ${name})`;
}

function* rowsOf(sqlite: Database, table: string, readings: readonly Reading[]): Generator<PgRow> {
  const list = readings.map(({ column }) => `${exact(column.name)} AS ${quoteIdentifier(column.name)}`).join(", ");
  const order = readings.length === 0 ? "" : " ORDER BY 1";
  const rows = sqlite.query<Row, []>(`SELECT ${list} FROM ${quoteIdentifier(table)}${order}`).iterate();
  for (const row of rows) {
    yield Object.fromEntries(readings.map(({ column, textOf }) => [column.name, textOf(row[column.name] ?? null)]));
  }
}

/** Makes references to nothing null, which SQLite keeps unless it is told otherwise. */
function clearDangling(
  sqlite: Database,
  {
    table,
    named,
    readings,
    remarks,
  }: {
    table: PgTable;
    named: ReadonlyMap<string, PgTable>;
    readings: Map<string, readonly Reading[]>;
    remarks: Remarks;
  },
): void {
  for (const { columns, target, targetColumns } of table.foreignKeys) {
    const [column] = columns;
    const found = named.get(target.name);
    const to = targetColumns[0] ?? found?.primaryKey[0];
    if (column === undefined || columns.length > 1 || to === undefined) continue;
    const own = readings.get(table.name) ?? [];
    const reading = own.find((one) => one.column.name === column);
    const values = found === undefined ? [] : [...valuesOf(sqlite, found.name, to)].map(plainText);
    const ids = new Set(values);
    const missing = [...valuesOf(sqlite, table.name, column)].filter(
      (value) => value !== null && !ids.has(plainText(value)),
    );
    if (reading === undefined || missing.length === 0) continue;
    const { textOf } = reading;
    reading.textOf = (value) => (ids.has(plainText(value)) ? textOf(value) : null);
    reading.column.isNotNull = false;
    remarks.lost(
      `${table.name}.${column}`,
      `${missing.length} references to records that do not exist, such as ${plainText(missing[0] ?? null)}: they are null`,
    );
  }
}
