import { badField, badRequest } from "../kernel/errors.ts";
import { isJsonObject, type JsonValue } from "../kernel/json.ts";
import { refuseUnknownMembers } from "../kernel/members.ts";
import { PARAMETERS_MAX, SQL_MAX_CHARACTERS } from "./limits.ts";
import type { Binding, QueryRequest } from "./types.ts";

/** Errors: 400 that names the member at fault. */
export function parseQueryBody(body: JsonValue): QueryRequest {
  if (!isJsonObject(body)) throw badRequest("The body must be a JSON object");
  refuseUnknownMembers(body, ["query", "params"], "a query");
  return parseQuery(body["query"], body["params"]);
}

export const parseQuery = (query: unknown, params: unknown): QueryRequest => ({
  sql: parseText(query),
  params: parseBindings(params),
});

function parseText(query: unknown): string {
  if (query === undefined || query === null) throw badField("query", "required", '"query" is required');
  if (typeof query !== "string") throw badField("query", "invalid_type", '"query" must be a string');
  if (query.length > SQL_MAX_CHARACTERS) {
    throw badField("query", "too_long", `"query" must be at most ${SQL_MAX_CHARACTERS} characters`);
  }
  if (query.includes("\0")) throw badField("query", "invalid_value", '"query" must not have a NUL character');
  return query;
}

/** Errors: 400 for what is no array, too long, or holds anything but text, numbers, booleans and null. */
function parseBindings(params: unknown): Binding[] {
  if (params === undefined || params === null) return [];
  if (!Array.isArray(params)) throw badField("params", "invalid_type", '"params" must be an array');
  if (params.length > PARAMETERS_MAX) {
    throw badField("params", "too_long", `"params" must have at most ${PARAMETERS_MAX} members, got ${params.length}`);
  }
  return params.map((value: unknown, index) => {
    if (typeof value === "number" && !Number.isFinite(value)) {
      throw badField(`params.${index}`, "invalid_value", `"params.${index}" is ${value}`);
    }
    if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
      return value;
    }
    throw badField(`params.${index}`, "invalid_type", `"params.${index}" must be a string, number, boolean or null`);
  });
}
