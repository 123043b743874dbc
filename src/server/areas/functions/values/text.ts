import { badField } from "../../../../kernel/errors.ts";
import { isTextWithinDepth, type JsonValue } from "../../../../kernel/json/json.ts";
import { isHeld, jsonTextFault } from "../../../../kernel/json/text.ts";
import { DOUBLE_DIGITS_MAX } from "../../../../kernel/limits.ts";
import { JSON_TEXT_MAX_CHARACTERS } from "../limits.ts";

/** The original JSON texts of form fields, by the arrays and objects that handlers receive for them. */
const sources = new WeakMap<object, string>();

/** Marks a parsed value with its text, which replaces it where a schema requires a text. */
export function parsedFrom<Parsed extends object>(text: string, value: Parsed): Parsed {
  sources.set(value, text);
  return value;
}

/** Whether the value was parsed from the text of a form's field. */
export const isParsed = (value: unknown): boolean => typeof value === "object" && value !== null && sources.has(value);

/** Bodies whose values are texts. */
const forms = new WeakSet<object>();

export function ofForm<Body extends object>(body: Body): Body {
  forms.add(body);
  return body;
}

export const isOfForm = (body: unknown): boolean => typeof body === "object" && body !== null && forms.has(body);

/** Returns the text of a value; null: it has none. */
export function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null ? (sources.get(value) ?? null) : null;
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Returns the number that a text represents; null: none, or one that a double cannot hold. */
export function numberOf(text: string): number | null {
  if (text.length > 2 * DOUBLE_DIGITS_MAX || text.trim() === "") return null;
  const value = Number(text);
  if (!Number.isFinite(value)) return null;
  const digits = text.startsWith("-") ? text.slice(1) : text;
  return /^\d{16,}$/.test(digits) && !isHeld(digits.replace(/^0+(?=\d)/, "")) ? null : value;
}

/** Whether a text begins like an array or object. */
export const isJsonLike = (text: string): boolean => /^\s*[[{]/.test(text);

/** Parses the array or object in a text, within the bounds of every JSON; undefined: none. */
export function jsonOf(text: string): JsonValue | undefined {
  if (text.length > JSON_TEXT_MAX_CHARACTERS || !isJsonLike(text) || !isTextWithinDepth(text)) return undefined;
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return jsonTextFault(text, value) === null && prototypeIn(text, value) === null ? value : undefined;
}

/**
 * Finds a member of a parsed text that would become an object's prototype when the object is copied: returns its path with dots;
 * null: there is none.
 */
export function prototypeIn(text: string, value: unknown): string | null {
  // An escape may be part of the name.
  return text.includes("__proto__") || text.includes("\\u") ? prototypeWithin(value) : null;
}

export function prototypeWithin(value: unknown): string | null {
  if (typeof value !== "object" || value === null) return null;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const inner = prototypeWithin(value[index]);
      if (inner !== null) return `${index}.${inner}`;
    }
    return null;
  }
  if (Object.hasOwn(value, "__proto__")) return "__proto__";
  for (const name in value) {
    const inner = prototypeWithin((value as Record<string, unknown>)[name]);
    if (inner !== null) return `${name}.${inner}`;
  }
  return null;
}

/** Refuses such a member by its path, see `prototypeIn`. Errors: 400 that names the field. */
export function refusePrototype(found: string | null): void {
  if (found !== null) throw badField(found, "unknown_field", `${found} is not a member that is known here`);
}
