import type { JsonValue } from "../json/json.ts";
import { includesText } from "../text/includes-text.ts";
import { compareValues, orderValue } from "./order.ts";
import type { ValuePath } from "./value-path.ts";

// The conditions of which most filters consist. `filter-match.ts` has the others, which the client loads only for queries with them.

type CommonOperator = "==" | "!=" | ">" | ">=" | "<" | "<=" | "contains" | "startsWith";

/** A condition whose value has the type that its operator takes. */
export type CommonCondition =
  | { readonly field: ValuePath; readonly operator: CommonOperator; readonly value: JsonValue }
  | { readonly field: ValuePath; readonly operator: "in" | "not in"; readonly value: readonly JsonValue[] };

/** Evaluates a condition on the value of its field. */
export function matchesCommon(condition: CommonCondition, value: JsonValue): boolean {
  switch (condition.operator) {
    case "==":
      return isWanted(value, [condition.value], condition);
    case "!=":
      return !isWanted(value, [condition.value], condition);
    case "in":
      return isWanted(value, condition.value, condition);
    case "not in":
      return !isWanted(value, condition.value, condition);
    case "contains":
      return contains(value, condition.value, condition);
    case "startsWith":
      return typeof value === "string" && value.startsWith(textOf(condition.value));
    case ">":
      return orderOf(value, condition.value) > 0;
    case ">=":
      return orderOf(value, condition.value) >= 0;
    case "<":
      return orderOf(value, condition.value) < 0;
    case "<=":
      return orderOf(value, condition.value) <= 0;
  }
}

/** Cached JSON of a condition's values: objects and arrays are compared with every record and element. */
const jsonTexts = new WeakMap<CommonCondition, string[]>();

/** Reports whether `value` equals one of `wanted`, the values of the condition. */
function isWanted(value: JsonValue, wanted: readonly JsonValue[], condition: CommonCondition): boolean {
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

function contains(value: JsonValue, wanted: JsonValue, condition: CommonCondition): boolean {
  if (Array.isArray(value)) return value.some((element) => isWanted(element, [wanted], condition));
  return typeof value === "string" && typeof wanted === "string" && includesText(value, wanted);
}

/** Returns the operand as text: the operators on the beginning or case of texts take only texts. */
export const textOf = (wanted: JsonValue): string => String(wanted);

/** Returns the order of two values of one type; NaN, which no comparison accepts, for others. */
const orderOf = (value: JsonValue, wanted: JsonValue): number =>
  typeof value === typeof wanted && typeof value !== "object"
    ? compareValues(orderValue(value), orderValue(wanted))
    : Number.NaN;
