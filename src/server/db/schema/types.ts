import type { Database } from "bun:sqlite";
import type { SqlValue } from "../reads/requests.ts";

interface DeclaredReference {
  table: string;
  column: string;
  onDelete: "RESTRICT" | "CASCADE" | "SET NULL";
}

/** Constraints on the values of a column, beyond what SQLite enforces. As JSON, because the declaration is stored in the file. */
export interface DeclaredValues {
  schema: {
    enum?: (string | number)[];
    minLength?: number;
    maxLength?: number;
    minimum?: number;
    maximum?: number;
    minItems?: number;
    maxItems?: number;
  };
  pattern: { source: string; flags: string } | null;
  /** Notation that a value must have; null: any. */
  form: "date" | "datetime" | "geo" | "boolean" | "ids" | null;
}

export interface DeclaredColumn {
  name: string;
  type: "TEXT" | "REAL" | "INTEGER";
  notNull: boolean;
  unique: boolean;
  /** An SQL expression over the columns of the row; null for none. */
  check: string | null;
  references: DeclaredReference | null;
  /** The table whose ids the column has, as a JSON array; null: one of another file. Absent in other columns. */
  linksTo?: string | null;
  /** Accepted values; null: any that the column's type can hold. Absent in the declaration that a file of 0.2 has. */
  values?: DeclaredValues | null;
  /** The value for existing rows when the column is added or becomes required. */
  default?: SqlValue;
}

interface DeclaredIndex {
  fields: string[];
  unique: boolean;
}

export interface DeclaredFts {
  fields: string[];
  tokenize: "unicode61" | "trigram" | "porter";
}

export interface DeclaredMigration {
  version: number;
  description: string;
  /** One or more SQL statements; no transaction statements. */
  up: string;
}

export interface DeclaredTable {
  name: string;
  /** Storage form of the records, apart from the columns. A change of it is a retype of the table. */
  kind: string;
  /** The logical type of each column. A change of it is a retype, even if the SQL type stays the same. */
  columnKinds: Record<string, string>;
  /** The first column is `id TEXT PRIMARY KEY NOT NULL`. */
  columns: DeclaredColumn[];
  indexes: DeclaredIndex[];
  fts: DeclaredFts | null;
  /** Fields whose texts give a record its vector. Vectors of another key are not comparable with these. Absent: no vectors. */
  embed?: { fields: string[]; key: string };
  migrations: DeclaredMigration[];
  /** Whether deletions of its records are logged. */
  isLogged?: boolean;
}

/** A table that is made before migrations run. One of its name with records that lacks the column is refused: it is another table. */
export interface FirstTable {
  table: string;
  column: string;
}

export interface DeclaredOptions {
  /** Prefix of the table's name in messages. Default `""`: `posts.title`; with `shared`: `shared.posts.title`. */
  namespace?: string;
  /** Moment at which the full-text index of a large table is rebuilt: in the migration (default), or by the file's TextIndexer. */
  rebuildTexts?: "now" | "later";
  /** Moment at which the datetimes of a file of 0.2 are rewritten: in the migration (default), or by the process of `StorageEngine.migrate`. */
  datetimes?: "now" | "later";
  /** A table that is made and filled before migrations run and references are checked, where the file lacks it. */
  first?: FirstTable & { fill: (sqlite: Database) => void };
}

/** All tables of a file. */
export interface Declaration {
  tables: readonly DeclaredTable[];
  options: DeclaredOptions;
}

/** A file that no process has open, and the declaration for its tables. */
export interface MigrationRequest extends Declaration {
  /** Place in the commit order after which the few commits of the process are numbered. */
  place: number;
  path: string;
}

/**
 * Thrown when the tables cannot be changed to match the declaration without losing or reinterpreting records. The message lists
 * every reason.
 */
export class SchemaMismatch extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(
      `The declared tables do not fit the ones that exist:\n${problems.map((problem) => `  ${problem}`).join("\n")}`,
    );
    this.name = "SchemaMismatch";
    this.problems = problems;
  }
}

/** Thrown when a migration of the config failed; the message names it. The file is unchanged. */
export class MigrationFailed extends Error {}
