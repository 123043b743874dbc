import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import type { Random } from "./random.ts";

/** Values known to break programs: bounds, wrong types, JavaScript's own names, text with a special meaning elsewhere. */
export const ODD_TEXTS: readonly string[] = [
  "",
  " ",
  "\0",
  "a\0b",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "../../etc/passwd",
  "'; DROP TABLE notes; --",
  '"',
  "\\",
  "%",
  "_",
  "*",
  "{{7*7}}",
  "\ud83d\ude00",
  "\u202egnp",
  "ﬀ",
  "e\u0301",
  "\r\nX: y",
  "NaN",
  "null",
  "true",
  "-0",
  "1e999",
  "9223372036854775808",
  "a".repeat(5_000),
  "ä".repeat(300),
];
const ODD_NUMBERS = [0, -0, -1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308, 5e-324, 1e21];

export function oddValue(r: Random): JsonValue {
  const kind = r.below(8);
  if (kind <= 2) return r.pick(ODD_TEXTS);
  if (kind === 3) return r.pick(ODD_NUMBERS);
  if (kind === 4) return r.pick([null, true, false]);
  if (kind === 5) return Array.from({ length: r.below(4) }, () => r.pick(ODD_TEXTS));
  if (kind === 6) return Object.fromEntries([[r.pick(ODD_TEXTS), r.pick(ODD_NUMBERS)]]);
  return nested(r.pick([3, 50, 70, 3_000]), r.chance(0.5));
}

function nested(depth: number, isArray: boolean): JsonValue {
  let value: JsonValue = 1;
  for (let level = 0; level < depth; level++) value = isArray ? [value] : { a: value };
  return value;
}

/** Returns the message with one to three mutations: a member replaced, removed, added or renamed, at any depth. */
export function mutated(r: Random, message: JsonObject): JsonObject {
  let changed: JsonObject = message;
  for (let times = 1 + r.below(3); times > 0; times--) changed = mutatedOnce(r, changed);
  return changed;
}

function mutatedOnce(r: Random, message: JsonObject): JsonObject {
  const names = Object.keys(message);
  const name = names.length === 0 ? "type" : r.pick(names);
  const value = message[name] ?? null;
  const isInside = typeof value === "object" && value !== null && !Array.isArray(value) && r.chance(0.5);
  if (isInside) return { ...message, [name]: mutatedOnce(r, value) };
  const { [name]: _gone, ...others } = message;
  switch (r.below(5)) {
    case 0:
      return others;
    case 1:
      return withMember(message, r.pick(ODD_TEXTS), oddValue(r));
    case 2:
      return withMember(others, r.pick(ODD_TEXTS), value);
    default:
      return { ...message, [name]: oddValue(r) };
  }
}

/** Sets a member, even `__proto__`: JSON may contain it, and the receiver must handle it. */
const withMember = (message: JsonObject, name: string, value: JsonValue): JsonObject =>
  Object.defineProperty({ ...message }, name, { value, enumerable: true, configurable: true, writable: true });

/** Returns the bytes of a text with one defect: cut off, doubled, a byte that is not UTF-8, a byte changed. */
export function brokenBytes(r: Random, text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const at = r.below(bytes.byteLength + 1);
  const odd = Buffer.from(r.pick([[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf8, 0x88], [0x00], [0x7b], [0x22]]));
  switch (r.below(4)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([bytes, bytes]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), odd, bytes.subarray(at)]);
    default:
      return bytes.map((byte, index) => (index === at ? byte ^ (1 << r.below(8)) : byte));
  }
}
