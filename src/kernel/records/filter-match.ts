import type { JsonObject, JsonValue } from "../json/json.ts";
import { includesText } from "../text/includes-text.ts";
import { compareText, lowerAscii } from "./text-match.ts";
import { type ValuePath, valueAt } from "./value-path.ts";

type SingleOperator = "==" | "!=" | ">" | ">=" | "<" | "<=" | "contains" | "icontains" | "startsWith" | "istartsWith";

/** A condition whose value has the type that its operator takes. */
export type MatchCondition =
  | { readonly field: ValuePath; readonly operator: SingleOperator; readonly value: JsonValue }
  | { readonly field: ValuePath; readonly operator: "in" | "not in"; readonly value: readonly JsonValue[] };

/** All of `all` must match, and one of `any` unless it is empty. */
export interface MatchFilter {
  readonly all: readonly MatchCondition[];
  readonly any: readonly MatchCondition[];
}

/**
 * A filter as a function of a record: for rules, realtime and the client's live queries. It agrees with the SQL of lists.
 * [TB17]
 */
export function matches(filter: MatchFilter, record: JsonObject): boolean {
  for (const condition of filter.all) if (!matchesCondition(condition, record)) return false;
  return filter.any.length === 0 || filter.any.some((condition) => matchesCondition(condition, record));
}

function matchesCondition(condition: MatchCondition, record: JsonObject): boolean {
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
const jsonTexts = new WeakMap<MatchCondition, string[]>();

function jsonOf(condition: MatchCondition, place: number, wanted: object): string {
  let texts = jsonTexts.get(condition);
  if (texts === undefined) {
    texts = [];
    jsonTexts.set(condition, texts);
  }
  texts[place] ??= JSON.stringify(wanted);
  return texts[place];
}

/** `place`: that of `wanted` among the values of the condition. */
function isEqual(value: JsonValue, wanted: JsonValue, condition: MatchCondition, place = 0): boolean {
  if (typeof wanted !== "object" || wanted === null) return value === wanted;
  if (typeof value !== "object" || value === null) return false;
  return JSON.stringify(value) === jsonOf(condition, place, wanted);
}

function contains(value: JsonValue, wanted: JsonValue, condition: MatchCondition): boolean {
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
