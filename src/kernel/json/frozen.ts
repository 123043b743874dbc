/**
 * Freezes a JSON value at every depth, and returns it. For what many callers share and few read: reading a frozen list takes
 * several times as long. A record, which is read more often, is copied (`plainCopy`).
 */
export function frozenJson<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const inner of Object.values(value)) frozenJson(inner);
  return Object.freeze(value);
}
