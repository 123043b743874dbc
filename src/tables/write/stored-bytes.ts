import type { TableRecord } from "../../config/types.ts";
import { tooLarge } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json.ts";
import { LARGE_ANSWER_BYTES, STORED_BYTES_MAX } from "../limits.ts";

/** What the stored records hold that one write has changed or deleted so far: short requests can be about long records. */
export class StoredBytes {
  #bytes = 0;
  #awaitedBytes = 0;

  get isUsedUp(): boolean {
    return this.#bytes >= STORED_BYTES_MAX;
  }

  /** So much waits for its rule that the rest of the request has to wait for it: all of it is in memory meanwhile. */
  get isAwaitedEnough(): boolean {
    return this.#awaitedBytes >= STORED_BYTES_MAX;
  }

  /**
   * Only of records that the caller may change or read: what is refused afterwards would tell of their size. Errors: 413 where the
   * records before it have used up what one write may change.
   */
  take(record: TableRecord): void {
    if (this.isUsedUp) {
      throw tooLarge(
        `The records that one request changes or deletes may hold some ${STORED_BYTES_MAX} bytes together; change fewer at once`,
      );
    }
    this.#bytes += bytesOf(record);
  }

  /** A record whose rule is being awaited. */
  await(record: TableRecord): void {
    this.#awaitedBytes += bytesOf(record);
  }
}

/** Whether an answer with all of them is made in pieces. */
export function isLarge(records: readonly TableRecord[]): boolean {
  let bytes = 0;
  for (const record of records) {
    bytes += bytesOf(record);
    if (bytes > LARGE_ANSWER_BYTES) return true;
  }
  return false;
}

const bytesOf = (record: TableRecord): number => {
  let bytes = 0;
  for (const name in record) bytes += roughBytes(record[name] ?? null);
  return bytes;
};

/** Near enough, and found without making the JSON. */
function roughBytes(value: JsonValue): number {
  if (typeof value === "string") return value.length;
  let bytes = 8;
  if (typeof value !== "object" || value === null) return bytes;
  if (Array.isArray(value)) for (const member of value) bytes += roughBytes(member);
  else for (const name in value) bytes += name.length + roughBytes(value[name] ?? null);
  return bytes;
}
