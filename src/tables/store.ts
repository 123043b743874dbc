import type { TableRecord } from "../config/types.ts";
import { type DatabaseFile, quoteIdentifier, type SqlValue, type Transaction } from "../db/index.ts";
import type { JsonValue } from "../kernel/json.ts";
import { chain, isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import { type Codec, createCodec, type Row } from "./codec.ts";
import { join, type SqlCondition } from "./filter-sql.ts";
import { type Column, DOCUMENT_COLUMN, type TableModel } from "./model.ts";

/** Rows up to which a scan stays on the main thread: a millisecond or two, less than the way to a query process would save. */
const QUICK_SCAN_ROWS_MAX = 5_000;
/** Rows that a way along an index may step over on the main thread. */
const QUICK_STEPS_MAX = 2_000;

/** What is looked for, and the index in which that lies side by side; null: there is none. */
export interface Matches {
  where: SqlCondition | null;
  index: string | null;
}

export interface ListQuery {
  matches: Matches;
  /** The place that the page begins at, where it is not told by `offset`. */
  behind: SqlCondition | null;
  orderBy: SqlCondition;
  limit: number;
  offset: number;
  /** true: an index leads along the page, and every record on the way belongs to it: nothing is filtered out or sorted. */
  isWalk: boolean;
  isTotalWanted: boolean;
}

/** The statements of a list, made once for all requests that ask the same. */
export interface PreparedList {
  page: SqlCondition;
  total: PreparedCount | null;
  /** For when few match: found by their index, whatever the order wanted would suggest. */
  ofFew: { count: SqlCondition; page: SqlCondition } | null;
  isWalk: boolean;
}

/** null: all rows, whose number is known. */
type PreparedCount = { sql: SqlCondition | null };

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
  prepareList(query: ListQuery): PreparedList;
  /** `total` is null where it is not wanted. */
  list(file: DatabaseFile, prepared: PreparedList): MaybePromise<{ records: TableRecord[]; total: number | null }>;
  count(file: DatabaseFile, matches: Matches): MaybePromise<number>;
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

  const countBy = (file: DatabaseFile, statement: SqlCondition | null): MaybePromise<number> =>
    statement === null ? file.rowCount(model.name) : chain(rows(file, statement), firstNumber);

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
    prepareList: (query) => prepareList(model, query),
    list(file, { page, total, ofFew, isWalk }) {
      const isSmall = file.rowCount(model.name) <= QUICK_SCAN_ROWS_MAX;
      const few = isSmall || ofFew === null || (isWalk && total === null) ? null : fewMatching(file, ofFew.count);
      const isQuick = isSmall || isWalk || few !== null;
      const { sql, params } = !isWalk && few !== null && ofFew !== null ? ofFew.page : page;
      const records = isQuick
        ? codec.fromRows(file.query<Row>(sql).all(...params))
        : file.read(sql, params).then((found) => found.map(codec.fromValues));
      const counted = total === null ? null : (few ?? countBy(file, total.sql));
      if (!isPromise(records) && !isPromise(counted)) return { records, total: counted };
      // Asked together: on a large table the page and the count are two reads in two processes.
      return Promise.all([records, counted]).then(([found, number]) => ({ records: found, total: number }));
    },
    count(file, matches) {
      const isSmall = file.rowCount(model.name) <= QUICK_SCAN_ROWS_MAX;
      const few = isSmall ? null : countOfFew(model, matches);
      return (few === null ? null : fewMatching(file, few)) ?? countBy(file, countOf(model, matches));
    },
  };
}

const firstNumber = (found: unknown[][]): number => Number(found[0]?.[0] ?? 0);

/** null: there are too many to go through on the main thread. */
function fewMatching(file: DatabaseFile, count: SqlCondition): number | null {
  const matching = firstNumber(file.query(count.sql).values(...count.params));
  return matching <= QUICK_STEPS_MAX ? matching : null;
}

function prepareList(model: TableModel, query: ListQuery): PreparedList {
  const { matches, isTotalWanted } = query;
  const few = countOfFew(model, matches);
  return {
    page: pageOf(model, query, null),
    total: isTotalWanted ? { sql: countOf(model, matches) } : null,
    ofFew: few === null ? null : { count: few, page: pageOf(model, query, matches.index) },
    isWalk: query.isWalk && query.offset + query.limit <= QUICK_STEPS_MAX,
  };
}

function pageOf(model: TableModel, query: ListQuery, index: string | null): SqlCondition {
  const { matches, behind, orderBy, limit, offset } = query;
  const conditions = [matches.where, behind].filter((part) => part !== null);
  const where = conditions.length === 0 ? null : join(conditions, "AND");
  // The limit is written out: SQLite prepares a statement anew each time when a limit is bound.
  const page = offset === 0 ? `LIMIT ${limit}` : `LIMIT ${limit} OFFSET ?`;
  return {
    sql: `SELECT ${model.selectList} FROM ${fromSql(model, index)}${whereSql(where)} ORDER BY ${orderBy.sql} ${page}`,
    params: [...(where?.params ?? []), ...orderBy.params, ...(offset === 0 ? [] : [offset])],
  };
}

const countOf = (model: TableModel, { where }: Matches): SqlCondition | null =>
  where === null ? null : { sql: `SELECT count(*) FROM ${model.sql}${whereSql(where)}`, params: where.params };

/** Stops where there are too many to be few. */
function countOfFew(model: TableModel, { where, index }: Matches): SqlCondition | null {
  if (where === null || index === null) return null;
  const found = `SELECT 1 FROM ${fromSql(model, index)}${whereSql(where)} LIMIT ${QUICK_STEPS_MAX + 1}`;
  return { sql: `SELECT count(*) FROM (${found})`, params: where.params };
}

const fromSql = (model: TableModel, index: string | null): string =>
  index === null ? model.sql : `${model.sql} INDEXED BY ${quoteIdentifier(index)}`;

const whereSql = (where: SqlCondition | null): string => (where === null ? "" : ` WHERE ${where.sql}`);
