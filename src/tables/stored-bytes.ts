import type { TableRecord } from "../config/types.ts";
import { type AppError, tooLarge } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json.ts";

/**
 * What one request may change or delete of what is stored, where it is more than one record: reading and writing a MiB holds the
 * event loop for up to ten milliseconds. A request of a few bytes can name 500 records of 1 MiB.
 */
export const STORED_BYTES_MAX = 4 * 1024 * 1024;

/** The stored records that one run of a write has read: those that it may change, and those whose rule is awaited. */
export class StoredBytes {
  #records = 0;
  #bytes = 0;
  #awaitedBytes = 0;

  /** Whether so much is awaited that the rest of the request has to wait for it. */
  get isFull(): boolean {
    return this.#awaitedBytes > STORED_BYTES_MAX;
  }

  /**
   * To be called of records alone that the caller may change or read: the error tells of their size. Errors: 413 when a request
   * that is about more than one record has read too much.
   */
  count(record: TableRecord): void {
    this.#bytes += sizeOf(record);
    if (++this.#records > 1 && this.#bytes > STORED_BYTES_MAX) throw tooMuchStored();
  }

  await(record: TableRecord): void {
    this.#awaitedBytes += sizeOf(record);
  }
}

const tooMuchStored = (): AppError =>
  tooLarge(
    `The stored records of one request must have at most ${STORED_BYTES_MAX} bytes together; change or delete fewer at once`,
  );

/** About as many bytes as its JSON, found without making it. */
function sizeOf(value: JsonValue | TableRecord): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  let bytes = 0;
  if (Array.isArray(value)) for (const member of value) bytes += sizeOf(member);
  else for (const name in value) bytes += name.length + sizeOf(value[name] ?? null);
  return bytes;
}
