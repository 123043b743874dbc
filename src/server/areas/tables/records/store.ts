import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import { type PageBounds, quoteIdentifier, type SqlValue, type Transaction } from "../../../db/index.ts";
import type { SqlCondition } from "../filters/filter-sql.ts";
import { LONG_RECORD_LENGTH, PAGE_BYTES_MAX, SAMPLED_RECORD_MAX_BYTES, SAMPLED_RECORDS } from "../limits.ts";
import type { JsonTexts } from "../model/codec.ts";
import { createCodec, type Row } from "../model/codec.ts";
import { type Column, DOCUMENT_COLUMN, isJsonText, type TableModel } from "../model/model.ts";
import { recordSizeProblem } from "../model/record-size.ts";

/** Executes statements: a file for reads on the main thread, or a transaction. */
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
export type TableStore = ReturnType<typeof createTableStore>;

export function createTableStore(model: TableModel) {
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
    /** Returns a record by id, or null. `one`: the statement of `PreparedReads.one` for the id, which finds no hidden record. */
    get: (queries: Queries, id: string, one: SqlCondition | null = null): TableRecord | null =>
      decode(rowOf(queries, id, one)),
    /** Returns a record as `get` does, for callers that can wait: a long record is not decoded yet. */
    read(queries: Queries, id: string, one: SqlCondition | null = null): TableRecord | LongRecord | null {
      const row = rowOf(queries, id, one);
      return row !== null && isLong(row) ? new LongRecord(() => codec.fromRow(row)) : decode(row);
    },
    /** Returns the record with this value in a unique column, or null. `one`: the statement for that column. */
    getBy: (queries: Queries, column: Column, value: JsonValue, one: SqlCondition): TableRecord | null =>
      decode(queries.query(one.sql).get(codec.toValue(column, value), ...one.params)),
    /** Returns the matches of a statement. It may examine every record, so it is for the server's own code. */
    matching: (queries: Queries, { sql, params }: SqlCondition): TableRecord[] =>
      codec.fromRows(queries.query<Row>(sql).all(...params)),
    /** Returns some of the first and last records by id, except long ones. */
    sample: (queries: Queries): TableRecord[] =>
      sampled.flatMap((sql) => codec.fromRows(queries.query<Row>(sql).all())),
    /** Inserts a record. Errors: 400 when it exceeds the table's maximum size. */
    insert(tx: Writes, record: TableRecord, texts?: JsonTexts): void {
      if (indexed.length > 0) tx.indexText(model.name, String(record["id"]), lengthOf(indexed, record));
      tx.query(insertSql).run(...bounded(model, codec.toValues(record, texts), record));
    },
    /**
     * Updates a record. Errors: those of `insert`, with `isBounded` only. Without it, as when a reference is set to null, a record
     * may have any size.
     */
    update(
      tx: Writes,
      id: string,
      changes: TableRecord,
      next: TableRecord,
      options?: { isBounded: boolean; texts: JsonTexts },
    ): void {
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
    delete(queries: Queries, id: string): void {
      queries.query(deleteSql).run(id);
    },
  };
}

/** Returns the bytes of a record as JSON without its values: names, colons, commas and braces. */
export function pageBounds({ columns, isSchemaless }: Pick<TableModel, "columns" | "isSchemaless">): PageBounds {
  const jsonColumns = columns.flatMap(({ type, name }, index) =>
    isJsonText(type) || (isSchemaless && name === DOCUMENT_COLUMN) ? [index] : [],
  );
  const rowBytes = columns.reduce((bytes, { name }) => bytes + Buffer.byteLength(JSON.stringify(name)) + 2, 2);
  return { bytesMax: PAGE_BYTES_MAX, rowBytes, jsonColumns };
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

/** Counts the characters to be indexed for full-text search. */
function lengthOf(fields: readonly string[], record: TableRecord): number {
  let length = 0;
  for (const field of fields) {
    const text = record[field];
    if (typeof text === "string") length += text.length;
  }
  return length;
}
