import { AppError } from "../../../../kernel/errors.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { SqlValue } from "../../../db/index.ts";
import { RECORD_BYTES_MAX, SCALAR_BYTES_MAX, UNIT_BYTES_MAX } from "../limits.ts";
import { type Column, DOCUMENT_COLUMN, type TableModel } from "./model.ts";
import { roughBytes } from "./stored-bytes.ts";

/** Bytes of the quotes, the colon and the comma of a member. */
const PUNCTUATION_BYTES = 4;

/** 400: a record with more JSON than its table allows. It names the largest field. [TB124] */
export class RecordTooLarge extends AppError {
  readonly maxBytes: number;

  constructor(maxBytes: number, field: string, message: string) {
    super(400, message, { data: { [field]: { code: "too_large", message } } });
    this.maxBytes = maxBytes;
  }
}

/** The problem of a record to be stored, or null. [TB124] */
export function recordSizeProblem(
  model: TableModel,
  values: readonly SqlValue[],
  record: TableRecord,
): RecordTooLarge | null {
  const maxBytes = model.config.maxRecordSize ?? RECORD_BYTES_MAX;
  const { columns } = model;
  if (sum(columns, (column, index) => bytesAtMost(column, values[index] ?? null)) <= maxBytes) return null;
  const sizes = columns.map((column, index) => jsonBytes(column, values[index] ?? null, maxBytes));
  const bytes = sum(columns, (_, index) => sizes[index] ?? 0);
  if (bytes <= maxBytes) return null;
  const largest = columns[sizes.indexOf(Math.max(...sizes))];
  const name = largest === undefined ? "id" : largest.name === DOCUMENT_COLUMN ? largestMember(record) : largest.name;
  const message = `A record must have at most ${maxBytes} bytes of JSON, got at least ${bytes}; ${name} is its largest field`;
  return new RecordTooLarge(maxBytes, name, message);
}

function sum(columns: readonly Column[], bytesOf: (column: Column, index: number) => number): number {
  let bytes = 2;
  for (let index = 0; index < columns.length; index++) {
    const column = columns[index];
    if (column !== undefined) bytes += column.name.length + PUNCTUATION_BYTES + bytesOf(column, index);
  }
  return bytes;
}

/** An upper bound that does not serialise the value. */
function bytesAtMost(column: Column, value: SqlValue): number {
  if (typeof value !== "string") return SCALAR_BYTES_MAX;
  return column.type === "json" ? Buffer.byteLength(value) : value.length * UNIT_BYTES_MAX;
}

/** A text that alone exceeds `maxBytes` is not serialised: its length is a sufficient lower bound. */
function jsonBytes(column: Column, value: SqlValue, maxBytes: number): number {
  if (typeof value !== "string") return column.type === "boolean" ? "false".length : String(value).length;
  if (value.length > maxBytes) return value.length + '""'.length;
  return Buffer.byteLength(column.type === "json" ? value : JSON.stringify(value));
}

/** By an estimate: the document is not serialised once more, member by member. */
function largestMember(record: TableRecord): string {
  let [largest, most] = ["id", 0];
  for (const [name, value] of Object.entries(record)) {
    const bytes = name.length + roughBytes(value);
    if (bytes > most) [largest, most] = [name, bytes];
  }
  return largest;
}
