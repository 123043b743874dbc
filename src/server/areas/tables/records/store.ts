import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import { quoteIdentifier, type SqlValue, type Transaction } from "../../../db/index.ts";
import { createRelatedStore, type RelatedStore } from "../expand/related-store.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import { LONG_RECORD_LENGTH, SAMPLED_RECORD_MAX_BYTES, SAMPLED_RECORDS } from "../limits.ts";
import { type Codec, createCodec, type Row } from "../model/codec.ts";
import type { JsonTexts } from "../model/json-texts.ts";
import { type Column, DOCUMENT_COLUMN, type TableModel } from "../model/model.ts";
import { recordSizeProblem } from "../model/record-size.ts";
import { createPages, type Pages } from "../query/pages.ts";
import { createReferringStore, type ReferringStore } from "../write/referring.ts";

/** Runs statements: a file for reads on the main thread, or a transaction. */
type Queries = Pick<Transaction, "query">;
type Writes = Pick<Transaction, "query" | "indexText">;

/** A record that takes a while to decode. */
export class LongRecord {
  readonly decode: () => TableRecord;

  constructor(decode: () => TableRecord) {
    this.decode = decode;
  }
}

/** The SQL for the records of one table. */
export interface TableStore extends Pages {
  readonly codec: Codec;
  /** `one`: the statement of `PreparedReads.one` for the id, which finds no hidden record. */
  get(queries: Queries, id: string, one?: SqlCondition | null): TableRecord | null;
  /** The same for who can wait: a long record is not decoded yet. */
  read(queries: Queries, id: string, one?: SqlCondition | null): TableRecord | LongRecord | null;
  /** The record with this value in a unique column. `one`: the statement for that column. */
  getBy(queries: Queries, column: Column, value: JsonValue, one: SqlCondition): TableRecord | null;
  /** Every record may be examined: for the server's own code. */
  matching(queries: Queries, statement: SqlCondition): TableRecord[];
  /** Some of the first and last records by id, without those that are long. */
  sample(queries: Queries): TableRecord[];
  readonly referring: ReferringStore;
  readonly related: RelatedStore;
  /** Errors: 400 for a record over the table's maximum size. */
  insert(tx: Writes, record: TableRecord, texts?: JsonTexts): void;
  /** The same with `isBounded`. Without it, as when a reference is set to null, a record may have any size. */
  update(
    tx: Writes,
    id: string,
    changes: TableRecord,
    next: TableRecord,
    options?: { isBounded: boolean; texts: JsonTexts },
  ): void;
  delete(queries: Queries, id: string): void;
}

export function createTableStore(model: TableModel): TableStore {
  const codec = createCodec(model);
  const { sql: table, selectList, columns } = model;
  const byId = `SELECT ${selectList} FROM ${table} WHERE "id" = ?`;
  const insertSql = `INSERT INTO ${table} (${selectList}) VALUES (${columns.map(() => "?").join(", ")})`;
  const deleteSql = `DELETE FROM ${table} WHERE "id" = ?`;
  const octets = columns.map(({ sql }) => `ifnull(octet_length(${sql}), 0)`).join(" + ");
  const sampled = ["ASC", "DESC"].map(
    (order) =>
      `SELECT ${selectList} FROM (SELECT * FROM ${table} ORDER BY "id" ${order} LIMIT ${SAMPLED_RECORDS}) WHERE ${octets} <= ${SAMPLED_RECORD_MAX_BYTES}`,
  );
  const decode = (row: unknown): TableRecord | null =>
    row === null || row === undefined ? null : codec.fromRow(row as Row);

  const rowOf = (queries: Queries, id: string, one: SqlCondition | null): Row | null =>
    one === null ? queries.query<Row>(byId).get(id) : queries.query<Row>(one.sql).get(id, ...one.params);

  const indexed = model.fts?.fields ?? [];

  return {
    codec,
    get: (queries, id, one = null) => decode(rowOf(queries, id, one)),
    read(queries, id, one = null) {
      const row = rowOf(queries, id, one);
      return row !== null && isLong(row) ? new LongRecord(() => codec.fromRow(row)) : decode(row);
    },
    getBy: (queries, column, value, one) =>
      decode(queries.query(one.sql).get(codec.toValue(column, value), ...one.params)),
    matching: (queries, { sql, params }) => codec.fromRows(queries.query<Row>(sql).all(...params)),
    sample: (queries) => sampled.flatMap((sql) => codec.fromRows(queries.query<Row>(sql).all())),
    referring: createReferringStore(model, codec),
    related: createRelatedStore(model, codec),
    insert(tx, record, texts) {
      if (indexed.length > 0) tx.indexText(model.name, String(record["id"]), lengthOf(indexed, record));
      tx.query(insertSql).run(...bounded(model, codec.toValues(record, texts), record));
    },
    update(tx, id, changes, next, options) {
      const changed = model.isSchemaless
        ? columns.filter((column) => column.name === DOCUMENT_COLUMN || Object.hasOwn(changes, column.name))
        : columns.filter((column) => Object.hasOwn(changes, column.name));
      if (changed.length === 0) return;
      if (indexed.some((field) => Object.hasOwn(changes, field))) tx.indexText(model.name, id, lengthOf(indexed, next));
      const values = codec.toValues(next, options?.texts);
      if (options?.isBounded === true) bounded(model, values, next);
      const assignments = changed.map((column) => `${quoteIdentifier(column.name)} = ?`).join(", ");
      tx.query(`UPDATE ${table} SET ${assignments} WHERE "id" = ?`).run(
        ...changed.map((column) => values[columns.indexOf(column)] ?? null),
        id,
      );
    },
    delete(queries, id) {
      queries.query(deleteSql).run(id);
    },
    ...createPages(model, codec),
  };
}

function isLong(row: Row): boolean {
  let length = 0;
  for (const name in row) {
    const value = row[name];
    if (typeof value === "string") length += value.length;
  }
  return length > LONG_RECORD_LENGTH;
}

function bounded(model: TableModel, values: SqlValue[], record: TableRecord): SqlValue[] {
  const problem = recordSizeProblem(model, values, record);
  if (problem !== null) throw problem;
  return values;
}

/** The number of characters to be indexed for full-text search. */
function lengthOf(fields: readonly string[], record: TableRecord): number {
  let length = 0;
  for (const field of fields) {
    const text = record[field];
    if (typeof text === "string") length += text.length;
  }
  return length;
}
