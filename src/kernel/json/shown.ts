import { SHOWN_DEPTH_MAX, SHOWN_NAME_LENGTH_MAX, SHOWN_NAMES_MAX } from "../limits.ts";

/** Members whose names contain one of these are secrets, whatever their values are. */
const SECRET_NAME = /pass(?:word|wd|phrase)|secret|token|api_?key|private_?key|credential|authorization/i;
const HIDDEN = "[hidden]";
const CUT = "…";
/** UTF-8 has at most three bytes per UTF-16 unit, and a JSON escape has six characters. */
const BYTES_PER_UNIT = 3;
const UNITS_PER_ESCAPE = 6;

/** Cache of `isSecretName`: names repeat, above all those of columns. */
const known = new Map<string, boolean>();

/** Reports whether the value of a member with this name is never shown. */
export function isSecretName(name: string): boolean {
  const before = known.get(name);
  if (before !== undefined) return before;
  const isSecret = SECRET_NAME.test(name);
  // A client may choose names as long as a record.
  if (name.length > SHOWN_NAME_LENGTH_MAX) return isSecret;
  if (known.size >= SHOWN_NAMES_MAX) known.clear();
  known.set(name, isSecret);
  return isSecret;
}

/** Wraps a value that is JSON text already. */
export class SerialisedJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Serialises a value as JSON for inspection, without secrets and in at most `bytesMax` bytes; later parts are cut first. The cost
 * is bounded too, however large the value is. null for undefined and null.
 */
export function shownJson(value: unknown, bytesMax: number): string | null {
  if (value === undefined || value === null) return null;
  if (value instanceof SerialisedJson) return shownText(value.text, bytesMax);
  // Once: listing the names of a large object takes as long as serialising it.
  const names = typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : null;
  if (names !== null && isPlain(value, names, bytesMax)) return JSON.stringify(value);
  for (let charactersMax = bytesMax; ; charactersMax = Math.floor(charactersMax / 2)) {
    const text = JSON.stringify(shown(value, { left: charactersMax }, 0, names));
    if (text.length * BYTES_PER_UNIT <= bytesMax || Buffer.byteLength(text) <= bytesMax) return text;
  }
}

/** Shows JSON text. Long texts are not parsed: their beginning is shown as a string. */
function shownText(text: string, bytesMax: number): string | null {
  if (text.length * BYTES_PER_UNIT <= bytesMax && !SECRET_NAME.test(text)) return text === "null" ? null : text;
  if (text.length <= bytesMax) return shownJson(JSON.parse(text), bytesMax);
  const start = text.slice(0, Math.floor(bytesMax / (UNITS_PER_ESCAPE * BYTES_PER_UNIT)));
  return JSON.stringify(SECRET_NAME.test(start) ? HIDDEN : `${start}${CUT}`);
}

/** Reports whether the value is an object of short values without a secret, as most records are; it is not copied then. */
function isPlain(value: object, names: readonly string[], bytesMax: number): boolean {
  let units = 2;
  for (const name of names) {
    const member: unknown = (value as Record<string, unknown>)[name];
    units += name.length + 30 + (typeof member === "string" ? member.length : 0);
    if (units * UNITS_PER_ESCAPE > bytesMax) return false;
    if (isSecretName(name) || typeof member === "bigint" || (typeof member === "object" && member !== null))
      return false;
  }
  return true;
}

/** Copies a value within the budget of characters, without secrets. `names`: the names of its members, where they are known. */
function shown(
  value: unknown,
  budget: { left: number },
  depth: number,
  names: readonly string[] | null = null,
): unknown {
  if (typeof value === "string") {
    const isWhole = value.length <= budget.left;
    const text = isWhole ? value : `${value.slice(0, Math.max(0, budget.left))}${CUT}`;
    budget.left -= value.length;
    return text;
  }
  budget.left -= 8;
  // JSON has no bigint.
  if (typeof value === "bigint") return shown(String(value), budget, depth);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= SHOWN_DEPTH_MAX) return CUT;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const item of value) {
      if (budget.left <= 0) {
        items.push(CUT);
        break;
      }
      items.push(shown(item, budget, depth + 1));
    }
    return items;
  }
  // Without a prototype, as a member may be named `__proto__`.
  const members: Record<string, unknown> = Object.create(null);
  for (const name of names ?? Object.keys(value)) {
    const member: unknown = (value as Record<string, unknown>)[name];
    budget.left -= name.length;
    // Checked before the name is looked at, which may be as long as the record.
    if (budget.left <= 0) {
      members[CUT] = CUT;
      break;
    }
    members[name] = isSecretName(name) && member !== null ? HIDDEN : shown(member, budget, depth + 1);
  }
  return members;
}
