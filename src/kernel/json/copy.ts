import { badField, badRequest, type FieldCode } from "../errors.ts";
import { JSON_DEPTH_MAX } from "../limits.ts";
import type { JsonObject, JsonValue } from "./json.ts";

/**
 * Copies a value that a config's code passes in, as JSON would represent it: later changes by that code have no effect. Undefined
 * members are left out. Errors: 400 naming the member for what JSON cannot represent (NaN, functions, bigint).
 */
export function jsonCopy<T extends JsonValue>(value: T): T;
export function jsonCopy(value: unknown): JsonValue;
export function jsonCopy(value: unknown): JsonValue {
  return copyOf(value, "", JSON_DEPTH_MAX);
}

function copyOf(value: unknown, path: string, depthMax: number): JsonValue {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : refuse(path, "invalid_value", `is ${value}`);
  if (typeof value !== "object") return refuse(path, "invalid_type", `is a ${typeof value}, which is no JSON`);
  if (depthMax === 0) return refuse(path, "invalid_value", `nests deeper than ${JSON_DEPTH_MAX} levels`);
  if (Array.isArray(value)) {
    return value.map((one, index) => (one === undefined ? null : copyOf(one, inside(path, index), depthMax - 1)));
  }
  // Dates, and other objects that define their JSON form.
  if ("toJSON" in value && typeof value.toJSON === "function") return copyOf(value.toJSON(), path, depthMax - 1);
  const copy: JsonObject = {};
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) setOwn(copy, name, copyOf(member, inside(path, name), depthMax - 1));
  }
  return copy;
}

const inside = (path: string, name: string | number): string => (path === "" ? String(name) : `${path}.${name}`);

/** Sets an own member, also for `__proto__`, where a plain assignment would set the prototype. */
function setOwn(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function refuse(path: string, code: FieldCode, what: string): never {
  if (path === "") throw badRequest(`The value ${what}`);
  throw badField(path, code, `${path} ${what}`);
}

/**
 * Copies a JSON value at every depth for a config's code, whose changes to the copy have no effect. Ten times as fast as
 * `structuredClone`, which supports more than JSON, and in a quarter of the time of freezing.
 */
export function plainCopy<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const copy: unknown[] = value.slice();
    for (let index = 0; index < copy.length; index++) {
      if (typeof copy[index] === "object") copy[index] = plainCopy(copy[index]);
    }
    // The copy has as many items of the same types.
    return copy as T;
  }
  // A hook may have added values that are not JSON.
  if (Object.getPrototypeOf(value) !== Object.prototype) return structuredClone(value);
  // A plain object.
  const copy = { ...value } as Record<string, unknown>;
  // A member named `__proto__` is one of the copy's own: assigning to it sets no prototype.
  for (const name in copy) if (typeof copy[name] === "object") copy[name] = plainCopy(copy[name]);
  // The copy has the same members, of the same types.
  return copy as T;
}
