import type { DatabaseSync } from "node:sqlite";
import { reasonOf } from "../../../../kernel/errors.ts";
import { type SqlToken, tokenizeSql } from "../../../../kernel/sql/tokens.ts";
import { isPlainObject, type PlainObject, type Report } from "../../shape/report.ts";
import { createSample, quote } from "./view-sample.ts";

/**
 * Returns the text before a SELECT from a view. `narrowed`: for tables that have columns which no view may see, the SELECT of those
 * that it may see.
 */
export function viewSource(name: string, sql: string, narrowed: ReadonlyMap<string, string>): string {
  const tables = [...narrowed].map(([table, select]) => `${quote(table)} AS NOT MATERIALIZED (${select})`);
  // The line break ends a comment at the end of the SQL.
  const body = tables.length === 0 ? sql : `WITH ${tables.join(", ")} SELECT * FROM (\n${sql}\n)`;
  return `WITH ${quote(name)} AS (\n${body}\n) `;
}

/** Checks the SQL of a view on tables with made-up records: what it sees, which columns it gives, and their values. */
export function checkViewSql(name: string, view: PlainObject, tables: PlainObject, report: Report): void {
  const { sql, schema } = view;
  if (typeof sql !== "string" || !isPlainObject(schema)) return;
  const at = report.at("sql");
  const form = formProblem(sql);
  if (form !== null) {
    at.say(form);
    return;
  }
  // Loaded where a config has views.
  const sqlite = process.getBuiltinModule("node:sqlite");
  const database = new sqlite.DatabaseSync(":memory:");
  const before = report.problems.length;
  let judge: ViewJudge | null = null;
  try {
    for (const [table, declared] of Object.entries(tables)) {
      if (isPlainObject(declared)) createSample(database, table, declared);
    }
    judge = createViewJudge(database, sqlite.constants);
    const given = database.prepare(sql).columns();
    const columns = given.map((column) => column.name);
    for (const field of ["id", ...Object.keys(schema)]) {
      const times = columns.filter((column) => column === field).length;
      if (times === 0)
        at.say(`gives no ${field}${field === "id" ? "" : ", a field of its schema"}; it gives ${columns.join(", ")}`);
      else if (times > 1) at.say(`gives ${field} ${times} times`);
    }
    if (report.problems.length > before) return;
    const fields = ["id", ...Object.keys(schema)];
    const select = `${viewSource(name, sql, new Map())}SELECT ${fields.map(quote).join(", ")} FROM ${quote(name)} LIMIT ${SAMPLED_MAX}`;
    const statement = database.prepare(select);
    if (judge.isRecursive) return;
    statement.setReturnArrays(true);
    // With setReturnArrays each row is an array, which the types of node:sqlite do not express.
    const problem = valuesProblem(fields, schema, statement.all() as unknown as unknown[][]);
    if (problem !== null) at.say(problem);
  } catch (cause) {
    at.say(judge?.refusal ?? `is not valid: ${reasonOf(cause)}`);
  } finally {
    database.close();
  }
}

/** Rows of a view over made-up records that are looked at. */
const SAMPLED_MAX = 1_000;

function formProblem(sql: string): string | null {
  const tokens = tokenizeSql(sql);
  const illegal = tokens.find(({ kind }) => kind === "illegal");
  if (illegal !== undefined) return `is not valid from here: ${sql.slice(illegal.start, illegal.start + 20)}`;
  if (tokens.length === 0 || tokens.some(({ kind }) => kind === "semicolon"))
    return "must be one SELECT, without a semicolon";
  if (tokens.some(({ kind }) => kind === "variable")) return "must have no parameters: they have no values";
  // A name alone is that of a table narrowed to what a view may see.
  const isSchema = ({ text }: SqlToken, place: number) =>
    (text === "main" || text === "temp") && tokens[place + 1]?.text === ".";
  const qualified = tokens.find(isSchema);
  return qualified === undefined ? null : `must name tables alone, without ${qualified.text}.`;
}

/** Table functions that a view may use. */
const JSON_TABLES: readonly string[] = ["json_each", "json_tree", "jsonb_each", "jsonb_tree"];

interface ViewJudge {
  /** Reason of a refusal; null: nothing was refused. */
  refusal: string | null;
  /** Whether the SQL is recursive, and may never end. */
  isRecursive: boolean;
}

/** Lets the connection compile SELECTs that see nothing but its own tables, by the authorizer of SQLite. */
function createViewJudge(database: DatabaseSync, constants: typeof import("node:sqlite").constants): ViewJudge {
  const modules = database.prepare("SELECT name FROM pragma_module_list").all();
  const functions = new Set(modules.map(({ name }) => String(name).toLowerCase()));
  const judge: ViewJudge = { refusal: null, isRecursive: false };
  const refusalOf = (action: number, first: string | null, second: string | null): string | null => {
    const { SQLITE_SELECT, SQLITE_READ, SQLITE_FUNCTION, SQLITE_PRAGMA, SQLITE_RECURSIVE } = constants;
    if (action === SQLITE_RECURSIVE) judge.isRecursive = true;
    if (action === SQLITE_SELECT || action === SQLITE_RECURSIVE) return null;
    if (action === SQLITE_FUNCTION)
      return second?.toLowerCase() === "load_extension" ? "cannot call load_extension" : null;
    if (action === SQLITE_PRAGMA) return `sees declared tables only, not pragma_${first}`;
    if (action !== SQLITE_READ) return "must be one SELECT";
    const table = String(first).toLowerCase();
    if (table.startsWith("sqlite_") || (functions.has(table) && !JSON_TABLES.includes(table)))
      return `sees declared tables only, not ${first}`;
    return second === "ROWID" ? `cannot use the row id of ${first}` : null;
  };
  database.setAuthorizer((action, first, second) => {
    const refusal = refusalOf(action, first, second);
    if (refusal === null) return constants.SQLITE_OK;
    judge.refusal ??= refusal;
    return constants.SQLITE_DENY;
  });
  return judge;
}

/** Describes what the values of a view would break; null: nothing. */
function valuesProblem(fields: readonly string[], schema: PlainObject, rows: readonly unknown[][]): string | null {
  const ids = new Set<unknown>();
  for (const row of rows) {
    const [id] = row;
    if (typeof id !== "string")
      return `must give a text as id, and gives ${id === null ? "null" : typeof id} for some records`;
    if (ids.has(id))
      return "must give each id once, and gives one several times for some records: GROUP BY what the id is made of";
    ids.add(id);
    for (const [place, value] of row.entries()) {
      const name = fields[place] ?? "";
      const field = schema[name];
      if (place === 0 || !isPlainObject(field)) continue;
      const type = String(field["type"] ?? "string");
      if (value === null && field["required"] === true)
        return `gives null as ${name} for some records, which is required`;
      if (value !== null && !isOfType(type, value))
        return `gives ${nameOf(value)} as ${name}, which is of type ${type}`;
    }
  }
  return null;
}

const nameOf = (value: unknown): string =>
  typeof value === "string" ? "text" : value instanceof Uint8Array ? "a blob" : `${value}`;

/** Whether SQLite's value may be that of a field of this type in a view. */
export function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case "number":
      return typeof value === "number";
    case "integer":
      return Number.isSafeInteger(value);
    case "boolean":
      return value === 0 || value === 1;
    case "json":
      return typeof value === "string" && isJsonText(value);
    default:
      return typeof value === "string";
  }
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
