import type { TableRecord } from "../config/types.ts";
import { type AppError, tooLarge } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json.ts";
import { STORED_BYTES_MAX } from "./limits.ts";

/** The stored records that one run of a write has read: those that it may change, and those whose rule is awaited. */
export class StoredBytes {
  #bytes = 0;
  #awaitedBytes = 0;

  /** Whether so much is awaited that the rest of the request has to wait for it. */
  get isFull(): boolean {
    return this.#awaitedBytes > STORED_BYTES_MAX;
  }

  /** Whether the request may change no further record. */
  get isUsedUp(): boolean {
    return this.#bytes >= STORED_BYTES_MAX;
  }

  /**
   * To be called of records alone that the caller may change or read: the error tells of their size. Errors: 413 where the
   * records before this one have used up what one request may change.
   */
  count(record: TableRecord): void {
    if (this.isUsedUp) throw tooMuchStored();
    this.#bytes += sizeOf(record);
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
