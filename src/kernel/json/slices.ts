import { JSON_DEPTH_MAX, MEMBERS_MAX } from "../limits.ts";
import { endOfString, type JsonFault, type JsonObject, type JsonValue, jsonFault } from "./json.ts";
import { jsonTextFault } from "./text.ts";

/** Characters of JSON text that are parsed in one slice, and that are scanned between two steps. */
const SLICE_LENGTH = 32 * 1024;

const [QUOTE, COMMA] = [0x22, 0x2c];
const [OPENING_BRACKET, CLOSING_BRACKET] = [0x5b, 0x5d];
const [OPENING_BRACE, CLOSING_BRACE] = [0x7b, 0x7d];
const BLANK = /^[ \t\n\r]*$/;

const TOO_MANY = `has more than ${MEMBERS_MAX} members`;

/** Thrown for text that is not JSON, where `fault` is null, or that holds a value that is not accepted. */
export class JsonRefused extends Error {
  readonly fault: JsonFault | null;

  constructor(fault: JsonFault | null) {
    super(fault?.message ?? "not JSON");
    this.fault = fault;
  }
}

/** An array or object whose closing bracket has not been reached. */
interface Open {
  isArray: boolean;
  /** Index after its opening bracket. */
  start: number;
  /** Index where the current member begins: after the last comma. */
  memberStart: number;
  /** Index where the text begins that has not been parsed yet. */
  from: number;
  /** null: all of it so far may be parsed at once, together with its parent. */
  value: JsonValue[] | JsonObject | null;
  /** Key of the value in its parent; set once `value` exists. */
  name: string;
  /** Whether the last item in `value` is a member with a value of its own and no comma has followed. */
  isBehindMember: boolean;
  /** Members of an object that have been parsed so far. */
  memberCount: number;
}

/**
 * Parses an array or object as `JSON.parse` does, in slices: each step takes a moment, however long the text is and whatever it
 * holds. Short members are parsed together, by `JSON.parse` itself. Errors: `JsonRefused`, with the faults of `jsonTextFault`.
 */
export function* parseInSlices(text: string): Generator<void, JsonValue> {
  const path: Open[] = [];
  let result: JsonValue | null = null;
  let steppedAt = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    const top = path.at(-1);
    if (unit === OPENING_BRACKET || unit === OPENING_BRACE) {
      if (result !== null) throw new JsonRefused(null);
      if (path.length === JSON_DEPTH_MAX) throw new JsonRefused(jsonFault([], 0));
      path.push(opened(unit === OPENING_BRACKET, at + 1));
    } else if (top === undefined) {
      if (!BLANK.test(text.charAt(at))) throw new JsonRefused(null);
    } else if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === COMMA) {
      if (top.isBehindMember || at - top.from >= SLICE_LENGTH) take(text, path, at);
      top.memberStart = at + 1;
    } else if (unit === CLOSING_BRACKET || unit === CLOSING_BRACE) {
      if (top.isArray !== (unit === CLOSING_BRACKET)) throw new JsonRefused(null);
      if (top.value !== null || path.length === 1 || at - top.start >= SLICE_LENGTH) {
        const value = end(text, path, at);
        if (path.length === 1) result = value;
      }
      path.pop();
    }
    if (at - steppedAt < SLICE_LENGTH) continue;
    steppedAt = at;
    yield;
  }
  if (path.length > 0 || result === null) throw new JsonRefused(null);
  return result;
}

const opened = (isArray: boolean, start: number): Open => ({
  isArray,
  start,
  memberStart: start,
  from: start,
  value: null,
  name: "",
  isBehindMember: false,
  memberCount: 0,
});

/** Creates the value of the container at `depth`, after those of its parents, unless it exists. */
function begin(text: string, path: readonly Open[], depth: number): JsonValue[] | JsonObject {
  const open = path[depth];
  if (open === undefined) throw new JsonRefused(null);
  if (open.value !== null) return open.value;
  const outer = path[depth - 1];
  if (outer !== undefined) {
    const before = begin(text, path, depth - 1);
    if (outer.isBehindMember) throw new JsonRefused(null);
    if (outer.memberStart > outer.from) add(text.slice(outer.from, outer.memberStart - 1), path, depth - 1, before);
    open.name = nameOf(text.slice(outer.memberStart, open.start - 1), before);
    if (!Array.isArray(before)) refuseFault(jsonFault({ [open.name]: null }), path, depth - 1, null);
  }
  open.value = open.isArray ? [] : {};
  return open.value;
}

