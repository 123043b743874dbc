import { badField, badRequest } from "../../../../kernel/errors.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { SqlValue } from "../../../db/index.ts";
import { type ExpandStep, parseExpand } from "../expand/paths.ts";
import {
  NO_FILTER,
  type ParsedFilter,
  parseAlternatives,
  parseFilter,
  type ReadableTables,
  withBoth,
} from "../filters/filter.ts";
import { filterJson } from "../filters/filter-json.ts";
import { parseSort, type Sort } from "../filters/sort.ts";
import { FILTER_CONDITIONS_MAX, LIMIT_DEFAULT, LIMIT_MAX, OR_CONDITIONS_MAX } from "../limits.ts";
import type { TableModel } from "../model/model.ts";
import type { CountValues, ListValues } from "../model/requests.ts";
import type { Grant } from "../rules/access.ts";
import { decodeCursor } from "./cursor.ts";
import { type Near, parseNear, withDistance } from "./near.ts";

export type Paging =
  | { mode: "first" }
  | { mode: "offset"; offset: number }
  | { mode: "after" | "before"; values: readonly SqlValue[] };

export interface ListRequest {
  filter: ParsedFilter;
  sort: Sort;
  /** Order by distance, in place of the sort; null for none. */
  near: Near | null;
  limit: number;
  paging: Paging;
  /** Whether the client accepts a total: false for `total=false`. */
  isTotalAsked: boolean;
  /** Requested fields; null for all. */
  fields: ReadonlySet<string> | null;
  /** Paths to expand; null for none. */
  expand: readonly ExpandStep[] | null;
}

/** Parses a list request. Errors: 400 naming the parameter. [TB1]–[TB7] */
export function parseListRequest(model: TableModel, values: ListValues, readable: ReadableTables): ListRequest {
  for (const other of ["sort", "after", "before"] as const) refuseTogether(values, ["near", other]);
  const sort = parseSort(model, values.sort ?? null, readable.own);
  return {
    filter: parseFilters(model, values, readable),
    sort,
    near: parseNear(model, values.near),
    limit: limitOf(values),
    paging: parsePaging(values, sort),
    isTotalAsked: values.total ?? true,
    fields: parseFields(model, values.fields),
    expand: parseExpand(model, values.expand),
  };
}

/** Whether the answer has a total: not in cursor mode, with `total=false`, or when the rule has to see each record. */
export const isTotalWanted = ({ paging, isTotalAsked }: ListRequest, grant: Grant): boolean =>
  isTotalAsked && grant.kind !== "record" && paging.mode !== "after" && paging.mode !== "before";

/** Whether the total tells if more records follow. Otherwise one record more than requested is read. */
export const isMoreCounted = (request: ListRequest, grant: Grant): boolean =>
  isTotalWanted(request, grant) || (request.paging.mode === "offset" && request.isTotalAsked);

export function parseFilters(
  model: TableModel,
  { filter, orFilter }: CountValues,
  readable: ReadableTables,
): ParsedFilter {
  if (filter === undefined && orFilter === undefined) return NO_FILTER;
  const parsed = { filter: filterJson(filter, "filter"), orFilter: filterJson(orFilter, "orFilter") };
  return filtersOf(model, parsed, readable);
}

/** Parses a filter and its alternatives. Errors: 400 naming `filter` or `orFilter`. */
export function filtersOf(
  model: TableModel,
  { filter, orFilter }: { filter?: unknown; orFilter?: unknown },
  readable?: ReadableTables,
): ParsedFilter {
  const relations = readable === undefined ? {} : { readable };
  const all = parseFilter(model, filter, { name: "filter", conditionsMax: FILTER_CONDITIONS_MAX, ...relations });
  const any = { name: "orFilter", conditionsMax: OR_CONDITIONS_MAX, ...relations };
  // Most requests have no alternatives.
  return orFilter === null || orFilter === undefined ? all : withBoth(all, parseAlternatives(model, orFilter, any));
}

/** Returns `limit`, or its alias `perPage`, clamped to the maximum. */
export const limitOf = ({ limit, perPage }: { limit?: number; perPage?: number }): number =>
  Math.min(limit ?? perPage ?? LIMIT_DEFAULT, LIMIT_MAX);

function parsePaging(values: ListValues, sort: Sort): Paging {
  const { page, offset, after, before } = values;
  refuseTogether(values, ["page", "offset", "after", "before"]);
  refuseTogether(values, ["limit", "perPage"]);
  if (page !== undefined) return { mode: "offset", offset: (page - 1) * limitOf(values) };
  if (offset !== undefined) return { mode: "offset", offset };
  if (after !== undefined) return { mode: "after", values: decodeCursor(sort, after, "after") };
  if (before !== undefined) return { mode: "before", values: decodeCursor(sort, before, "before") };
  return { mode: "first" };
}

/** Refuses parameters that exclude each other. Errors: 400 when more than one is present, since the others would be ignored. */
function refuseTogether(values: ListValues, names: readonly (keyof ListValues)[]): void {
  const [given, other] = names.filter((name) => values[name] !== undefined);
  if (other === undefined) return;
  const message = `${other} cannot be used together with ${given}`;
  throw badRequest(`${given} and ${other} cannot be used together`, { [other]: { code: "invalid_value", message } });
}

/** Parses the `fields` parameter; null for all fields. Errors: 400 for an unknown one. */
export function parseFields(model: TableModel, text: string | undefined): ReadonlySet<string> | null {
  if (text === undefined || text === "") return null;
  const fields = new Set(text.split(",").map((name) => name.trim()));
  for (const name of fields) {
    const isKnown = model.byName.has(name) || (model.isSchemaless && !name.startsWith("_platform"));
    if (!isKnown) throw badField("fields", "unknown_field", `fields: ${name} is not a field of ${model.name}`);
  }
  return fields;
}

/** Returns a record as a list answers it. */
export function shownIn({ fields, near }: ListRequest, record: TableRecord): TableRecord {
  const shown = pick(record, fields);
  return near === null ? shown : withDistance(shown, record, near);
}

export const offsetOf = (paging: Paging): number => (paging.mode === "offset" ? paging.offset : 0);

/** Returns the record with only these fields and the id; the whole record for null. */
export function pick(record: TableRecord, fields: ReadonlySet<string> | null): TableRecord {
  if (fields === null) return record;
  const picked: TableRecord = { id: record["id"] ?? null };
  for (const name in record) if (fields.has(name)) picked[name] = record[name] ?? null;
  return picked;
}
