import { badField } from "../../../../kernel/errors.ts";
import { BUCKET_UNITS, type BucketUnit } from "../../../../kernel/time/buckets.ts";
import { timeZone } from "../../../../kernel/time/time-zone.ts";
import type { ParsedFilter } from "../filters/filter.ts";
import { AGGREGATE_GROUPS_DEFAULT, AGGREGATE_GROUPS_MAX, AGGREGATE_TERMS_MAX } from "../limits.ts";
import { type Column, DOCUMENT_COLUMN, type TableModel } from "../model/model.ts";
import type { AggregateValues } from "../model/requests.ts";
import { parseFilters } from "./list-query.ts";

const FUNCTIONS = ["count", "sum", "avg", "min", "max"] as const;
type AggregateFunction = (typeof FUNCTIONS)[number];

/** A value of a group, named as in the request: `status`, `createdAt:day`, `count()`, `sum(points)`. */
export type Term =
  | { kind: "group"; name: string; column: Column; unit: BucketUnit | null }
  | { kind: "count"; name: string }
  | { kind: "value"; name: string; column: Column; calculates: Exclude<AggregateFunction, "count"> };

export interface AggregateRequest {
  filter: ParsedFilter;
  groups: readonly Term[];
  selected: readonly Term[];
  sort: readonly { term: Term; direction: "asc" | "desc" }[];
  limit: number;
  timeZone: string;
}

/** Errors: 400 naming the parameter. [TB410]–[TB414] */
export function parseAggregate(model: TableModel, values: AggregateValues): AggregateRequest {
  const groups = named("groupBy", values.groupBy, (name) => groupOf(model, name));
  const select = values.select === "" ? undefined : values.select;
  const selected = named("select", select ?? "count()", (name) => selectedOf(model, name));
  const zone = values.timezone ?? "UTC";
  if (timeZone(zone) === null) {
    throw badField("timezone", "invalid_value", `timezone: "${zone}" is not a time zone, such as Europe/Berlin`);
  }
  return {
    filter: parseFilters(model, values),
    groups,
    selected,
    sort: parseSort(values.sort, [...groups, ...selected]),
    limit: Math.min(values.limit ?? AGGREGATE_GROUPS_DEFAULT, AGGREGATE_GROUPS_MAX),
    timeZone: zone,
  };
}

/** The terms of a comma-separated list, each once. */
function named(parameter: "select" | "groupBy", text: string | undefined, termOf: (name: string) => Term): Term[] {
  const names = text === undefined || text === "" ? [] : text.split(",").map((name) => name.trim());
  if (names.length > AGGREGATE_TERMS_MAX) {
    const message = `${parameter} takes at most ${AGGREGATE_TERMS_MAX} names, got ${names.length}`;
    throw badField(parameter, "too_long", message);
  }
  return [...new Set(names)].map(termOf);
}

function columnOf(model: TableModel, parameter: "select" | "groupBy", name: string): Column {
  const column = model.byName.get(name);
  if (column === undefined || name === DOCUMENT_COLUMN) {
    const reason = model.isSchemaless ? "is not a declared field" : "is not a field";
    throw badField(parameter, "unknown_field", `${parameter}: ${name} ${reason} of ${model.name}`);
  }
  if (column.type === "json") {
    throw badField(parameter, "invalid_type", `${parameter}: ${name} is a json field, whose values are of any type`);
  }
  return column;
}

function groupOf(model: TableModel, name: string): Term {
  const [field = "", unitName, ...rest] = name.split(":");
  const column = columnOf(model, "groupBy", field);
  if (unitName === undefined) return { kind: "group", name, column, unit: null };
  const unit = BUCKET_UNITS.find((one) => one === unitName);
  if (unit === undefined || rest.length > 0) {
    const message = `groupBy: "${name}" must be field or field:unit, with one of ${BUCKET_UNITS.join(", ")}`;
    throw badField("groupBy", "invalid_value", message);
  }
  if (column.type !== "datetime") {
    throw badField("groupBy", "invalid_type", `groupBy: ${field} is of type ${column.type}; units are for datetime`);
  }
  return { kind: "group", name, column, unit };
}

function selectedOf(model: TableModel, name: string): Term {
  const [, called = "", field = ""] = /^(\w+)\((\w*)\)$/.exec(name) ?? [];
  const calculates = FUNCTIONS.find((one) => one === called);
  if (calculates === undefined || (calculates === "count") !== (field === "")) {
    const message = `select: "${name}" is not one of count(), sum(field), avg(field), min(field), max(field)`;
    throw badField("select", "invalid_value", message);
  }
  if (calculates === "count") return { kind: "count", name };
  const column = columnOf(model, "select", field);
  const isNumber = column.type === "number" || column.type === "integer";
  if ((calculates === "sum" || calculates === "avg") && !isNumber) {
    const message = `select: ${name} takes a number or an integer, and ${field} is of type ${column.type}`;
    throw badField("select", "invalid_type", message);
  }
  return { kind: "value", name, column, calculates };
}

function parseSort(text: string | undefined, terms: readonly Term[]): AggregateRequest["sort"] {
  if (text === undefined || text === "") return [];
  const parts = text.split(",");
  if (parts.length > AGGREGATE_TERMS_MAX) {
    throw badField("sort", "too_long", `sort takes at most ${AGGREGATE_TERMS_MAX} names, got ${parts.length}`);
  }
  return parts.map((part) => {
    const wanted = part.trim();
    for (const direction of ["asc", "desc"] as const) {
      const term = terms.find(({ name }) => wanted === name || wanted === `${name}:${direction}`);
      if (term !== undefined) return { term, direction: wanted === term.name ? "asc" : direction };
    }
    const message = `sort: "${wanted}" must be a name of groupBy or select, followed by nothing, :asc or :desc`;
    throw badField("sort", "unknown_field", message);
  });
}
