import type { JsonObject, JsonValue } from "../json/json.ts";
import { includesText } from "../text/includes-text.ts";
import { type CommonCondition, matchesCommon, textOf } from "./filter-common.ts";
import { type GeoBox, type GeoCircle, isInArea } from "./geo.ts";
import { lowerAscii } from "./text-match.ts";
import { type ValuePath, valueAt } from "./value-path.ts";

/** A condition whose value has the type that its operator takes. */
export type MatchCondition =
  | CommonCondition
  | { readonly field: ValuePath; readonly operator: "icontains" | "istartsWith" | "has"; readonly value: JsonValue }
  | { readonly field: ValuePath; readonly operator: "within" | "inBox"; readonly value: GeoCircle | GeoBox }
  | { readonly field: ValuePath; readonly operator: "hasAny" | "hasAll"; readonly value: readonly JsonValue[] };

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
    case "within":
    case "inBox":
      return isInArea(value, condition.value);
    case "icontains":
      return containsAnyCase(value, textOf(condition.value));
    case "istartsWith":
      return typeof value === "string" && startsWithAnyCase(value, textOf(condition.value));
    case "has":
    case "hasAny":
    case "hasAll": {
      // There may be a thousand on both sides.
      const ids = new Set([value].flat());
      const wanted = [condition.value].flat();
      return wanted[condition.operator === "hasAny" ? "some" : "every"]((id) => ids.has(id));
    }
    default:
      return matchesCommon(condition, value);
  }
}

function containsAnyCase(value: JsonValue, wanted: string): boolean {
  const needle = lowerAscii(wanted);
  if (Array.isArray(value)) return value.some((one) => typeof one === "string" && lowerAscii(one) === needle);
  return typeof value === "string" && includesText(lowerAscii(value), needle);
}

const startsWithAnyCase = (value: string, wanted: string): boolean =>
  lowerAscii(value.slice(0, wanted.length)) === lowerAscii(wanted);
