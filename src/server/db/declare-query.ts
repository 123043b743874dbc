import { Column, is, Param, Placeholder, SQL, type SQLWrapper, Subquery } from "drizzle-orm";
import {
  BaseSQLiteDatabase,
  type PreparedQueryConfig,
  SQLiteBoolean,
  SQLitePreparedQuery,
  SQLiteSession,
  SQLiteSyncDialect,
  SQLiteTextJson,
} from "drizzle-orm/sqlite-core";
import { type QueryText, Read, type ValueKind, Write } from "./query.ts";

// Queries of system.db, declared with drizzle in the folders `src/AREA/statements`. Importing drizzle takes milliseconds, so the
// executable contains the SQL texts of these modules instead, generated when it is built (scripts/query-texts.ts).

/** drizzle's builder without a connection. It types queries and generates their SQL. */
type Builder = BaseSQLiteDatabase<"sync", void>;

/** The final form of drizzle's builders. */
interface Preparable {
  prepare(): { all(): unknown };
}

type RowOf<Q extends Preparable> = ReturnType<ReturnType<Q["prepare"]>["all"]> extends (infer Row)[] ? Row : never;

/**
 * Declares a query that reads. `values` has the query's parameters. Their types are those of the values, so that drizzle
 * type-checks them against their columns. At run time they are placeholders, so use them only as operands.
 */
export function reading<Values, Q extends Preparable>(
  declare: (db: Pick<Builder, "select" | "selectDistinct">, values: Values) => Q,
): Read<Values, RowOf<Q>> {
  return new Read(() => textOf(declare(builder(), placeholders<Values>())));
}

/** Declares an INSERT, UPDATE or DELETE as `reading` does a SELECT. Its rows are those of `returning()`. */
export function writing<Values, Q extends Preparable>(
  declare: (db: Pick<Builder, "insert" | "update" | "delete" | "select">, values: Values) => Q,
): Write<Values, RowOf<Q>> {
  return new Write(() => textOf(declare(builder(), placeholders<Values>())));
}

/** Returns an object in which every member is a placeholder with the member's name. */
function placeholders<Values>(): Values {
  // The proxy has every member that `Values` can have.
  return new Proxy({}, { get: (_, name) => new Placeholder(String(name)) }) as Values;
}

function builder(): Builder {
  const dialect = new SQLiteSyncDialect();
  return new BaseSQLiteDatabase("sync", dialect, new DeclaringSession(dialect), undefined);
}

function textOf(query: Preparable): QueryText {
  const prepared = query.prepare();
  if (!(prepared instanceof DeclaredQuery)) throw new Error("a query was prepared by another session");
  return prepared.text;
}

type PrepareQuery = SQLiteSession<"sync", void, Record<string, never>, Record<string, never>>["prepareQuery"];

/** A session that returns the SQL of prepared queries and runs nothing. */
class DeclaringSession extends SQLiteSession<"sync", void, Record<string, never>, Record<string, never>> {
  override prepareQuery(...[query, fields]: Parameters<PrepareQuery>): DeclaredQuery {
    return new DeclaredQuery(query, fields ?? []);
  }

  override transaction(): never {
    return runsElsewhere();
  }
}

class DeclaredQuery extends SQLitePreparedQuery<PreparedQueryConfig & { type: "sync" }> {
  readonly text: QueryText;

  constructor(query: Parameters<PrepareQuery>[0], fields: readonly SelectedField[]) {
    super("sync", "all", query);
    const decoded = fields.map(decodedOf).filter((column) => column !== null);
    this.text = { sql: query.sql, params: query.params.map(paramOf), decoded };
  }

  override run = runsElsewhere;
  override all = runsElsewhere;
  override get = runsElsewhere;
  override values = runsElsewhere;
}

function runsElsewhere(): never {
  throw new Error("a declared query is run by Read and Write");
}

type ParamText = QueryText["params"][number];

function paramOf(param: unknown): ParamText {
  if (is(param, Placeholder)) return { name: param.name, kind: "plain" };
  if (is(param, Param) && is(param.value, Placeholder)) return { name: param.value.name, kind: kindOf(param.encoder) };
  if (param === null || typeof param === "string" || typeof param === "number") return { value: param };
  throw new Error(`a constant of a query is ${typeof param}: give it as a value`);
}

interface SelectedField {
  path: string[];
  field: Column | SQL | SQLWrapper;
}

/** Rows are read by SQLite's column names, so each member of a row must have the name of its column. */
function decodedOf({ path, field }: SelectedField): QueryText["decoded"][number] | null {
  const name = path.join(".");
  const sqlName = is(field, Column) ? field.name : is(field, SQL.Aliased) ? field.fieldAlias : null;
  if (sqlName !== name || is(field, Subquery)) throw new Error(`the column ${name} of a query needs .as("${name}")`);
  const kind = kindOf(is(field, SQL.Aliased) ? field.sql : field);
  return kind === "plain" ? null : { name, kind };
}

function kindOf(codec: unknown): ValueKind {
  if (is(codec, SQLiteBoolean)) return "boolean";
  return is(codec, SQLiteTextJson) ? "json" : "plain";
}
