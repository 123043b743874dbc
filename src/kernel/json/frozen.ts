/**
 * Freezes a JSON value at every depth and returns it. For values that many callers share and few read: reading a frozen list takes
 * several times as long. Records, which are read more often, are copied instead (`plainCopy`).
 */
export function frozenJson<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const inner of Object.values(value)) frozenJson(inner);
  return Object.freeze(value);
}
