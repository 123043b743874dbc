import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";

const objectOr = (value: JsonValue | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};

function withPath(state: JsonObject, keys: readonly string[], value: JsonValue): JsonObject {
  const [key = "", ...rest] = keys;
  const { [key]: present, ...others } = state;
  if (rest.length > 0) return { ...state, [key]: withPath(objectOr(present), rest, value) };
  return value === null ? others : { ...state, [key]: value };
}

/** The state after a delta: dot-paths to new values, null deletes. What it does not touch stays the same object. */
export const followDelta = (state: JsonObject, delta: JsonObject): JsonObject =>
  Object.entries(delta).reduce((next, [path, value]) => withPath(next, path.split("."), value), state);
