import { DOUBLE_DIGITS_MAX, JSON_DEPTH_MAX } from "../limits.ts";
import { endOfString, type JsonFault, jsonFault } from "./json.ts";

/**
 * Finds the faults of `jsonFault` in the parsed value of this text. An integer that a double cannot represent is a fault too.
 * [HT100]
 */
export function jsonTextFault(text: string, value: unknown): JsonFault | null {
  const seen = { isUnsafe: false };
  const fault = jsonFault(value, JSON_DEPTH_MAX, seen);
  // Only beyond 2^53 can the value differ from the text; few texts get here.
  return fault === null && seen.isUnsafe ? inexactInteger(text) : fault;
}

/** Matches the start of an integer that may exceed 2^53. A fraction or exponent is the notation of a double. */
const LONG_INTEGER = /(?<=^|[\s,:[-])\d{16,}(?![\d.eE])/g;
const INEXACT = "is an integer that a double cannot hold exactly";

/** Finds the first inexact integer in a valid JSON text. */
function inexactInteger(text: string): JsonFault | null {
  // Everything before `outside` has been checked; `outside` is in no string, and `quote` begins the next one.
  let outside = 0;
  let quote = text.indexOf('"');
  for (const { 0: literal, index } of text.matchAll(LONG_INTEGER)) {
    while (quote >= 0 && quote < index) {
      outside = endOfString(text, quote) + 1;
      quote = text.indexOf('"', outside);
    }
    // An overlong integer can get here although the value is finite: only the last value of a repeated name is kept.
    if (outside > index || isHeld(literal)) continue;
    return { path: pathAt(text, index), message: INEXACT };
  }
  return null;
}

/**
 * Reports whether a double represents this unsigned integer: exactly, or so that it is printed the same way (JavaScript prints 2 **
 * 60 as 1152921504606847000). A client can send back every number that the server answers.
 */
export function isHeld(digits: string): boolean {
  if (digits.length > DOUBLE_DIGITS_MAX) return false;
  const value = Number(digits);
  return String(value) === digits || BigInt(value) === BigInt(digits);
}

/** A position in an object or array: the index, or the start of the name. */
type Place = { kind: "array"; index: number } | { kind: "object"; nameAt: number };

/** Returns the path, names and indexes joined by dots, of the value that begins at `end` in a valid JSON text. */
function pathAt(text: string, end: number): string {
  const path: Place[] = [];
  let stringAt = 0;
  for (let at = 0; at < end; at++) {
    const place = path.at(-1);
    const character = text[at];
    if (character === '"') {
      stringAt = at;
      at = endOfString(text, at);
    } else if (character === ":" && place?.kind === "object") place.nameAt = stringAt;
    else if (character === "," && place?.kind === "array") place.index++;
    else if (character === "[") path.push({ kind: "array", index: 0 });
    else if (character === "{") path.push({ kind: "object", nameAt: 0 });
    else if (character === "]" || character === "}") path.pop();
  }
  const nameOf = (nameAt: number): string => JSON.parse(text.slice(nameAt, endOfString(text, nameAt) + 1));
  return path.map((place) => (place.kind === "array" ? place.index : nameOf(place.nameAt))).join(".");
}
