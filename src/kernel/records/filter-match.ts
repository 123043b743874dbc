import type { JsonObject, JsonValue } from "../json/json.ts";
import { includesText } from "../text/includes-text.ts";
import { type GeoBox, type GeoCircle, isInArea } from "./geo.ts";
import { compareText, lowerAscii } from "./text-match.ts";
import { type ValuePath, valueAt } from "./value-path.ts";

type SingleOperator =
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
  | "has";

/** A condition whose value has the type that its operator takes. */
export type MatchCondition =
  | { readonly field: ValuePath; readonly operator: SingleOperator; readonly value: JsonValue }
  | { readonly field: ValuePath; readonly operator: "within" | "inBox"; readonly value: GeoCircle | GeoBox }
  | {
      readonly field: ValuePath;
      readonly operator: "in" | "not in" | "hasAny" | "hasAll";
      readonly value: readonly JsonValue[];
    };

/** `or`: one of the filters must match; `and`: all; `not`: none of them, of which there is one. */
export interface MatchGroup {
  readonly kind: "or" | "and" | "not";
  readonly filters: readonly MatchFilter[];
}

/** All of `all` and of `groups` must match. */
export interface MatchFilter {
  readonly all: readonly MatchCondition[];
  readonly groups: readonly MatchGroup[];
}

/** Evaluates a filter on a record, for rules, realtime and the client's live queries. Agrees with the SQL of lists. [TB17] */
export function matches(filter: MatchFilter, record: JsonObject): boolean {
  for (const condition of filter.all) if (!matchesCondition(condition, record)) return false;
  return filter.groups.every(({ kind, filters }) => {
    const isMatch = (one: MatchFilter) => matches(one, record);
    return kind === "and" ? filters.every(isMatch) : filters.some(isMatch) === (kind === "or");
  });
}

function matchesCondition(condition: MatchCondition, record: JsonObject): boolean {
  const value = valueAt(record, condition.field) ?? null;
  switch (condition.operator) {
    case "==":
      return isWanted(value, [condition.value], condition);
    case "!=":
      return !isWanted(value, [condition.value], condition);
    case "in":
      return isWanted(value, condition.value, condition);
    case "not in":
      return !isWanted(value, condition.value, condition);
    case "within":
    case "inBox":
      return isInArea(value, condition.value);
    case "contains":
      return contains(value, condition.value, condition);
    case "icontains":
      return containsAnyCase(value, textOf(condition.value));
    case "startsWith":
      return typeof value === "string" && value.startsWith(textOf(condition.value));
    case "istartsWith":
      return typeof value === "string" && startsWithAnyCase(value, textOf(condition.value));
    case ">":
      return orderOf(value, condition.value) > 0;
    case ">=":
      return orderOf(value, condition.value) >= 0;
    case "<":
      return orderOf(value, condition.value) < 0;
    case "<=":
      return orderOf(value, condition.value) <= 0;
    case "has":
    case "hasAny":
    case "hasAll": {
      // There may be a thousand on both sides.
      const ids = new Set([value].flat());
      const wanted = [condition.value].flat();
      const isThere = (id: JsonValue) => ids.has(id);
      return condition.operator === "hasAny" ? wanted.some(isThere) : wanted.every(isThere);
    }
  }
}

/** Cached JSON of a condition's values: objects and arrays are compared with every record and element. */
const jsonTexts = new WeakMap<MatchCondition, string[]>();

/** Reports whether `value` equals one of `wanted`, the values of the condition. */
function isWanted(value: JsonValue, wanted: readonly JsonValue[], condition: MatchCondition): boolean {
  if (typeof value !== "object" || value === null) return wanted.includes(value);
  let texts = jsonTexts.get(condition);
  if (texts === undefined) {
    // The template converts undefined to text too, which plain JavaScript may pass.
    texts = wanted.map((one) => `${JSON.stringify(one)}`);
    jsonTexts.set(condition, texts);
  }
  // A stored value may be a megabyte, compared with a few characters a thousand times over. Browsers have no `Buffer`: there a long
  // value delays only the page that compares it.
  if ((globalThis as { Buffer?: object }).Buffer && isLongerThanAll(value, texts)) return false;
  return texts.includes(JSON.stringify(value));
}

function isLongerThanAll(value: JsonValue, texts: readonly string[]): boolean {
  const longest = texts.reduce((most, { length }) => Math.max(most, length), 0);
  return roomLeft(value, longest) < 0;
}

/** Returns at least as many of `characters` as the JSON of `value` leaves; negative as soon as it is longer. */
function roomLeft(value: JsonValue | undefined, characters: number): number {
  if (typeof value === "string") return characters - value.length - 2;
  if (typeof value !== "object" || value === null) return characters - 1;
  let left = characters - 2;
  if (Array.isArray(value)) {
    for (const element of value) {
      left = roomLeft(element, left);
      if (left < 0) break;
    }
    return left;
  }
  for (const name in value) {
    // Undefined members, which the server's own code may pass, are not in the JSON.
    if (value[name] !== undefined) left = roomLeft(value[name], left - name.length - 3);
    if (left < 0) break;
  }
  return left;
}

function contains(value: JsonValue, wanted: JsonValue, condition: MatchCondition): boolean {
  if (Array.isArray(value)) return value.some((element) => isWanted(element, [wanted], condition));
  return typeof value === "string" && typeof wanted === "string" && includesText(value, wanted);
}

/** Returns the operand as text: the operators on the beginning or case of texts take only texts. */
const textOf = (wanted: JsonValue): string => String(wanted);

function containsAnyCase(value: JsonValue, wanted: string): boolean {
  const needle = lowerAscii(wanted);
  if (Array.isArray(value)) return value.some((one) => typeof one === "string" && lowerAscii(one) === needle);
  return typeof value === "string" && includesText(lowerAscii(value), needle);
}

const startsWithAnyCase = (value: string, wanted: string): boolean =>
  lowerAscii(value.slice(0, wanted.length)) === lowerAscii(wanted);

/** Returns the order of two values of one type; NaN, which no comparison accepts, for others. */
function orderOf(value: JsonValue, wanted: JsonValue): number {
  if (typeof value === "string" && typeof wanted === "string") return compareText(value, wanted);
  const isComparable = typeof value === typeof wanted && (typeof value === "number" || typeof value === "boolean");
  return isComparable ? Number(value) - Number(wanted) : Number.NaN;
}
