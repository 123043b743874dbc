import type { JsonObject, JsonValue } from "./json.ts";

/**
 * Prepares a record for a rule, which is evaluated for each record of an answer: copies it and its lists of plain values, and makes
 * its other JSON read-only. A copy at every depth would take a third of the time of reading a large record. `fields`: those that
 * may hold JSON; null: any.
 */
export function readOnly<R extends JsonObject>(record: R, fields: readonly string[] | null): R {
  const copy: JsonObject = { ...record };
  for (const name of fields ?? Object.keys(copy)) {
    const value = copy[name];
    if (typeof value === "object" && value !== null) copy[name] = isPlainList(value) ? value.slice() : viewOf(value);
  }
  // The copy has the same members, of the same types.
  return copy as R;
}

/** Reports whether a shallow copy copies all of the value. */
const isPlainList = (value: object): value is JsonValue[] =>
  Array.isArray(value) && !value.some((item) => typeof item === "object");

const viewOf = (value: JsonObject | JsonValue[]): JsonValue => new Proxy<typeof value>(value, VIEW);
const viewed = (value: unknown): unknown =>
  typeof value === "object" && value !== null ? new Proxy(value, VIEW) : value;
const refuse = (): false => false;

const VIEW: ProxyHandler<object> = {
  get: (target, name) => viewed(Reflect.get(target, name)),
  getOwnPropertyDescriptor(target, name) {
    const found = Reflect.getOwnPropertyDescriptor(target, name);
    return found === undefined ? undefined : { ...found, value: viewed(found.value) };
  },
  set: refuse,
  defineProperty: refuse,
  deleteProperty: refuse,
  setPrototypeOf: refuse,
  preventExtensions: refuse,
};
