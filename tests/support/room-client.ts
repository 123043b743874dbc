import { isJsonObject, type JsonObject } from "../../src/kernel/json/json.ts";

/** Applies a delta of dot-paths to new values, in which null deletes. Written independently of the client. */
export function followDelta(state: JsonObject, delta: JsonObject): JsonObject {
  const followed = structuredClone(state);
  for (const [path, value] of Object.entries(delta)) {
    const keys = path.split(".");
    const last = keys.pop() ?? "";
    let target = followed;
    for (const key of keys) {
      const child = Object.hasOwn(target, key) ? target[key] : undefined;
      // A path through something that is not an object is a server error.
      if (!isJsonObject(child)) throw new Error(`${path} leads through "${key}", which is no object`);
      target = child;
    }
    if (value === null) {
      if (!Object.hasOwn(target, last)) throw new Error(`${path} deletes what is not there`);
      delete target[last];
    } else {
      target[last] = value;
    }
  }
  return followed;
}
