import { AppError, badField } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../kernel/json.ts";
import { refuseUnknownMembers } from "../kernel/members.ts";
import {
  ID_LENGTH_MAX,
  LENGTH_MAX,
  LENGTH_MIN,
  METADATA_MAX_BYTES,
  TOP_K_DEFAULT,
  TOP_K_MAX,
  VECTORS_MAX,
} from "./limits.ts";
import { parseMetadataFilter } from "./metadata-filter.ts";
import type { IndexDefinition, SearchQuery, StoredVector, VectorAction } from "./types.ts";

const ACTIONS = "upsert, search, delete, getByIds or describe";
/** What each action takes. */
const MEMBERS: ReadonlyMap<JsonValue | undefined, readonly string[]> = new Map([
  ["upsert", ["action", "vectors"]],
  ["search", ["action", "vector", "topK", "filter", "returnValues"]],
  ["delete", ["action", "ids"]],
  ["getByIds", ["action", "ids"]],
  ["describe", ["action"]],
]);
const VECTOR_MEMBERS = ["id", "values", "metadata"];

/** Errors: 400 naming the member at fault, 413 for metadata that is too large. Spec: Native resource endpoints; decisions 8. */
export function parseAction(index: IndexDefinition, body: JsonObject): VectorAction {
  const action = body["action"];
  const members = MEMBERS.get(action);
  if (members !== undefined) refuseUnknownMembers(body, members, `the action ${action}`);
  switch (action) {
    case "upsert":
      return { action, vectors: parseVectors(index, body["vectors"]) };
    case "search":
      return { action, query: parseSearch(index, body) };
    case "delete":
    case "getByIds":
      return { action, ids: parseIds(body["ids"]) };
    case "describe":
      return { action };
    case undefined:
      throw badField("action", "required", `"action" is required: ${ACTIONS}`);
    default:
      throw badField("action", "invalid_value", `"action" must be ${ACTIONS}`);
  }
}

export function parseVectors(index: IndexDefinition, vectors: JsonValue | undefined): StoredVector[] {
  return parseList("vectors", vectors).map((vector, position) => {
    const field = `vectors.${position}`;
    if (!isJsonObject(vector)) throw badField(field, "invalid_type", `"${field}" must be an object`);
    refuseUnknownMembers(vector, VECTOR_MEMBERS, "a vector", `${field}.`);
    return {
      id: parseId(`${field}.id`, vector["id"]),
      values: parseValues(index, `${field}.values`, vector["values"]),
      metadata: parseMetadata(`${field}.metadata`, vector["metadata"]),
    };
  });
}

/** Members that are absent or null take their defaults. */
export function parseSearch(index: IndexDefinition, body: JsonObject): SearchQuery {
  const topK = body["topK"] ?? TOP_K_DEFAULT;
  if (typeof topK !== "number" || !Number.isInteger(topK) || topK < 1 || topK > TOP_K_MAX) {
    throw badField("topK", "invalid_value", `"topK" must be a whole number from 1 to ${TOP_K_MAX}`);
  }
  const returnValues = body["returnValues"] ?? false;
  if (typeof returnValues !== "boolean") {
    throw badField("returnValues", "invalid_type", '"returnValues" must be true or false');
  }
  const vector = parseValues(index, "vector", body["vector"]);
  return { vector, topK, filter: parseMetadataFilter(body["filter"]), returnValues };
}

export function parseIds(ids: JsonValue | undefined): string[] {
  return parseList("ids", ids).map((id, position) => parseId(`ids.${position}`, id));
}

function parseList(field: string, list: JsonValue | undefined): JsonValue[] {
  if (list === undefined || list === null) throw badField(field, "required", `"${field}" is required`);
  if (!Array.isArray(list)) throw badField(field, "invalid_type", `"${field}" must be an array`);
  if (list.length > VECTORS_MAX) {
    throw badField(field, "too_long", `"${field}" must have at most ${VECTORS_MAX} members, got ${list.length}`);
  }
  return list;
}

function parseId(field: string, id: JsonValue | undefined): string {
  if (id === undefined || id === null) throw badField(field, "required", `"${field}" is required`);
  if (typeof id !== "string") throw badField(field, "invalid_type", `"${field}" must be a string`);
  if (id === "") throw badField(field, "too_short", `"${field}" must not be empty`);
  if ([...id].length > ID_LENGTH_MAX) {
    throw badField(field, "too_long", `"${field}" must be at most ${ID_LENGTH_MAX} characters`);
  }
  if (/\p{Cc}/u.test(id) || !id.isWellFormed()) {
    throw badField(field, "invalid_value", `"${field}" must be valid Unicode without control characters`);
  }
  return id;
}

/** Numbers are kept with 32 bits, as everywhere in this field; one too large for them is not finite. */
function parseValues(
  { dimensions, metric }: IndexDefinition,
  field: string,
  list: JsonValue | undefined,
): Float32Array<ArrayBuffer> {
  if (list === undefined || list === null) throw badField(field, "required", `"${field}" is required`);
  if (!Array.isArray(list)) throw badField(field, "invalid_type", `"${field}" must be an array of numbers`);
  if (list.length !== dimensions) {
    throw badField(field, "invalid_value", `"${field}" must have ${dimensions} dimensions, got ${list.length}`);
  }
  const values = new Float32Array(dimensions);
  let square = 0;
  // Not by `entries()`, which takes several times as long: a body may hold a million and a half of numbers.
  for (let position = 0; position < dimensions; position++) {
    const value = list[position];
    if (typeof value !== "number") {
      throw badField(field, "invalid_type", `"${field}.${position}" must be a number`);
    }
    const rounded = Math.fround(value);
    if (!Number.isFinite(rounded)) {
      throw badField(field, "invalid_value", `"${field}.${position}" must be a finite number of 32 bits`);
    }
    values[position] = rounded;
    square += rounded * rounded;
  }
  const length = Math.sqrt(square);
  if (length > LENGTH_MAX || (length < LENGTH_MIN && length !== 0)) {
    throw badField(field, "invalid_value", `"${field}" must have a length of ${LENGTH_MIN} to ${LENGTH_MAX}`);
  }
  if (length === 0 && metric === "cosine") {
    throw badField(field, "invalid_value", `"${field}" must not be all zeros: cosine compares directions`);
  }
  return values;
}

function parseMetadata(field: string, metadata: JsonValue | undefined): string {
  if (metadata === undefined || metadata === null) return "{}";
  if (!isJsonObject(metadata)) throw badField(field, "invalid_type", `"${field}" must be an object`);
  const text = JSON.stringify(metadata);
  if (Buffer.byteLength(text) <= METADATA_MAX_BYTES) return text;
  const message = `"${field}" must be at most ${METADATA_MAX_BYTES} bytes of JSON`;
  throw new AppError(413, message, { data: { [field]: { code: "too_large", message } } });
}
