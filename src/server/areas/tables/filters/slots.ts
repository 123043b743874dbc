import { unreachable } from "../../../../kernel/errors.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { endOfPrefix, lowerAscii } from "../../../../kernel/records/text-match.ts";
import type { SqlValue } from "../../../db/index.ts";
import { INT64_END } from "../limits.ts";
import type { TextOperator } from "../model/operators.ts";

/** Property of a value in a JSON field on which the SQL depends. */
export type ValueKind = "null" | "boolean" | "number" | "text" | "json";

/**
 * Placeholder for a value in a statement that serves all requests of one shape. It stands in for the value in a condition, and no
 * value of a request equals it. `length` is the number of characters of a text that is searched for.
 */
export class Slot {
  readonly place: number;
  readonly kind: ValueKind;
  readonly length: number;

  constructor(place: number, kind: ValueKind, length = 0) {
    this.place = place;
    this.kind = kind;
    this.length = length;
  }
}

/**
 * Values that the SQL of a text operator compares with. `range`: from the text to the end of those that begin with it, if there
 * is one.
 */
export interface Needle {
  by: "range" | "beginning" | "anywhere";
  values: SqlValue[];
}

/** Needle with slots in place of a condition's text. */
export class NeedleSlots implements Needle {
  readonly by: Needle["by"];
  readonly values: SqlValue[];
  readonly length: number;

  constructor(by: Needle["by"], values: SqlValue[], length: number) {
    this.by = by;
    this.values = values;
    this.length = length;
  }
}

/** Returns the needle of a condition with a text operator. */
export function needleOf(operator: TextOperator, value: unknown): Needle {
  if (value instanceof NeedleSlots) return value;
  const text = String(value);
  switch (operator) {
    case "icontains":
      return { by: "anywhere", values: [lowerAscii(text)] };
    case "istartsWith":
      // `substr` of an empty blob is NULL, so the empty text takes the range.
      if (text === "") return rangeOf(text);
      return { by: "beginning", values: [Buffer.byteLength(text), lowerAscii(text)] };
    case "startsWith":
      return rangeOf(text);
    default:
      return unreachable(operator);
  }
}

function rangeOf(text: string): Needle {
  const end = endOfPrefix(text);
  return { by: "range", values: end === null ? [text] : [text, end] };
}

export function kindOf(value: JsonValue): ValueKind {
  if ((value as unknown) instanceof Slot) return (value as unknown as Slot).kind;
  if (typeof value === "string") return "text";
  if (value === null) return "null";
  return typeof value === "object" ? "json" : (typeof value as "number" | "boolean");
}

/** Returns the number of characters that a condition's value searches for. */
export function lengthOf(value: unknown): number {
  if (value instanceof Slot || value instanceof NeedleSlots) return value.length;
  return typeof value === "string" ? value.length : 0;
}

/** Returns the JSON of an object or array. */
export const jsonText = (value: JsonValue): SqlValue =>
  (value as unknown) instanceof Slot ? (value as unknown as SqlValue) : JSON.stringify(value);

/**
 * Returns a number of a JSON field as SQLite parses it from the text: JavaScript writes 2 ** 60 as 1152921504606847000, which
 * SQLite reads as that integer, and not as the same double. Other values are returned unchanged.
 */
export function jsonNumber(value: SqlValue): SqlValue {
  if (typeof value !== "number" || Number.isSafeInteger(value) || Math.abs(value) >= 1e19) return value;
  if (!Number.isInteger(value)) return value;
  const written = BigInt(String(value));
  return -INT64_END <= written && written < INT64_END ? written : value;
}
