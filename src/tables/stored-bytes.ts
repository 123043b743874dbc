import type { TableRecord } from "../config/types.ts";
import { tooLarge } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json.ts";
import { LARGE_ANSWER_BYTES, STORED_BYTES_MAX } from "./limits.ts";

/** What the stored records hold that one write has changed or deleted so far: short requests can be about long records. */
export interface StoredBytes {
  bytes: number;
}

export const isUsedUp = ({ bytes }: StoredBytes): boolean => bytes >= STORED_BYTES_MAX;

/** Errors: 413 where the records before it have used up what one write may change. */
export function takeStored(stored: StoredBytes, record: TableRecord): void {
  if (isUsedUp(stored)) {
    throw tooLarge(
      `The records that one request changes or deletes may hold some ${STORED_BYTES_MAX} bytes together; change fewer at once`,
    );
  }
  stored.bytes += roughBytes(record);
}

/** Whether an answer with all of them is made in pieces. */
export function isLarge(records: readonly TableRecord[]): boolean {
  let bytes = 0;
  for (const record of records) {
    bytes += roughBytes(record);
    if (bytes > LARGE_ANSWER_BYTES) return true;
  }
  return false;
}

/** Near enough, and found without making the JSON. */
function roughBytes(value: JsonValue): number {
  if (typeof value === "string") return value.length;
  let bytes = 8;
  if (typeof value !== "object" || value === null) return bytes;
  if (Array.isArray(value)) for (const member of value) bytes += roughBytes(member);
  else for (const name in value) bytes += name.length + roughBytes(value[name] ?? null);
  return bytes;
}
