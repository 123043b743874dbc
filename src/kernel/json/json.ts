import { JSON_DEPTH_MAX } from "../limits.ts";
export type JsonPrimitive = string | number | boolean | null;
export type JsonValue = JsonPrimitive | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/** Returns the object that a text is as JSON; null: it is anything else. */
export function jsonObjectOf(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a member of an object by a name that a client chose; inherited members (`toString`, `constructor`) do not count. */
export const ownValue = <T>(object: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** A reason to refuse a value, and its place in it: names and indexes joined by dots, "" for the whole value. */
export interface JsonFault {
  path: string;
  message: string;
}

/**
 * Finds what JSON text can express but the server cannot store unchanged: numbers beyond the range of a double, unpaired
 * surrogates, and nesting deeper than `depthMax`. null: none of these. Sets `seen.isUnsafe` for a number beyond 2^53.
 */
export function jsonFault(
  value: unknown,
  depthMax: number = JSON_DEPTH_MAX,
  seen: { isUnsafe: boolean } | null = null,
): JsonFault | null {
  if (typeof value === "string") return value.isWellFormed() ? null : ILL_FORMED;
  if (typeof value === "number") {
    if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return null;
    if (seen !== null) seen.isUnsafe = true;
    return Number.isFinite(value) ? null : TOO_LARGE;
  }
  if (typeof value !== "object" || value === null) return null;
  if (depthMax === 0) return TOO_DEEP;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const fault = jsonFault(value[index], depthMax - 1, seen);
      if (fault !== null) return within(String(index), fault);
    }
    return null;
  }
  for (const name of Object.keys(value)) {
    if (!name.isWellFormed()) return ILL_FORMED;
    const fault = jsonFault((value as JsonObject)[name], depthMax - 1, seen);
    if (fault !== null) return within(name, fault);
  }
  return null;
}

/** Formats the fault as a sentence; `whole` names the value, such as "The body". */
export const describeFault = (whole: string, { path, message }: JsonFault): string =>
  `${path === "" ? whole : path} ${message}`;

const TOO_DEEP: JsonFault = { path: "", message: `nests deeper than ${JSON_DEPTH_MAX} levels` };
const TOO_LARGE: JsonFault = { path: "", message: "is a number beyond what a double can hold" };
const ILL_FORMED: JsonFault = { path: "", message: "holds half of a surrogate pair, which is no character" };

/** Prefixes the path of a fault with `name`. A fault of nesting gets no path: nobody reads one that deep. */
const within = (name: string, fault: JsonFault): JsonFault =>
  fault === TOO_DEEP ? fault : { path: fault.path === "" ? name : `${name}.${fault.path}`, message: fault.message };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const [OPENING_BRACKET, CLOSING_BRACKET] = [0x5b, 0x5d];
const [OPENING_BRACE, CLOSING_BRACE] = [0x7b, 0x7d];

/**
 * Reports whether JSON text nests at most `depthMax` levels, before it is parsed: millions of brackets cost the parser a second and
 * much memory. Invalid JSON may pass; the parser refuses it.
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

/** Returns the end of the string that begins at `start`, or the end of the text if the string is not closed. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}
