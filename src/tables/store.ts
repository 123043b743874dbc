import type { TableRecord } from "../config/types.ts";
import { type DatabaseFile, quoteIdentifier, type ReadCaller, type SqlValue, type Transaction } from "../db/index.ts";
import type { JsonValue } from "../kernel/json.ts";
import { type Codec, createCodec, type Row } from "./codec.ts";
import type { SqlCondition } from "./filter-sql.ts";
import { type ListQuery, type PreparedList, prepareList } from "./list-sql.ts";
import { type Column, DOCUMENT_COLUMN, type TableModel } from "./model.ts";
import { createPages, type Pages } from "./pages.ts";

const SMALL_ROWS_MAX = 5_000;

/** Where statements run: a file for reads on the main thread, a transaction for those inside a write. */
type Queries = Pick<Transaction, "query">;

/** The only SQL about one table's records. */
export interface TableStore extends Pages {
  readonly codec: Codec;
  get(queries: Queries, id: string): TableRecord | null;
  /** By a unique column. */
  getBy(queries: Queries, column: Column, value: JsonValue): TableRecord | null;
  exists(queries: Queries, column: Column, value: SqlValue): boolean;
  /** At most `limit` records that refer to `value`. */
  referring(queries: Queries, column: Column, value: SqlValue, limit: number): TableRecord[];
  insert(queries: Queries, record: TableRecord): void;
  update(queries: Queries, id: string, changes: TableRecord, next: TableRecord): void;
  delete(queries: Queries, id: string): void;
  prepareList(query: ListQuery): PreparedList;
  /** Rows of any statement about this table, off the main thread when the table is large. */
  rows(file: DatabaseFile, statement: SqlCondition, caller?: ReadCaller): Promise<unknown[][]> | unknown[][];
}

export function createTableStore(model: TableModel): TableStore {
  const codec = createCodec(model);
  const { sql: table, selectList, columns } = model;
  const byId = `SELECT ${selectList} FROM ${table} WHERE "id" = ?`;
  const insertSql = `INSERT INTO ${table} (${selectList}) VALUES (${columns.map(() => "?").join(", ")})`;
  const deleteSql = `DELETE FROM ${table} WHERE "id" = ?`;
  const decode = (row: unknown): TableRecord | null =>
    row === null || row === undefined ? null : codec.fromRow(row as Row);

  return {
    codec,
    rows: (file, { sql, params }, caller) =>
      file.rowCount(model.name) <= SMALL_ROWS_MAX
        ? file.query(sql).values(...params)
        : file.read(sql, params, { caller }),
    get: (queries, id) => decode(queries.query(byId).get(id)),
    getBy: (queries, column, value) =>
      decode(
        queries
          .query(`SELECT ${selectList} FROM ${table} WHERE ${column.sql} = ? LIMIT 1`)
          .get(codec.toValue(column, value)),
      ),
    exists: (queries, column, value) =>
      queries.query(`SELECT 1 FROM ${table} WHERE ${column.sql} = ? LIMIT 1`).get(value) !== null,
    referring: (queries, column, value, limit) =>
      queries
        .query(`SELECT ${selectList} FROM ${table} WHERE ${column.sql} = ? LIMIT ?`)
        .all(value, limit)
        .map((row) => codec.fromRow(row as Row)),
    insert(queries, record) {
      queries.query(insertSql).run(...codec.toValues(record));
    },
    update(queries, id, changes, next) {
      const changed = model.isSchemaless
        ? columns.filter((column) => column.name === DOCUMENT_COLUMN || Object.hasOwn(changes, column.name))
        : columns.filter((column) => Object.hasOwn(changes, column.name));
      if (changed.length === 0) return;
      const values = codec.toValues(next);
      const assignments = changed.map((column) => `${quoteIdentifier(column.name)} = ?`).join(", ");
      queries
        .query(`UPDATE ${table} SET ${assignments} WHERE "id" = ?`)
        .run(...changed.map((column) => values[columns.indexOf(column)] ?? null), id);
    },
    delete(queries, id) {
      queries.query(deleteSql).run(id);
    },
    prepareList: (query) => prepareList(model, query),
    ...createPages(model, codec),
  };
}
