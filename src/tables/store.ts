import type { TableRecord } from "../config/types.ts";
import { type DatabaseFile, quoteIdentifier, type SqlValue, type Transaction } from "../db/index.ts";
import type { JsonValue } from "../kernel/json.ts";
import { type Codec, createCodec, type Row } from "./codec.ts";
import type { SqlCondition } from "./filter-sql.ts";
import { type Column, DOCUMENT_COLUMN, type TableModel } from "./model.ts";

/** Rows up to which a scan stays on the main thread: a millisecond or two, less than the way to a query process would save. */
const QUICK_SCAN_ROWS_MAX = 5_000;
/** Rows that a walk along an index may step over on the main thread. */
const QUICK_STEPS_MAX = 2_000;

export interface SelectQuery {
  where: SqlCondition | null;
  orderBy: SqlCondition;
  limit: number;
  offset: number;
  /** true: an index leads to the page, and every record on the way belongs to it: nothing is filtered out or sorted. */
  isIndexed: boolean;
}

/** Where statements run: a file for reads on the main thread, a transaction for those inside a write. */
type Queries = Pick<Transaction, "query">;

/** The only SQL about one table's records. */
export interface TableStore {
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
  select(file: DatabaseFile, query: SelectQuery): Promise<TableRecord[]> | TableRecord[];
  count(file: DatabaseFile, where: SqlCondition | null): Promise<number> | number;
  /** Rows of any statement about this table, off the main thread when the table is large. */
  rows(
    file: DatabaseFile,
    statement: SqlCondition,
    options?: { isQuick?: boolean },
  ): Promise<unknown[][]> | unknown[][];
}

export function createTableStore(model: TableModel): TableStore {
  const codec = createCodec(model);
  const { sql: table, selectList, columns } = model;
  const byId = `SELECT ${selectList} FROM ${table} WHERE "id" = ?`;
  const insertSql = `INSERT INTO ${table} (${selectList}) VALUES (${columns.map(() => "?").join(", ")})`;
  const deleteSql = `DELETE FROM ${table} WHERE "id" = ?`;
  const decode = (row: unknown): TableRecord | null =>
    row === null || row === undefined ? null : codec.fromRow(row as Row);

  const rows: TableStore["rows"] = (file, statement, options) => {
    if (options?.isQuick === true || file.rowCount(model.name) <= QUICK_SCAN_ROWS_MAX) {
      return file.query(statement.sql).values(...statement.params);
    }
    return file.read(statement.sql, statement.params);
  };

  return {
    codec,
    rows,
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
    select(file, { where, orderBy, limit, offset, isIndexed }) {
      // The limit is written out: SQLite prepares a statement anew each time when a limit is bound.
      const page = offset === 0 ? `LIMIT ${limit}` : `LIMIT ${limit} OFFSET ?`;
      const sql = `SELECT ${selectList} FROM ${table}${where === null ? "" : ` WHERE ${where.sql}`} ORDER BY ${orderBy.sql} ${page}`;
      const params = [...(where?.params ?? []), ...orderBy.params, ...(offset === 0 ? [] : [offset])];
      const isQuick = isIndexed && offset + limit <= QUICK_STEPS_MAX;
      if (isQuick || file.rowCount(model.name) <= QUICK_SCAN_ROWS_MAX) {
        return file
          .query(sql)
          .all(...params)
          .map((row) => codec.fromRow(row as Row));
      }
      return file.read(sql, params).then((found) => found.map(codec.fromValues));
    },
    count(file, where) {
      if (where === null) return file.rowCount(model.name);
      const counted = rows(file, { sql: `SELECT count(*) FROM ${table} WHERE ${where.sql}`, params: where.params });
      const first = (found: unknown[][]): number => Number(found[0]?.[0] ?? 0);
      return counted instanceof Promise ? counted.then(first) : first(counted);
    },
  };
}
