import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { SqlValue } from "../../../db/index.ts";
import { type Column, DOCUMENT_COLUMN, isJsonText, type TableModel } from "./model.ts";

/**
 * JSON of values that one request is about to write, by value, and of its new schemaless records, by record. No other code holds
 * these, so they do not change.
 */
export type JsonTexts = ReadonlyMap<object, string>;

export const NO_TEXTS: JsonTexts = new Map();

export const textOf = (value: JsonValue, texts: JsonTexts): string =>
  (typeof value === "object" && value !== null ? texts.get(value) : undefined) ?? JSON.stringify(value);

/** Serialises an object as JSON.stringify does; undefined members are left out. */
export function objectText(object: Readonly<Record<string, JsonValue | undefined>>, texts: JsonTexts): string {
  if (texts.size === 0) return JSON.stringify(object);
  const members: string[] = [];
  for (const [name, value] of Object.entries(object)) {
    if (value !== undefined) members.push(`${JSON.stringify(name)}:${textOf(value, texts)}`);
  }
  return `{${members.join(",")}}`;
}

/** A row of SQLite by column name. */
export type Row = Record<string, SqlValue>;

/** Converts between rows and records. SQLite stores booleans as 0 and 1, and JSON as text. */
export interface Codec {
  /** Returns the record of a row. May change and return `row` itself. */
  fromRow(row: Row): TableRecord;
  /** Returns the record of each row, as `fromRow` does. */
  fromRows(rows: Row[]): TableRecord[];
  /** Returns the record of values in the order of `columns`. Default: `model.columns`. */
  fromValues(values: readonly unknown[], columns?: readonly Column[]): TableRecord;
  /** Returns the values of a record in the order of `model.columns`. */
  toValues(record: TableRecord, texts?: JsonTexts): SqlValue[];
  toValue(column: Column, value: JsonValue, texts?: JsonTexts): SqlValue;
  /** Returns the JSON that a schemaless record is stored as; null when each field has a column. */
  documentOf: ((record: TableRecord) => string) | null;
}

export function createCodec(model: TableModel): Codec {
  return model.isSchemaless ? schemalessCodec(model) : schemaCodec(model);
}

function toValue(column: Column, value: JsonValue, texts: JsonTexts = NO_TEXTS): SqlValue {
  if (value === null || value === undefined) return null;
  if (isJsonText(column.type)) return textOf(value, texts);
  if (typeof value === "boolean") return value ? 1 : 0;
  // Validated: the other types are text and numbers.
  return value as string | number;
}

function fromValue(column: Column, value: unknown): JsonValue {
  if (value === null || value === undefined) return null;
  if (column.type === "boolean") return value === 1;
  if (isJsonText(column.type)) return JSON.parse(value as string);
  // STRICT tables have only text and numbers in the other columns.
  return value as string | number;
}

function schemaCodec(model: TableModel): Codec {
  const { columns } = model;
  const converted = columns.filter((column) => column.type === "boolean" || isJsonText(column.type));
  const renamed = columns.flatMap(({ name, storedAs }) => (storedAs === undefined ? [] : [{ name, storedAs }]));
  const rename = (row: Row): void => {
    for (const { name, storedAs } of renamed) {
      if (row[storedAs] === undefined) continue;
      row[name] = row[storedAs];
      delete row[storedAs];
    }
  };
  const fromRow = (row: Row): TableRecord => {
    const record = row as TableRecord;
    rename(row);
    for (const column of converted) record[column.name] = fromValue(column, row[column.name]);
    return record;
  };
  return {
    fromRow,
    // Column by column, which is twice as fast as row by row; in many tables no column is converted.
    fromRows(rows) {
      if (renamed.length > 0) for (const row of rows) rename(row);
      for (const { name, type } of converted) {
        // The column was not read.
        if (rows[0]?.[name] === undefined) continue;
        for (const row of rows as TableRecord[]) {
          const value = row[name];
          if (value === null || value === undefined) row[name] = null;
          else row[name] = type === "boolean" ? value === 1 : JSON.parse(value as string);
        }
      }
      return rows as TableRecord[];
    },
    fromValues(values, read = columns) {
      const record: TableRecord = {};
      for (const [index, column] of read.entries()) record[column.name] = fromValue(column, values[index]);
      return record;
    },
    toValues: (record, texts) => columns.map((column) => toValue(column, record[column.name] ?? null, texts)),
    toValue,
    documentOf: null,
  };
}

function schemalessCodec(model: TableModel): Codec {
  const { columns } = model;
  const auto = columns.flatMap(({ name }, index) => (name === DOCUMENT_COLUMN ? [] : [{ name, index }]));
  const behind = auto.map(({ name }) => name).filter((name) => name !== "id");
  const documentIndex = columns.findIndex(({ name }) => name === DOCUMENT_COLUMN);
  /** Hides the other columns from JSON, which leaves undefined members out. */
  const hidden = Object.fromEntries(auto.map(({ name }) => [name, undefined]));
  const fromRow = (row: Row): TableRecord => {
    const record = withId(row[DOCUMENT_COLUMN] as string);
    for (const { name } of auto) record[name] = row[name] as string;
    return record;
  };
  const documentOf = (record: TableRecord): string =>
    textBetween(record, behind) ?? JSON.stringify({ ...record, ...hidden });
  const textFrom = (record: TableRecord, texts: JsonTexts): string =>
    texts.get(record) ?? (texts.size === 0 ? documentOf(record) : objectText({ ...record, ...hidden }, texts));
  return {
    fromRow,
    fromRows: (rows) => rows.map(fromRow),
    fromValues(values) {
      const record = withId(values[documentIndex] as string);
      for (const { name, index } of auto) record[name] = values[index] as string;
      return record;
    },
    toValues(record, texts = NO_TEXTS) {
      return columns.map((column) =>
        column.name === DOCUMENT_COLUMN ? textFrom(record, texts) : (record[column.name] as string),
      );
    },
    toValue,
    documentOf,
  };
}

/**
 * Returns the JSON of a record without its first member, `id`, and its last ones, `behind`; null for another order. Copying the
 * record without them takes several times as long. The last members are cut off as text with unescaped quotes, which cannot be
 * part of a string.
 */
function textBetween(record: TableRecord, behind: readonly string[]): string | null {
  const text = JSON.stringify(record);
  const start = `{"id":${JSON.stringify(record["id"])}`;
  const end = `${behind.map((name) => `,"${name}":${JSON.stringify(record[name])}`).join("")}}`;
  if (!text.startsWith(start) || !text.endsWith(end) || text.length < start.length + end.length) return null;
  return `{${text.slice(start.length + 1, -end.length)}}`;
}

/**
 * Returns a stored document with the member `id` in front, which the caller sets. It is inserted into the text when possible, as
 * copying the parsed document takes as long again. Migrations write documents as well: a text of another form is parsed as it is.
 */
const withId = (document: string): TableRecord =>
  document.startsWith('{"')
    ? JSON.parse(`{"id":null,${document.slice(1)}`)
    : Object.assign({ id: null }, JSON.parse(document));
