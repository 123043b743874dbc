import type { Place } from "./tokens.ts";

/** A column as PostgreSQL declares it. */
export interface PgColumn {
  name: string;
  /** `uuid`, `character varying(20)`, `public.mood`, `text[]`. */
  type: string;
  isNotNull: boolean;
  /** The expression of the default; null: none. */
  default: string | null;
  /** Whether it is computed from other columns. */
  isGenerated: boolean;
  isIdentity: boolean;
}

export interface PgForeignKey {
  columns: readonly string[];
  target: Place;
  /** Empty: its primary key. */
  targetColumns: readonly string[];
  onDelete: string;
}

export type PgCommand = "select" | "insert" | "update" | "delete";

/** A policy of row-level security. */
export interface PgPolicy {
  name: string;
  isRestrictive: boolean;
  command: PgCommand | "all";
  roles: readonly string[];
  using: string | null;
  check: string | null;
}

/** A right of a role; `columns` null: on the whole table. */
export interface PgGrant {
  role: string;
  command: string;
  columns: readonly string[] | null;
}

export interface PgTable extends Place {
  columns: PgColumn[];
  primaryKey: readonly string[];
  uniques: (readonly string[])[];
  indexes: { fields: readonly string[]; isUnique: boolean }[];
  foreignKeys: PgForeignKey[];
  checks: string[];
  isSecured: boolean;
  policies: PgPolicy[];
  grants: PgGrant[];
}

export type PgRow = Readonly<Record<string, string | null>>;

/** Contents of a dump. */
export interface PgSource {
  readonly tables: readonly PgTable[];
  /** Values of enumerations by `schema.name`. */
  readonly enums: ReadonlyMap<string, readonly string[]>;
  /** Views, functions, triggers and other things that are named in the report, with their SQL. */
  readonly others: readonly { kind: string; place: string; sql: string }[];
  table(schema: string, name: string): PgTable | null;
  /** Yields the rows of a table as texts. */
  rows(table: Place): Iterable<PgRow>;
}
