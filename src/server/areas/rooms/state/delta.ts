import { isJsonObject, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { DELTA_DEPTH_MAX } from "../limits.ts";

/** Changes by dot-path; null deletes a key. */
export type Delta = JsonObject;

/**
 * Returns the delta from `before` to `after`; null when they are equal. A path has at most DELTA_DEPTH_MAX levels: a deeper
 * change replaces the whole value. Arrays are replaced as a whole. Parts shared by reference are skipped. [RM31]
 */
export function diffStates(before: JsonObject, after: JsonObject): Delta | null {
  const delta: Delta = {};
  let isEmpty = true;
  const put = (path: string, value: JsonValue): void => {
    delta[path] = value;
    isEmpty = false;
  };
  const visit = (older: JsonObject, newer: JsonObject, prefix: string, depth: number): void => {
    let inBoth = 0;
    for (const key of Object.keys(newer)) {
      const value = newer[key] ?? null;
      // A value of a state is never a function, so it cannot equal a prototype's member.
      if (older[key] === value) {
        inBoth++;
        continue;
      }
      const path = prefix + key;
      const previous = Object.hasOwn(older, key) ? older[key] : undefined;
      if (previous === undefined) {
        put(path, value);
        continue;
      }
      inBoth++;
      if (depth < DELTA_DEPTH_MAX && isJsonObject(previous) && isJsonObject(value)) {
        visit(previous, value, `${path}.`, depth + 1);
      } else if (!isEqual(previous, value)) {
        put(path, value);
      }
    }
    const olderKeys = Object.keys(older);
    if (inBoth === olderKeys.length) return;
    for (const key of olderKeys) if (!Object.hasOwn(newer, key)) put(prefix + key, null);
  };
  if (before !== after) visit(before, after, "", 1);
  return isEmpty ? null : delta;
}

function isEqual(one: JsonValue, other: JsonValue): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => isEqual(item, other[index] ?? null));
  }
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && isEqual(one[key] ?? null, other[key] ?? null));
}
