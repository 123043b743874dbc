import type { Field, FieldType } from "../../api/resources.ts";
import { parseJson } from "../../parts/json.tsx";
import { isNumber } from "./grid/cell-text.tsx";

export type Operator =
  | "=="
  | "!="
  | ">"
  | ">="
  | "<"
  | "<="
  | "contains"
  | "icontains"
  | "startsWith"
  | "istartsWith"
  | "within"
  | "inBox"
  | "in"
  | "not in"
  | "has"
  | "hasAny"
  | "hasAll";

/** Condition in the server's form. */
export type Condition = readonly [field: string, operator: Operator, value: unknown];

/** Filter of a list: all of `all` must match, and one of `any` if there are some. */
export interface Conditions {
  all: readonly Condition[];
  any: readonly Condition[];
}

export const isNarrowed = ({ all, any }: Conditions): boolean => all.length + any.length > 0;

/** Returns the request parameters of a filter. */
export const parametersOf = ({ all, any }: Conditions): { filter?: string; orFilter?: string } => ({
  ...(all.length === 0 ? {} : { filter: JSON.stringify(all) }),
  ...(any.length === 0 ? {} : { orFilter: JSON.stringify(any) }),
});

const ORDERED: readonly Operator[] = ["==", "!=", ">", ">=", "<", "<=", "in", "not in"];
const TEXT: readonly Operator[] = [...ORDERED, "icontains", "istartsWith", "contains", "startsWith"];

const OPERATORS: Readonly<Record<FieldType, readonly Operator[]>> = {
  string: TEXT,
  text: TEXT,
  integer: ORDERED,
  number: ORDERED,
  date: ORDERED,
  datetime: ORDERED,
  boolean: ["==", "!="],
  geo: ["within", "inBox", "==", "!="],
  json: ["==", "!=", "contains"],
  references: ["has", "hasAny", "hasAll"],
  file: ["==", "!="],
};

export const operatorsOf = ({ type }: Pick<Field, "type">): readonly Operator[] => OPERATORS[type];

/** Whether the operator takes a list. */
export const takesList = (operator: Operator): boolean => ["in", "not in", "hasAny", "hasAll"].includes(operator);

/** Parses typed text as a value of the field. `null` is null; a list is separated by commas. */
export function typedValue(text: string, operator: Operator, field: Pick<Field, "type">): unknown {
  if (takesList(operator)) return text.split(",").map((part) => single(part.trim(), field));
  return single(text, field);
}

function single(text: string, { type }: Pick<Field, "type">): unknown {
  if (type === "references") return text;
  if (text === "null") return null;
  if (type === "boolean") return text === "true";
  // Text that is not a number, or that a number cannot represent exactly, stays text: the server reports the problem.
  if (type === "integer" || type === "number") return text.trim() !== "" && isNumber(text) ? Number(text) : text;
  if (type === "datetime") return instantText(text.trim());
  if (type !== "json" && type !== "geo" && type !== "file") return text;
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

/** Returns a day, or a time without an offset, as the instant in local time. Other text stays, for the server to report. */
function instantText(text: string): string {
  const [, day, time = "T00:00"] = /^(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?$/.exec(text) ?? [];
  const local = new Date(`${day}${time.replace(" ", "T")}`);
  return Number.isNaN(local.getTime()) ? text : local.toISOString();
}

export const textOf = (value: unknown): string =>
  Array.isArray(value) ? value.map(textOf).join(", ") : typeof value === "string" ? value : JSON.stringify(value);
