import type { SqlValue } from "./types.ts";

/** What bound values take, roughly. */
export function bytesOf(params: readonly SqlValue[]): number {
  let bytes = 0;
  for (const value of params) {
    if (typeof value === "string") bytes += value.length;
    else bytes += value instanceof Uint8Array ? value.byteLength : 8;
  }
  return bytes;
}

/** node:sqlite binds every number as a real; whole ones are integers to bun:sqlite, and so they are here. */
export function asBinding(value: SqlValue): string | number | bigint | null | Uint8Array {
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number" && Number.isSafeInteger(value) && !Object.is(value, -0)) return BigInt(value);
  return value;
}
