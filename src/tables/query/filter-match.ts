import type { TableRecord } from "../../config/types.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { includesText } from "../../kernel/text/includes-text.ts";
import { valueAt } from "../model/field-path.ts";
import type { Condition, ParsedFilter } from "./filter.ts";
import { lowerAscii } from "./text-match.ts";

/** A filter as a function of a record, for rules and realtime. It agrees with the SQL of `filter-sql.ts`. [TB17] */
export function matches(filter: ParsedFilter, record: TableRecord): boolean {
  for (const condition of filter.all) if (!matchesCondition(condition, record)) return false;
  return filter.any.length === 0 || filter.any.some((condition) => matchesCondition(condition, record));
}

function matchesCondition(condition: Condition, record: TableRecord): boolean {
  const value = valueAt(record, condition.field) ?? null;
  switch (condition.operator) {
    case "==":
      return isEqual(value, condition.value, condition);
    case "!=":
      return !isEqual(value, condition.value, condition);
    case "in":
      return condition.value.some((wanted, place) => isEqual(value, wanted, condition, place));
    case "not in":
      return !condition.value.some((wanted, place) => isEqual(value, wanted, condition, place));
    case "contains":
      return contains(value, condition.value, condition);
    case "icontains":
      return containsAnyCase(value, textOf(condition.value));
    case "startsWith":
      return typeof value === "string" && value.startsWith(textOf(condition.value));
    case "istartsWith":
      return typeof value === "string" && startsWithAnyCase(value, textOf(condition.value));
    case ">":
      return isOrdered(value, condition.value, (order) => order > 0);
    case ">=":
      return isOrdered(value, condition.value, (order) => order >= 0);
    case "<":
      return isOrdered(value, condition.value, (order) => order < 0);
    case "<=":
      return isOrdered(value, condition.value, (order) => order <= 0);
  }
}

/** The JSON of a condition's objects and arrays, by their place in it: they are compared with every record and element. */
const jsonTexts = new WeakMap<Condition, string[]>();

function jsonOf(condition: Condition, place: number, wanted: object): string {
  let texts = jsonTexts.get(condition);
  if (texts === undefined) {
    texts = [];
    jsonTexts.set(condition, texts);
  }
  texts[place] ??= JSON.stringify(wanted);
  return texts[place];
}

/** `place`: that of `wanted` among the values of the condition. */
function isEqual(value: JsonValue, wanted: JsonValue, condition: Condition, place = 0): boolean {
  if (typeof wanted !== "object" || wanted === null) return value === wanted;
  if (typeof value !== "object" || value === null) return false;
  return JSON.stringify(value) === jsonOf(condition, place, wanted);
}

function contains(value: JsonValue, wanted: JsonValue, condition: Condition): boolean {
  if (Array.isArray(value)) return value.some((element) => isEqual(element, wanted, condition));
  return typeof value === "string" && typeof wanted === "string" && includesText(value, wanted);
}

/** The operators about the beginning or the case of texts take only texts. */
const textOf = (wanted: JsonValue): string => String(wanted);

function containsAnyCase(value: JsonValue, wanted: string): boolean {
  const needle = lowerAscii(wanted);
  if (Array.isArray(value)) return value.some((one) => typeof one === "string" && lowerAscii(one) === needle);
  return typeof value === "string" && includesText(lowerAscii(value), needle);
}

const startsWithAnyCase = (value: string, wanted: string): boolean =>
  lowerAscii(value.slice(0, wanted.length)) === lowerAscii(wanted);

function isOrdered(value: JsonValue, wanted: JsonValue, accepts: (order: number) => boolean): boolean {
  if (typeof value === "string" && typeof wanted === "string") return accepts(compareText(value, wanted));
  if (typeof value === "number" && typeof wanted === "number") return accepts(value - wanted);
  if (typeof value === "boolean" && typeof wanted === "boolean") return accepts(Number(value) - Number(wanted));
  return false;
}

/** By code point, as SQLite orders UTF-8. JavaScript orders by UTF-16 unit, which differs beyond the basic plane. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left !== right) return codePointRank(left) - codePointRank(right);
  }
  return a.length - b.length;
}

/** Surrogates represent the highest code points, although their units are below U+E000. */
const codePointRank = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);
