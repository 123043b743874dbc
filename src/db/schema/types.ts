import type { SqlValue } from "../types.ts";

export interface DeclaredReference {
  table: string;
  column: string;
  onDelete: "RESTRICT" | "CASCADE" | "SET NULL";
}

export interface DeclaredColumn {
  name: string;
  type: "TEXT" | "REAL" | "INTEGER";
  notNull: boolean;
  unique: boolean;
  /** An SQL expression over the columns of the row; null for none. */
  check: string | null;
  references: DeclaredReference | null;
  /** What rows that exist already get when the column is added or becomes required. */
  default?: SqlValue;
}

export interface DeclaredIndex {
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
  /** What else says how the records are kept: a change of it is a retype of the table. */
  kind: string;
  /** The logical type of each column: a change of it is a retype, also where the SQL type stays. */
  columnKinds: Record<string, string>;
  /** `id TEXT PRIMARY KEY NOT NULL` is the first of them. */
  columns: DeclaredColumn[];
  indexes: DeclaredIndex[];
  fts: DeclaredFts | null;
  migrations: DeclaredMigration[];
}

/** The tables cannot become what is declared without losing or reinterpreting records; every reason is named. */
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

/** A migration of the config threw; the message names it. The file is as it was. */
export class MigrationFailed extends Error {}
