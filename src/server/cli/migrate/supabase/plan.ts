import { AUTOMATIC_FIELDS, fieldNameProblem } from "../../../config/shape/names.ts";
import { type Member, objectCode, valueCode } from "../code.ts";
import { tableNames } from "../names.ts";
import type { Remarks } from "../remarks.ts";
import { parseExpression } from "./expression.ts";
import type { PgColumn, PgForeignKey, PgSource, PgTable } from "./source.ts";
import { NotUnderstood } from "./tokens.ts";
import { kindOf, type ValueKind, valueIn } from "./values.ts";

/** A column and the field that it becomes. */
export interface MovedColumn {
  column: PgColumn;
  /** The field; `id` for the key. */
  name: string;
  kind: ValueKind;
  /** The table that it refers to. */
  target: string | null;
  isNullable: boolean;
  isEnum: boolean;
  members: readonly Member[];
  /** Code of the value that a hook sets where an insert has none; null: no hook. */
  filledBy: string | null;
}

/** A table and what it becomes. */
export interface MovedTable {
  table: PgTable;
  name: string;
  columns: readonly MovedColumn[];
  /** Columns that some callers may not see, which go to a table of their own. */
  hidden: readonly MovedColumn[];
  /** The columns that make the id, joined by `~`; empty: records are numbered. */
  key: readonly string[];
  indexes: readonly { fields: readonly string[]; unique?: true }[];
  rows: number;
  /** Bytes of the largest record, about. */
  largest: number;
}

export interface MovePlan {
  tables: readonly MovedTable[];
  /** The table of the accounts. */
  users: string;
}

const RECORD_DEFAULT_MAX_BYTES = 1024 * 1024;
/** The roles of callers. */
export const CALLERS = ["anon", "authenticated"] as const;
export type Caller = (typeof CALLERS)[number];

/** Plans the tables of the schema `public`. `accounts`: the ids of the accounts that can be moved. */
export function planOf(source: PgSource, accounts: ReadonlySet<string>, remarks: Remarks): MovePlan {
  const own = source.tables.filter(({ schema }) => schema === "public");
  const names = tableNames(
    own.map(({ name }) => ({ id: name, name })),
    remarks,
  );
  const taken = new Set([...names.values()].map((name) => name.toLowerCase()));
  const users = ["users", "accounts", "auth_users"].find((name) => !taken.has(name)) ?? "auth_users_";
  const tables = own.map((table) => movedTable(source, table, { names, users, accounts, remarks }));
  for (const { schema, name } of source.tables) {
    if (!["public", "auth", "storage"].includes(schema) && !OWN_SCHEMAS.test(schema)) {
      remarks.lost(`${schema}.${name}`, "a table of another schema than public");
    }
  }
  return { tables, users };
}

const OWN_SCHEMAS = /^(?:realtime|_realtime|supabase_|vault|extensions|graphql|pgbouncer|net|cron|pgsodium|_analytics)/;

interface Parts {
  names: ReadonlyMap<string, string>;
  users: string;
  accounts: ReadonlySet<string>;
  remarks: Remarks;
}

function movedTable(source: PgSource, table: PgTable, parts: Parts): MovedTable {
  const { names, remarks } = parts;
  const name = names.get(table.name) ?? table.name;
  const facts = surveyOf(source, table, parts.accounts);
  const single = table.primaryKey.length === 1 ? table.primaryKey[0] : undefined;
  const taken = new Set<string>();
  const stored = table.columns.filter(({ isGenerated }) => !isGenerated);
  for (const { name: computed, isGenerated } of table.columns) {
    if (isGenerated) remarks.lost(`${table.name}.${computed}`, "a column that is computed: a dump has no values of it");
  }
  const all = stored.map((column): MovedColumn => {
    const place = `${table.name}.${column.name}`;
    const field = column.name === single ? "id" : fieldName(column.name, taken);
    taken.add(field.toLowerCase());
    if (field !== column.name) remarks.look(place, field === "id" ? "is the id here" : `is called ${field} here`);
    return movedColumn(source, table, { column, field, place, facts, parts });
  });
  if (table.primaryKey.length === 0) remarks.look(table.name, "has no primary key: its records are numbered");
  if (table.checks.length > 0) {
    for (const check of table.checks) remarks.lost(table.name, `CHECK (${check.replace(/\s+/g, " ")})`);
  }
  const isHidden = hiddenColumns(table);
  const hidden = all.filter(({ column, name: field }) => field !== "id" && isHidden(column.name));
  const columns = all.filter((one) => !hidden.includes(one));
  const fieldOf = new Map(columns.map((one) => [one.column.name, one.name]));
  const indexes = [...table.indexes, ...table.uniques.map((fields) => ({ fields, isUnique: true }))].flatMap(
    (index) => {
      const fields = index.fields.flatMap((one) => fieldOf.get(one) ?? []);
      const isCovered = fields.length !== index.fields.length || (fields.length === 1 && fields[0] === "id");
      if (isCovered || (index.isUnique && index.fields.length === 1)) return [];
      return [{ fields, ...(index.isUnique ? { unique: true as const } : {}) }];
    },
  );
  const different = [...new Map(indexes.map((index) => [JSON.stringify(index), index])).values()];
  if (table.primaryKey.length > 1) {
    const fields = table.primaryKey.flatMap((one) => fieldOf.get(one) ?? []);
    if (fields.length === table.primaryKey.length) different.push({ fields, unique: true });
  }
  return {
    table,
    name,
    columns,
    hidden,
    key: table.primaryKey,
    indexes: different,
    rows: facts.rows,
    largest: facts.largest,
  };
}

