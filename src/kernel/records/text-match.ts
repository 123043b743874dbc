/** Bun's `Buffer`; browsers have none. */
interface Buffers {
  from(text: string, encoding: "utf16le"): Uint8Array<ArrayBuffer> & { toString(encoding: "utf16le"): string };
}
const buffers = (globalThis as { Buffer?: Buffers }).Buffer;

/** Returns `text` with A–Z in lower case, as SQLite's `lower` does; other letters stay as they are. */
export const lowerAscii = (text: string): string =>
  (buffers && text.length >= LONG_LENGTH && lowerLong(buffers, text)) ||
  text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** Length in characters from which a text is converted unit by unit: it may have as many runs of capital letters as characters. */
const LONG_LENGTH = 1_024;
const A = 0x41;
const Z = 0x5a;
const TO_LOWER = 0x20;

/** Cache of the last long text: the conditions of a filter look at the same value one after the other. */
let latest = "";
let latestInLower = "";

function lowerLong({ from }: Buffers, text: string): string {
  if (!/[A-Z]/.test(text)) return text;
  if (latest === text) return latestInLower;
  const bytes = from(text, "utf16le");
  const units = new Uint16Array(bytes.buffer, bytes.byteOffset, text.length);
  // An iterator takes ten times as long as an index.
  for (let index = 0; index < units.length; index++) {
    const unit = units[index] ?? 0;
    if (unit >= A && unit <= Z) units[index] = unit + TO_LOWER;
  }
  latest = text;
  latestInLower = bytes.toString("utf16le");
  return latestInLower;
}

const HIGHEST_CODE_POINT = 0x10ffff;

/**
 * Returns the first text, by code point, after all that begin with `prefix`. null when there is none, because the prefix is empty
 * or has only the highest code point.
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

/** Compares texts by code point, as SQLite orders UTF-8. JavaScript orders by UTF-16 unit, which differs beyond the basic plane. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left !== right) return codePointRank(left) - codePointRank(right);
  }
  return a.length - b.length;
}

/** Ranks a unit by code point: surrogates represent the highest code points, although their units are below U+E000. */
const codePointRank = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);
