import type { JsonObject } from "../../../../kernel/json/json.ts";
import { RECORD_ASSUMED_BYTES, RECORD_NODES_MAX } from "../limits.ts";

/** Estimated bytes of a number, `true`, or a pair of brackets. */
const SMALL_BYTES = 8;

/**
 * Estimates the bytes of a record as JSON without serialising it. A record with more than RECORD_NODES_MAX values is not
 * counted to the end.
 */
export function recordBytes(record: JsonObject | null): number {
  if (record === null) return SMALL_BYTES;
  let bytes = 0;
  let nodes = 0;
  const waiting: unknown[] = [record];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (++nodes > RECORD_NODES_MAX) return RECORD_ASSUMED_BYTES;
    if (typeof value === "string") bytes += value.length + 2;
    else bytes += SMALL_BYTES;
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) {
      for (const item of value) waiting.push(item);
      continue;
    }
    for (const key in value) {
      bytes += key.length + 2;
      waiting.push((value as JsonObject)[key]); // Of its own keys: a record's prototype has none.
    }
  }
  return bytes;
}
