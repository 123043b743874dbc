import type { DatabaseFile, SqlValue, Transaction } from "./types.ts";

/** Storage form of a value: `plain` unchanged, `boolean` as 0 or 1, `json` as its text. */
export type ValueKind = "plain" | "boolean" | "json";

/** A query as SQL. drizzle generates it from a declaration; for the executable, at build time (scripts/query-texts.ts). */
export interface QueryText {
  sql: string;
  /** Parameters in the order of the question marks: a constant, or a value by its name. */
  params: readonly ({ value: string | number | null } | { name: string; kind: ValueKind })[];
  /** The columns of a row that are not `plain`. */
  decoded: readonly { name: string; kind: Exclude<ValueKind, "plain"> }[];
}

/** A source to read from: a file, or a transaction on it. */
export type Readable = Pick<DatabaseFile, "query">;

/** The type of a query's rows. */
export type RowOf<Q extends { all(...args: never[]): unknown[] }> = ReturnType<Q["all"]>[number];

/** A row with its values by column name, as `query` returns it. It is decoded in place. */
type RawRow = Record<string, unknown>;

class Query<Values> {
  readonly #text: () => QueryText;
  #made: QueryText | null = null;

  constructor(text: () => QueryText) {
    this.#text = text;
  }

  /** SQL, generated at the first use. */
  get text(): QueryText {
    this.#made ??= this.#text();
    return this.#made;
  }

  protected bind(values: Values): SqlValue[] {
    const bound: SqlValue[] = [];
    for (const param of this.text.params) bound.push(boundValue(param, values as RawRow));
    return bound;
  }

  protected first<Row>(from: Readable, values: Values): Row | null {
    const row = from.query<RawRow>(this.text.sql).get(...this.bind(values));
    return row === null ? null : (this.#decode(row) as Row);
  }

  protected every<Row>(from: Readable, values: Values): Row[] {
    const rows = from.query<RawRow>(this.text.sql).all(...this.bind(values));
    if (this.text.decoded.length > 0) for (const row of rows) this.#decode(row);
    return rows as Row[];
  }

  #decode(row: RawRow): RawRow {
    for (const { name, kind } of this.text.decoded) {
      const value = row[name];
      if (value === null) continue;
      row[name] = kind === "boolean" ? value === 1 : parseJson(String(value));
    }
    return row;
  }
}

function boundValue(param: QueryText["params"][number], values: RawRow): SqlValue {
  if ("value" in param) return param.value;
  // The declaration types its parameters by the values.
  const value = values[param.name];
  return param.kind === "json" && value !== null ? JSON.stringify(value) : (value as SqlValue);
}

/** Parses JSON. Most objects are empty, so they skip the parser. */
const parseJson = (text: string): unknown => (text === "{}" ? {} : JSON.parse(text));

/** A query that reads, on the file or in a transaction. */
export class Read<Values, Row> extends Query<Values> {
  /** Returns the first row; null if there is none. */
  get(from: Readable, values: Values): Row | null {
    return this.first(from, values);
  }

  all(from: Readable, values: Values): Row[] {
    return this.every(from, values);
  }
}

/** A query that writes. Its rows are those of RETURNING. It runs only in a transaction. */
export class Write<Values, Row> extends Query<Values> {
  /** Returns the number of rows written. */
  run(tx: Transaction, values: Values): number {
    return tx.query(this.text.sql).run(...this.bind(values)).changes;
  }

  /** Encodes the values now and writes them later, so that a transaction with many rows is short. */
  encoded(values: Values): (tx: Transaction) => number {
    const bound = this.bind(values);
    return (tx) => tx.query(this.text.sql).run(...bound).changes;
  }

  get(tx: Transaction, values: Values): Row | null {
    return this.first(tx, values);
  }

  all(tx: Transaction, values: Values): Row[] {
    return this.every(tx, values);
  }
}
