import type { TableRecord } from "../../config/types.ts";
import type { SqlValue } from "../../db/index.ts";
import { BoundedMap } from "../../kernel/bounded-map.ts";
import { badField, badRequest } from "../../kernel/errors.ts";
import type { TableModel } from "../model/model.ts";
import { decodeCursor } from "./cursor.ts";
import { FILTER_CONDITIONS_MAX, OR_CONDITIONS_MAX, type ParsedFilter, parseFilterText } from "./filter.ts";
import { parseSort, type Sort } from "./sort.ts";

/** Decisions 4. */
export const LIMIT_DEFAULT = 100;
export const LIMIT_MAX = 1_000;
/** Pages and records that can be stepped over. */
const POSITION_MAX = 999_999_999_999_999;

export type Paging =
  | { mode: "first" }
  | { mode: "offset"; offset: number }
  | { mode: "after" | "before"; values: readonly SqlValue[] };

export interface ListRequest {
  filter: ParsedFilter;
  sort: Sort;
  limit: number;
  paging: Paging;
  /** null: all. */
  fields: readonly string[] | null;
}

/** Anything with the parameters of a request: a query string, or the options of a server-side call. */
export interface Parameters {
  /** The whole, where it is one text: equal texts have equal parameters. */
  readonly text?: string;
  get(name: string): string | null;
}

/** Requests that are kept parsed, per table: applications send the same few, page after page. */
const PARSED_REQUESTS_MAX = 256;
const PARSED_TEXT_LENGTH_MAX = 1_024;

/** `parseListRequest` that remembers. */
export function createListRequests(model: TableModel): (query: Parameters) => ListRequest {
  const parsed = new BoundedMap<string, ListRequest>(PARSED_REQUESTS_MAX);
  return (query) => {
    const { text } = query;
    if (text === undefined || text.length > PARSED_TEXT_LENGTH_MAX) return parseListRequest(model, query);
    const known = parsed.get(text);
    if (known !== undefined) return known;
    const request = parseListRequest(model, query);
    parsed.set(text, request);
    return request;
  };
}

/** Errors: 400 naming the parameter. Spec: Table rules 1–4; decisions 4. */
export function parseListRequest(model: TableModel, query: Parameters): ListRequest {
  const sort = parseSort(model, query.get("sort"));
  return {
    filter: parseFilters(model, query),
    sort,
    limit: parseLimit(query),
    paging: parsePaging(query, sort),
    fields: parseFields(model, query.get("fields")),
  };
}

export function parseFilters(model: TableModel, query: Parameters): ParsedFilter {
  return {
    all: parseFilterText(model, query.get("filter"), { name: "filter", conditionsMax: FILTER_CONDITIONS_MAX }),
    any: parseFilterText(model, query.get("orFilter"), { name: "orFilter", conditionsMax: OR_CONDITIONS_MAX }),
  };
}

/** `limit`, or its alias `perPage`; more than the most counts as the most. */
export function parseLimit(query: Parameters): number {
  const name = query.get("limit") === null ? "perPage" : "limit";
  return Math.min(wholeOr(query, name, { min: 1, max: Number.POSITIVE_INFINITY, fallback: LIMIT_DEFAULT }), LIMIT_MAX);
}

export function parseOffset(query: Parameters): number {
  return wholeOr(query, "offset", { min: 0, max: POSITION_MAX, fallback: 0 });
}

function parsePaging(query: Parameters, sort: Sort): Paging {
  const given = ["page", "offset", "after", "before"].filter((name) => query.get(name) !== null);
  if (given.length > 1) {
    throw badRequest(`${given.join(" and ")} cannot be used together`, {
      [given[1] ?? ""]: { code: "invalid_value", message: `${given[1]} cannot be used together with ${given[0]}` },
    });
  }
  const [mode] = given;
  if (mode === "page") {
    const page = wholeOr(query, "page", { min: 1, max: POSITION_MAX, fallback: 1 });
    return { mode: "offset", offset: (page - 1) * parseLimit(query) };
  }
  if (mode === "offset") return { mode: "offset", offset: parseOffset(query) };
  if (mode === "after" || mode === "before") {
    return { mode, values: decodeCursor(sort, query.get(mode) ?? "", mode) };
  }
  return { mode: "first" };
}

function wholeOr(query: Parameters, name: string, bounds: { min: number; max: number; fallback: number }): number {
  const text = query.get(name);
  if (text === null) return bounds.fallback;
  if (!/^-?\d+$/.test(text)) throw badField(name, "invalid_type", `${name} must be a whole number, got "${text}"`);
  const value = Number(text);
  if (value > bounds.max) throw badField(name, "too_large", `${name} must be at most ${bounds.max}, got "${text}"`);
  if (value < bounds.min) throw badField(name, "too_small", `${name} must be at least ${bounds.min}, got ${value}`);
  return value;
}

/** The `fields` parameter. Errors: 400 for an unknown one. */
export function parseFields(model: TableModel, text: string | null): readonly string[] | null {
  if (text === null || text === "") return null;
  const fields = text.split(",").map((name) => name.trim());
  for (const name of fields) {
    const isKnown = model.byName.has(name) || (model.isSchemaless && !name.startsWith("_platform"));
    if (!isKnown) throw badField("fields", "unknown_field", `fields: ${name} is not a field of ${model.name}`);
  }
  return fields;
}

/** Only those fields, and the id always. */
export function pick(record: TableRecord, fields: readonly string[] | null): TableRecord {
  if (fields === null) return record;
  const picked: TableRecord = { id: record["id"] ?? null };
  for (const [name, value] of Object.entries(record)) if (fields.includes(name)) picked[name] = value;
  return picked;
}