/** Returns the name or index of the member with `prefix` before its bracket. */
function nameOf(prefix: string, before: JsonValue[] | JsonObject): string {
  if (Array.isArray(before)) {
    if (!BLANK.test(prefix)) throw new JsonRefused(null);
    return String(before.length);
  }
  const [name, ...others] = Object.keys(parsed(`{${prefix}0}`));
  if (name === undefined || others.length > 0) throw new JsonRefused(null);
  return name;
}

/** Adds the text between the last slice and the comma at `at`. */
function take(text: string, path: readonly Open[], at: number): void {
  const depth = path.length - 1;
  const value = begin(text, path, depth);
  const open = path[depth];
  if (open === undefined) return;
  const slice = text.slice(open.from, at);
  if (!open.isBehindMember) add(slice, path, depth, value);
  else if (!BLANK.test(slice)) throw new JsonRefused(null);
  open.isBehindMember = false;
  open.from = at + 1;
}

/** Completes the innermost container at its closing bracket and makes it a member of its parent. */
function end(text: string, path: readonly Open[], at: number): JsonValue {
  const depth = path.length - 1;
  const value = begin(text, path, depth);
  const open = path[depth];
  if (open === undefined) return value;
  const slice = text.slice(open.from, at);
  // No text may follow a member, and a member must follow a comma.
  if (BLANK.test(slice) ? !open.isBehindMember && open.from > open.start : open.isBehindMember) {
    throw new JsonRefused(null);
  }
  if (!BLANK.test(slice)) {
    // A container without parsed members is parsed as a whole, without a copy of its text.
    if (open.from === open.start) addAll(text.slice(open.start - 1, at + 1), path, depth, value);
    else add(slice, path, depth, value);
  }
  const outer = path[depth - 1];
  const before = outer?.value ?? null;
  if (outer === undefined || before === null) return value;
  if (Array.isArray(before)) before.push(value);
  else define(before, open.name, value);
  outer.isBehindMember = true;
  outer.from = at + 1;
  return value;
}

/** Adds the members in `slice`, which holds all of them and the commas between them. */
function add(slice: string, path: readonly Open[], depth: number, value: JsonValue[] | JsonObject): void {
  if (BLANK.test(slice)) throw new JsonRefused(null);
  addAll(Array.isArray(value) ? `[${slice}]` : `{${slice}}`, path, depth, value);
}

/** Adds the members of the array or object that `text` is. */
function addAll(text: string, path: readonly Open[], depth: number, value: JsonValue[] | JsonObject): void {
  if (Array.isArray(value)) {
    const members = parsed(text) as JsonValue[];
    refuseFault(jsonTextFault(text, members), path, depth, value.length);
    for (const member of members) value.push(member);
    return;
  }
  const members = parsed(text) as JsonObject;
  refuseFault(jsonTextFault(text, members), path, depth, null);
  const names = Object.keys(members);
  const open = path[depth];
  if (open !== undefined) open.memberCount += names.length;
  if (open !== undefined && open.memberCount > MEMBERS_MAX) {
    refuseFault({ path: "", message: TOO_MANY }, path, depth, null);
  }
  for (const name of names) define(value, name, members[name] ?? null);
}

function parsed(text: string): object {
  try {
    return JSON.parse(text);
  } catch {
    throw new JsonRefused(null);
  }
}

/**
 * Throws the fault, if any, of some members of the container at `depth`. `first`: the index of the first of them; null in an
 * object.
 */
function refuseFault(fault: JsonFault | null, path: readonly Open[], depth: number, first: number | null): void {
  if (fault === null) return;
  const [own = "", ...inner] = fault.path.split(".");
  const outer = path.slice(1, depth + 1).map(({ name }) => name);
  const place = first === null ? own : String(Number(own) + first);
  throw new JsonRefused({
    ...fault,
    path: fault.path === "" ? outer.join(".") : [...outer, place, ...inner].join("."),
  });
}

/** Defines a member as JSON.parse does: `__proto__` is a name like any other. */
function define(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
