import type { JsonObject, JsonValue } from "./json.ts";

/**
 * A record for a rule, which is asked about each record of an answer: a copy, whose lists of plain values are copies, and whose
 * other JSON cannot be written to. A copy at every depth would take a third of the time that the whole read of a large one takes.
 * `fields`: those that may hold JSON; null: any.
 */
export function readOnly<R extends JsonObject>(record: R, fields: readonly string[] | null): R {
  const copy: JsonObject = { ...record };
  for (const name of fields ?? Object.keys(copy)) {
    const value = copy[name];
    if (typeof value === "object" && value !== null) copy[name] = isPlainList(value) ? value.slice() : viewOf(value);
  }
  // The same members, of the same types.
  return copy as R;
}

/** Whether copying it copies all of it. */
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
