import { AppError, tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { SqlValue } from "../../../db/index.ts";
import {
  LARGE_ANSWER_BYTES,
  MEMBER_WEIGHT_BYTES,
  RECORD_BYTES_MAX,
  SCALAR_BYTES_MAX,
  STORED_BYTES_MAX,
  UNIT_BYTES_MAX,
} from "../limits.ts";
import { type Column, DOCUMENT_COLUMN, isJsonText, type TableModel } from "./model.ts";

/**
 * Counts the bytes of the stored records that one write has changed or deleted: short requests can concern long records. [TB148]
 */
export class StoredBytes {
  #bytes = 0;
  #awaitedBytes = 0;

  get isUsedUp(): boolean {
    return this.#bytes >= STORED_BYTES_MAX;
  }

  /** Whether the records whose rules are awaited take so much memory that the rest of the request has to wait. */
  get isAwaitedEnough(): boolean {
    return this.#awaitedBytes >= STORED_BYTES_MAX;
  }

  /**
   * Refuses when earlier records have used up the bound. Called before the next one is read, which may take long. Errors: 413.
   */
  refuseMore(): void {
    if (!this.isUsedUp) return;
    throw tooLarge(
      `The records that one request changes or deletes may have about ${STORED_BYTES_MAX} bytes together; change fewer at once`,
    );
  }

  /**
   * Counts a record. Called only for records that the caller may change or read; otherwise the answer would reveal their size.
   * Errors: as `refuseMore`.
   */
  take(record: TableRecord): void {
    this.refuseMore();
    this.#bytes += weightOf(record);
  }

  /** Counts a record whose rule is awaited. */
  await(record: TableRecord): void {
    this.#awaitedBytes += weightOf(record);
  }
}

/** Whether an answer with these records is sent in pieces. */
export const isLarge = (records: readonly TableRecord[]): boolean => exceeds(records, LARGE_ANSWER_BYTES);

/** Whether these records have more than about `maxBytes` bytes together. */
export function exceeds(records: readonly TableRecord[], maxBytes: number): boolean {
  let bytes = 0;
  for (const record of records) {
    bytes += bytesOf(record);
    if (bytes > maxBytes) return true;
  }
  return false;
}

export const bytesOf = (record: TableRecord): number => {
  let bytes = 0;
  for (const name in record) bytes += roughBytes(record[name] ?? null);
  return bytes;
};

/** Returns the bytes of a stored record, weighted by the time of reading and writing it. */
const weightOf = (record: TableRecord): number => roughBytes(record, MEMBER_WEIGHT_BYTES);

/**
 * Estimates the bytes of a value without serialising it. `memberBytes`: bytes added per member of an object, beside its name and
 * value.
 */
export function roughBytes(value: JsonValue, memberBytes = 0): number {
  if (typeof value === "string") return value.length;
  let bytes = 8;
  if (typeof value !== "object" || value === null) return bytes;
  if (Array.isArray(value)) for (const member of value) bytes += roughBytes(member, memberBytes);
  else for (const name in value) bytes += name.length + memberBytes + roughBytes(value[name] ?? null, memberBytes);
  return bytes;
}

/** Bytes of a member's quotes, colon and comma. */
const PUNCTUATION_BYTES = 4;

/** Error 400 for a record with more JSON than its table allows. Names the largest field. [TB124] */
export class RecordTooLarge extends AppError {
  readonly maxBytes: number;

  constructor(maxBytes: number, field: string, message: string) {
    super(400, message, { data: { [field]: { code: "too_large", message } } });
    this.maxBytes = maxBytes;
  }
}

/** Returns the problem of a record to be stored, or null. [TB124] */
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

/** Returns an upper bound of the bytes without serialising the value. */
function bytesAtMost(column: Column, value: SqlValue): number {
  if (typeof value !== "string") return SCALAR_BYTES_MAX;
  return isJsonText(column.type) ? Buffer.byteLength(value) : value.length * UNIT_BYTES_MAX;
}

/**
 * Returns the bytes of the value as JSON. A text that alone exceeds `maxBytes` is not serialised: its length is a sufficient
 * lower bound.
 */
function jsonBytes(column: Column, value: SqlValue, maxBytes: number): number {
  if (typeof value !== "string") return column.type === "boolean" ? "false".length : String(value).length;
  if (value.length > maxBytes) return value.length + '""'.length;
  return Buffer.byteLength(isJsonText(column.type) ? value : JSON.stringify(value));
}

/** Returns the largest member by an estimate, so that the document is not serialised again, member by member. */
function largestMember(record: TableRecord): string {
  let [largest, most] = ["id", 0];
  for (const [name, value] of Object.entries(record)) {
    const bytes = name.length + roughBytes(value);
    if (bytes > most) [largest, most] = [name, bytes];
  }
  return largest;
}
