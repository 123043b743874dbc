import type { SqlValue } from "../types.ts";

/** About what the values of a statement take in memory. */
export function bytesOf(params: readonly SqlValue[]): number {
  let bytes = 0;
  for (const value of params) {
    if (typeof value === "string") bytes += value.length;
    else bytes += value instanceof Uint8Array ? value.byteLength : 8;
  }
  return bytes;
}
