import { endOfString, JSON_DEPTH_MAX, type JsonFault, jsonFault } from "./json.ts";

/** As `jsonFault`, of the value that this text says; an integer that a double does not hold exactly is a fault too. */
export function jsonTextFault(text: string, value: unknown): JsonFault | null {
  const seen = { isUnsafe: false };
  const fault = jsonFault(value, JSON_DEPTH_MAX, seen);
  // Only beyond 2^53 the value may differ from the text; hardly any text comes here.
  return fault === null && seen.isUnsafe ? inexactInteger(text) : fault;
}

/** Where an integer of that size may begin; those with a fraction or an exponent are a double's own notation. */
const LONG_INTEGER = /(?<=^|[\s,:[-])\d{16,}(?![\d.eE])/g;
/** Digits of the longest integer that stays below a double's largest value, whatever they are. */
const DOUBLE_DIGITS_MAX = 308;
const INEXACT = "is an integer that a double cannot hold exactly";

/** The first such integer in a valid JSON text. */
function inexactInteger(text: string): JsonFault | null {
  // Everything before `outside` has been looked at, and it is in no string; `quote` begins the next one.
  let outside = 0;
  let quote = text.indexOf('"');
  for (const { 0: literal, index } of text.matchAll(LONG_INTEGER)) {
    while (quote >= 0 && quote < index) {
      outside = endOfString(text, quote) + 1;
      quote = text.indexOf('"', outside);
    }
    // A name that occurs twice keeps its last value only, so that a longer one may be in a text whose value is finite.
    if (outside > index || isHeld(literal)) continue;
    return { path: pathAt(text, index), message: INEXACT };
  }
  return null;
}

/**
 * Whether a double holds this integer without a sign: exactly, or so that it comes back as it was written, as the double's own
 * notation does (2 ** 60 is 1152921504606847000 to JavaScript). What the server answers can be sent back.
 */
export function isHeld(digits: string): boolean {
  if (digits.length > DOUBLE_DIGITS_MAX) return false;
  const value = Number(digits);
  return String(value) === digits || BigInt(value) === BigInt(digits);
}

/** Where one is in an object or array: the index, or where the name begins. */
type Place = { kind: "array"; index: number } | { kind: "object"; nameAt: number };

/** The names and indexes that lead to what begins at `end` in a valid JSON text, joined by dots. */
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
