export type JsonPrimitive = string | number | boolean | null;
export type JsonValue = JsonPrimitive | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member by a name that may be anybody's: what every object inherits (`toString`, `constructor`) is no member. */
export const ownValue = <T>(object: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** Nesting that a JSON value may have: deeper ones are an attack on recursive code, not data. */
export const JSON_DEPTH_MAX = 64;

/** Whether `value` nests no deeper than `depthMax`; itself written without recursion over the attacker's depth. */
export function isWithinDepth(value: unknown, depthMax: number = JSON_DEPTH_MAX): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depthMax === 0) return false;
  const children: unknown[] = Array.isArray(value) ? value : Object.values(value);
  for (const child of children) if (!isWithinDepth(child, depthMax - 1)) return false;
  return true;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const [OPENING_BRACKET, CLOSING_BRACKET] = [0x5b, 0x5d];
const [OPENING_BRACE, CLOSING_BRACE] = [0x7b, 0x7d];

/**
 * The same of JSON text, before it is parsed: millions of brackets cost the parser a second and a lot of memory. Text that is
 * no JSON may pass: the parser says so.
 */
export function isTextWithinDepth(text: string, depthMax: number = JSON_DEPTH_MAX): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if ((unit === OPENING_BRACKET || unit === OPENING_BRACE) && ++depth > depthMax) return false;
    else if (unit === CLOSING_BRACKET || unit === CLOSING_BRACE) depth--;
  }
  return true;
}

/** Where the string that begins at `start` ends; the text's end, when it does not. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}
