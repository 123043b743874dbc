import { isJsonObject, type JsonObject } from "../../src/kernel/json/json.ts";

/** What a client does with a delta, written for the tests alone: dot-paths to new values, null deletes. */
export function followDelta(state: JsonObject, delta: JsonObject): JsonObject {
  const followed = structuredClone(state);
  for (const [path, value] of Object.entries(delta)) {
    const keys = path.split(".");
    const last = keys.pop() ?? "";
    let target = followed;
    for (const key of keys) {
      const child = Object.hasOwn(target, key) ? target[key] : undefined;
      // A server that names a path into something that is no object has lost its way.
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
