export type JsonPrimitive = string | number | boolean | null;
export type JsonValue = JsonPrimitive | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Nesting that a JSON value may have: deeper ones are an attack on recursive code, not data. */
export const JSON_DEPTH_MAX = 64;

/** Whether `value` nests no deeper than `depthMax`; itself written without recursion over the attacker's depth. */
export function isWithinDepth(value: unknown, depthMax: number = JSON_DEPTH_MAX): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depthMax === 0) return false;
  const children: unknown[] = Array.isArray(value) ? value : Object.values(value);
  for (const child of children) if (!isWithinDepth(child, depthMax - 1)) return false;
  return true;
}