function fieldName(name: string, taken: ReadonlySet<string>): string {
  for (const wanted of [name, `${name}_`, `field_${name}`]) {
    const isFree = fieldNameProblem(wanted) === null && !AUTOMATIC_FIELDS.includes(wanted) && wanted !== "id";
    if (isFree && !taken.has(wanted.toLowerCase())) return wanted;
  }
  return `field_${taken.size}`;
}

interface Facts {
  rows: number;
  largest: number;
  /** Columns with a value that is none of their kind. */
  unfit: ReadonlySet<string>;
  /** References to accounts that are not moved. */
  lost: ReadonlySet<string>;
}

/** Reads every row once. */
function surveyOf(source: PgSource, table: PgTable, accounts: ReadonlySet<string>): Facts {
  const lost = new Set<string>();
  const toAccounts = new Set(
    table.foreignKeys.flatMap(({ columns, target }) =>
      target.schema === "auth" && columns.length === 1 ? columns : [],
    ),
  );
  const unfit = new Set<string>();
  let rows = 0;
  let largest = 0;
  for (const row of source.rows(table)) {
    rows += 1;
    let bytes = 0;
    for (const { name, type } of table.columns) {
      const text = row[name] ?? null;
      bytes += (text?.length ?? 4) + name.length + 6;
      const kind = kindOf(type);
      if (text !== null && toAccounts.has(name) && !accounts.has(text)) lost.add(name);
      if (!unfit.has(name) && valueIn(kind, type, text) === undefined) unfit.add(name);
    }
    largest = Math.max(largest, bytes);
  }
  return { rows, largest, unfit, lost };
}

interface ColumnParts {
  column: PgColumn;
  field: string;
  place: string;
  facts: Facts;
  parts: Parts;
}

const member = (name: string, value: unknown): Member => ({ name, value: valueCode(value) });

function movedColumn(
  source: PgSource,
  table: PgTable,
  { column, field, place, facts, parts }: ColumnParts,
): MovedColumn {
  const { remarks } = parts;
  const choices = source.enums.get(column.type.includes(".") ? column.type : `public.${column.type}`);
  const key = table.foreignKeys.find(({ columns }) => columns.length === 1 && columns[0] === column.name);
  const target = key === undefined || field === "id" ? null : targetOf(source, key, parts);
  if (key !== undefined && target === null)
    remarks.look(place, "refers to another table: its values are ids without a check");
  const isText = target !== null || field === "id" || facts.unfit.has(column.name);
  const kind: ValueKind = isText ? "text" : kindOf(column.type);
  if (facts.unfit.has(column.name) && target === null && field !== "id") {
    remarks.look(place, `is text here: some values of ${column.type} are none that JSON has`);
  }
  if (column.type.startsWith("timestamp") && column.type.includes("without")) {
    remarks.look(place, "has no time zone: its values are taken as UTC");
  }
  const filledBy = fillingOf(column, kind, place, remarks);
  const isRequired = column.isNotNull && !facts.lost.has(column.name) && !(column.isIdentity || isSequence(column));
  const members: Member[] = [
    ...(target === null ? [member("type", typeOf(kind, choices))] : [member("references", target)]),
    ...(isRequired && filledBy === null ? [member("required", true)] : []),
    ...defaultMember(field === "id" ? { ...column, default: null } : column, kind, target, {
      place,
      remarks,
      isFilled: filledBy !== null,
    }),
    ...(choices === undefined ? [] : [member("enum", choices)]),
    ...(isUnique(table, column.name) ? [member("unique", true)] : []),
    ...(key === undefined || target === null ? [] : [member("onDelete", onDeleteOf(key)), member("mayBeHidden", true)]),
  ];
  return {
    column,
    name: field,
    kind,
    target,
    isNullable: !(isRequired && filledBy === null),
    isEnum: choices !== undefined,
    members,
    filledBy,
  };
}

