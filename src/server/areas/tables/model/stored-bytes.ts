import { tooLarge } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import { LARGE_ANSWER_BYTES, MEMBER_WEIGHT_BYTES, STORED_BYTES_MAX } from "../limits.ts";

/**
 * The bytes of the stored records that one write has changed or deleted so far: short requests can be about long records.
 * [TB148]
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

  /** Errors: 413 where earlier records have used up the bound. Called before the next one is read, which may take long. */
  refuseMore(): void {
    if (!this.isUsedUp) return;
    throw tooLarge(
      `The records that one request changes or deletes may have about ${STORED_BYTES_MAX} bytes together; change fewer at once`,
    );
  }

  /** Called only for records that the caller may change or read; else the answer would reveal their size. Errors: as `refuseMore`. */
  take(record: TableRecord): void {
    this.refuseMore();
    this.#bytes += weightOf(record);
  }

  /** Adds a record whose rule is awaited. */
  await(record: TableRecord): void {
    this.#awaitedBytes += weightOf(record);
  }
}

/** Whether an answer with these records is sent in pieces. */
export const isLarge = (records: readonly TableRecord[]): boolean => exceeds(records, LARGE_ANSWER_BYTES);

/** Whether these records have more than about so many bytes together. */
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

/** The bytes of a stored record by the time that it takes to read and write it. */
const weightOf = (record: TableRecord): number => roughBytes(record, MEMBER_WEIGHT_BYTES);

/** An estimate that does not serialise the value. `memberBytes`: what a member of an object counts besides its name and value. */
export function roughBytes(value: JsonValue, memberBytes = 0): number {
  if (typeof value === "string") return value.length;
  let bytes = 8;
  if (typeof value !== "object" || value === null) return bytes;
  if (Array.isArray(value)) for (const member of value) bytes += roughBytes(member, memberBytes);
  else for (const name in value) bytes += name.length + memberBytes + roughBytes(value[name] ?? null, memberBytes);
  return bytes;
}
