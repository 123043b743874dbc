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

/** Why a value is not taken, and where in it: names and indexes joined by dots, "" for the whole. */
export interface JsonFault {
  path: string;
  message: string;
}

/**
 * What JSON text can say and no value here can be, so that it would come back as something else: numbers beyond a double,
 * halves of surrogate pairs; and what nests deeper than `depthMax`. null: nothing of the kind. `seen` is told of numbers beyond 2^53.
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

/** As a sentence about `whole`, which the value is. */
export const describeFault = (whole: string, { path, message }: JsonFault): string =>
  `${path === "" ? whole : path} ${message}`;

const TOO_DEEP: JsonFault = { path: "", message: `nests deeper than ${JSON_DEPTH_MAX} levels` };
const TOO_LARGE: JsonFault = { path: "", message: "is a number beyond what a double can hold" };
const ILL_FORMED: JsonFault = { path: "", message: "holds half of a surrogate pair, which is no character" };

/** Where it gets too deep nobody wants to read. */
const within = (name: string, fault: JsonFault): JsonFault =>
  fault === TOO_DEEP ? fault : { path: fault.path === "" ? name : `${name}.${fault.path}`, message: fault.message };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const [OPENING_BRACKET, CLOSING_BRACKET] = [0x5b, 0x5d];
const [OPENING_BRACE, CLOSING_BRACE] = [0x7b, 0x7d];

/**
 * Whether JSON text nests no deeper, before it is parsed: millions of brackets cost the parser a second and a lot of memory. Text that is
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
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}