function typeOf(kind: ValueKind, choices: readonly string[] | undefined): string {
  if (kind === "list") return "json";
  return kind === "text" && choices !== undefined ? "string" : kind;
}

const isUnique = ({ uniques, indexes }: PgTable, name: string): boolean =>
  [...uniques, ...indexes.flatMap(({ fields, isUnique: is }) => (is ? [fields] : []))].some(
    (fields) => fields.length === 1 && fields[0] === name,
  );

const isSequence = ({ default: text }: PgColumn): boolean => /^nextval\(/i.test(text ?? "");

function onDeleteOf({ onDelete }: PgForeignKey): string {
  return onDelete === "cascade" ? "cascade" : onDelete === "set null" ? "setNull" : "restrict";
}

/** Returns the table here; null: the key is to columns that are no id here. */
function targetOf(source: PgSource, { target, targetColumns }: PgForeignKey, { names, users }: Parts): string | null {
  if (target.schema === "auth" && target.name === "users") return users;
  if (target.schema !== "public") return null;
  const table = source.table("public", target.name);
  if (table?.primaryKey.length !== 1) return null;
  const isKey = targetColumns.length === 0 || targetColumns[0] === table.primaryKey[0];
  return isKey ? (names.get(target.name) ?? null) : null;
}

/** Returns what a hook sets in place of a default that PostgreSQL computes. */
function fillingOf(column: PgColumn, kind: ValueKind, place: string, remarks: Remarks): string | null {
  const text = column.default?.toLowerCase().replace(/^\((.*)\)$/, "$1") ?? "";
  if (kind === "datetime" && /^(?:now\(\)|current_timestamp)$|^timezone\('utc'::text, now\(\)\)$/.test(text)) {
    return "new Date().toISOString()";
  }
  if (/^(?:auth\.)?uid\(\)$/.test(text)) {
    remarks.look(
      place,
      "is the caller by default, which is set behind the insert rule: send it where the rule asks for it",
    );
    return "auth?.id ?? null";
  }
  if (column.isIdentity || isSequence(column)) {
    if (kind === "integer") remarks.look(place, "was counted there; here a new record has no number");
  }
  return null;
}

function defaultMember(
  { default: text, isNotNull }: PgColumn,
  kind: ValueKind,
  target: string | null,
  { place, remarks, isFilled }: { place: string; remarks: Remarks; isFilled: boolean },
): Member[] {
  if (text === null || isFilled || isSequence({ default: text } as PgColumn)) return [];
  try {
    let expression = parseExpression(text);
    while (expression.kind === "cast") expression = expression.of;
    if (expression.kind === "constant") {
      const { value } = expression;
      if (value === null) return [];
      if (kind === "text" && target === null) return [member("default", String(value))];
      if ((kind === "integer" || kind === "number") && typeof value === "number") return [member("default", value)];
      if (kind === "boolean" && typeof value === "boolean") return [member("default", value)];
      if (kind === "json") return [member("default", JSON.parse(String(value)))];
      if (kind === "list" && value === "{}") return [member("default", [])];
    }
    if (expression.kind === "array" && expression.items.length === 0) return [member("default", [])];
  } catch (cause) {
    if (!(cause instanceof NotUnderstood) && !(cause instanceof SyntaxError)) throw cause;
  }
  remarks.look(place, `has no default here: ${text}${isNotNull ? ", so inserts have to send it" : ""}`);
  return [];
}

/** Returns whether a column is hidden from callers who may read others of its table. */
function hiddenColumns({ grants }: PgTable): (name: string) => boolean {
  const seen = CALLERS.map((role) => {
    const rights = grants.filter((grant) => isOf(grant.role, role) && ["all", "select"].includes(grant.command));
    if (rights.length === 0) return null;
    return rights.some(({ columns }) => columns === null)
      ? "all"
      : new Set(rights.flatMap(({ columns }) => columns ?? []));
  });
  return (name) => seen.some((one) => one !== null && one !== "all" && !one.has(name));
}

/** Whether a right or a policy of a role concerns callers. */
export const isOf = (role: string, caller: Caller): boolean => role === "public" || role === caller;

export const maxRecordSize = ({ largest }: MovedTable): number | null =>
  largest <= RECORD_DEFAULT_MAX_BYTES ? null : 2 * largest;

export const columnCode = ({ name, members }: MovedColumn): Member => ({ name, value: objectCode(members) });
