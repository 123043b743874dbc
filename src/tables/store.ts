import type { TableRecord } from "../config/types.ts";
import { type DatabaseFile, quoteIdentifier, type ReadCaller, type SqlValue, type Transaction } from "../db/index.ts";
import type { JsonValue } from "../kernel/json.ts";
import { chain, isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import { type Codec, createCodec, type Row } from "./codec.ts";
import type { SqlCondition } from "./filter-sql.ts";
import {
  countOf,
  countOfFew,
  type ListQuery,
  type Matches,
  type PreparedList,
  prepareList,
  QUICK_STEPS_MAX,
} from "./list-sql.ts";
import { type Column, DOCUMENT_COLUMN, type TableModel } from "./model.ts";
import { recordSizeProblem } from "./record-size.ts";
import { createReferringStore, type ReferringStore } from "./referring.ts";
import { refuse } from "./validation.ts";

/** Rows up to which a scan stays on the main thread: a millisecond or two, less than the way to a query process would save. */
const QUICK_SCAN_ROWS_MAX = 5_000;

/** Where statements run: a file for reads on the main thread, a transaction for those inside a write. */
type Queries = Pick<Transaction, "query">;
type Writes = Pick<Transaction, "query" | "indexText">;

/** The only SQL about one table's records. */
export interface TableStore {
  readonly codec: Codec;
  get(queries: Queries, id: string): TableRecord | null;
  /** By a unique column. */
  getBy(queries: Queries, column: Column, value: JsonValue): TableRecord | null;
  readonly referring: ReferringStore;
  /** Errors: 400 for a record over the table's size. */
  insert(tx: Writes, record: TableRecord): void;
  /** The same with `isBounded`: a record that only lets go of another may be of any size. */
  update(tx: Writes, id: string, changes: TableRecord, next: TableRecord, options?: { isBounded: boolean }): void;
  delete(queries: Queries, id: string): void;
  prepareList(query: ListQuery): PreparedList;
  /** `total` is null where it is not wanted. */
  list(
    file: DatabaseFile,
    prepared: PreparedList,
    caller?: ReadCaller,
  ): MaybePromise<{ records: TableRecord[]; total: number | null }>;
  count(file: DatabaseFile, matches: Matches, caller?: ReadCaller): MaybePromise<number>;
}

export function createTableStore(model: TableModel): TableStore {
  const codec = createCodec(model);
  const { sql: table, selectList, columns } = model;
  const byId = `SELECT ${selectList} FROM ${table} WHERE "id" = ?`;
  const insertSql = `INSERT INTO ${table} (${selectList}) VALUES (${columns.map(() => "?").join(", ")})`;
  const deleteSql = `DELETE FROM ${table} WHERE "id" = ?`;
  const decode = (row: unknown): TableRecord | null =>
    row === null || row === undefined ? null : codec.fromRow(row as Row);

  const texts = model.fts?.fields ?? [];

  const rows = (file: DatabaseFile, statement: SqlCondition, caller?: ReadCaller): MaybePromise<unknown[][]> => {
    if (file.rowCount(model.name) <= QUICK_SCAN_ROWS_MAX) {
      return file.query(statement.sql).values(...statement.params);
    }
    return file.read(statement.sql, statement.params, { caller });
  };

  const countBy = (file: DatabaseFile, statement: SqlCondition | null, caller?: ReadCaller): MaybePromise<number> =>
    statement === null ? file.rowCount(model.name) : chain(rows(file, statement, caller), firstNumber);

  return {
    codec,
    get: (queries, id) => decode(queries.query(byId).get(id)),
    getBy: (queries, column, value) =>
      decode(
        queries
          .query(`SELECT ${selectList} FROM ${table} WHERE ${column.sql} = ? LIMIT 1`)
          .get(codec.toValue(column, value)),
      ),
    referring: createReferringStore(model, codec),
    insert(tx, record) {
      if (texts.length > 0) tx.indexText(model.name, String(record["id"]), lengthOf(texts, record));
      tx.query(insertSql).run(...bounded(model, codec.toValues(record)));
    },
    update(tx, id, changes, next, options) {
      const changed = model.isSchemaless
        ? columns.filter((column) => column.name === DOCUMENT_COLUMN || Object.hasOwn(changes, column.name))
        : columns.filter((column) => Object.hasOwn(changes, column.name));
      if (changed.length === 0) return;
      if (texts.some((field) => Object.hasOwn(changes, field))) tx.indexText(model.name, id, lengthOf(texts, next));
      const values = codec.toValues(next);
      if (options?.isBounded === true) bounded(model, values);
      const assignments = changed.map((column) => `${quoteIdentifier(column.name)} = ?`).join(", ");
      tx.query(`UPDATE ${table} SET ${assignments} WHERE "id" = ?`).run(
        ...changed.map((column) => values[columns.indexOf(column)] ?? null),
        id,
      );
    },
    delete(queries, id) {
      queries.query(deleteSql).run(id);
    },
    prepareList: (query) => prepareList(model, query),
    list(file, { page, total, ofFew, walk }, caller) {
      const isSmall = file.rowCount(model.name) <= QUICK_SCAN_ROWS_MAX;
      const isWalk = !isSmall && walk !== null && (walk.steps === null || isFew(file, walk.steps));
      const few = isSmall || ofFew === null || (isWalk && total === null) ? null : fewMatching(file, ofFew.count);
      const { sql, params } = !isWalk && few !== null && ofFew !== null ? ofFew.page : page;
      const records =
        isSmall || isWalk || few !== null
          ? codec.fromRows(file.query<Row>(sql).all(...params))
          : file.read(sql, params, { caller }).then((found) => found.map(codec.fromValues));
      const counted = total === null ? null : (few ?? countBy(file, total.sql, caller));
      if (!isPromise(records) && !isPromise(counted)) return { records, total: counted };
      // Asked together: on a large table the page and the count are two reads in two processes.
      return Promise.all([records, counted]).then(([found, number]) => ({ records: found, total: number }));
    },
    count(file, matches, caller) {
      const isSmall = file.rowCount(model.name) <= QUICK_SCAN_ROWS_MAX;
      const few = isSmall ? null : countOfFew(model, matches);
      return (few === null ? null : fewMatching(file, few)) ?? countBy(file, countOf(model, matches), caller);
    },
  };
}

function bounded(model: TableModel, values: SqlValue[]): SqlValue[] {
  const problems = recordSizeProblem(model, values);
  if (problems !== null) refuse(problems);
  return values;
}

/** Characters that the full-text index takes in. */
function lengthOf(fields: readonly string[], record: TableRecord): number {
  let length = 0;
  for (const field of fields) {
    const text = record[field];
    if (typeof text === "string") length += text.length;
  }
  return length;
}

const firstNumber = (found: unknown[][]): number => Number(found[0]?.[0] ?? 0);

/** null: there are too many to go through on the main thread. */
function fewMatching(file: DatabaseFile, count: SqlCondition): number | null {
  const matching = firstNumber(file.query(count.sql).values(...count.params));
  return matching <= QUICK_STEPS_MAX ? matching : null;
}

const isFew = (file: DatabaseFile, count: SqlCondition): boolean => fewMatching(file, count) !== null;
