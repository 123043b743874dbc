/** `text` with A–Z in lower case, as SQLite's `lower` answers it; other letters stay as they are. */
export const lowerAscii = (text: string): string =>
  /[A-Z]/.test(text) ? text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : text;

const HIGHEST_CODE_POINT = 0x10ffff;

/**
 * The first text, by code point, after all that begin with `prefix`. null: none, because the prefix is empty or has only
 * the highest code point.
 */
export function endOfPrefix(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  while (points.at(-1) === HIGHEST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return null;
  // Surrogates are not characters of a text.
  points.push(last === 0xd7ff ? 0xe000 : last + 1);
  return points.map((point) => String.fromCodePoint(point)).join("");
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
