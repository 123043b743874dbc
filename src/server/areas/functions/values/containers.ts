import { UNKNOWN_NAMED_MAX } from "../limits.ts";
import { REFUSED, type Run, type Visit } from "./run.ts";
import type { Schema } from "./schema.ts";
import { isJsonLike, isParsed, isPlainObject, jsonOf, textOf } from "./text.ts";

export type Compile = (schema: Schema) => Visit;

/** The policy for members that a schema does not name. `drop`: they are omitted, like other headers of a request. */
export type Others = "refuse" | "keep" | "drop";

interface Member {
  name: string;
  visit: Visit;
  schema: Schema;
  isRequired: boolean;
}

/** Validates an object. `others`: the policy where the schema sets none. */
export function objectVisit(schema: Schema, compile: Compile, others: Others): Visit {
  const { properties = {}, required = [], minProperties, maxProperties } = schema;
  const members = Object.entries(properties).map(
    ([name, one]): Member => ({ name, visit: compile(one), schema: one, isRequired: required.includes(name) }),
  );
  const visitOthers = othersVisit(schema, compile, others);
  const visitMembers = (object: Record<string, unknown>, run: Run): unknown => {
    const names = Object.keys(object);
    if (maxProperties !== undefined && names.length > maxProperties) {
      return run.refuse(schema, "too_long", `must have at most ${maxProperties} members, got ${names.length}`);
    }
    if (minProperties !== undefined && names.length < minProperties) {
      return run.refuse(schema, "too_short", `must have at least ${minProperties} members, got ${names.length}`);
    }
    const result = new Copied(object);
    for (const member of members) {
      if (!visitMember(member, result, run) && run.isSettled) return REFUSED;
    }
    visitOthers(names, result, run);
    return result.isRefused ? REFUSED : result.value;
  };
  return (value, run) => {
    const parsed = parsedText(value, run);
    const object = parsed === undefined ? value : parsed;
    if (!isPlainObject(object)) {
      const isCut = run.form === "text" && typeof object === "string" && isJsonLike(object);
      return run.refuse(schema, "invalid_type", isCut ? notParsed("an object") : "must be an object");
    }
    return parsed === undefined ? visitMembers(object, run) : run.as("json", () => visitMembers(object, run));
  };
}

/** Describes the fault of a text that begins like JSON. */
const notParsed = (kind: string): string => `must be ${kind}, as JSON within the limits of a body`;

/** A value, copied once a member has been converted. */
class Copied {
  readonly given: Record<string, unknown>;
  value: Record<string, unknown>;
  isRefused = false;

  constructor(given: Record<string, unknown>) {
    this.given = given;
    this.value = given;
  }

  set(name: string, member: unknown): void {
    if (member === REFUSED) this.isRefused = true;
    else if (member !== this.given[name] || !Object.hasOwn(this.given, name)) this.#copy()[name] = member;
  }

  delete(name: string): void {
    delete this.#copy()[name];
  }

  #copy(): Record<string, unknown> {
    if (this.value === this.given) this.value = { ...this.given };
    return this.value;
  }
}

/** Visits a member; false: it was refused. */
function visitMember({ name, visit, schema, isRequired }: Member, result: Copied, run: Run): boolean {
  const given = Object.hasOwn(result.given, name) ? result.given[name] : undefined;
  let member: unknown;
  if (given !== undefined) member = run.within(name, visit, given);
  else if (schema.default !== undefined && !isPlaceholder(schema)) {
    member = run.as("json", () => run.within(name, visit, structuredClone(schema.default)));
  } else if (!isRequired) return true;
  else member = run.within(name, missing(schema), given);
  result.set(name, member);
  return member !== REFUSED;
}

const missing =
  (schema: Schema): Visit =>
  (_, run) =>
    run.refuse(schema, "required", "is required");

/** Whether a default is the one that Elysia adds to files for its error messages. */
const isPlaceholder = (schema: Schema): boolean => schema.default === "File" || schema.default === "Files";

type VisitOthers = (names: readonly string[], result: Copied, run: Run) => void;

/** Visits the members that are not among the properties. */
function othersVisit(schema: Schema, compile: Compile, others: Others): VisitOthers {
  const { properties = {}, patternProperties = {}, additionalProperties } = schema;
  const patterns = Object.entries(patternProperties).map(([pattern, one]) => ({
    pattern: new RegExp(pattern),
    visit: compile(one),
  }));
  const visitAdditional = typeof additionalProperties === "object" ? compile(additionalProperties) : null;
  const isOpen = additionalProperties === true || (others === "keep" && typeof additionalProperties !== "object");
  const refuse: Visit = (_, run) => run.refuse(schema, "unknown_field", "is not a member that is known here");
  const visitOf = (name: string): Visit | null => {
    // Copying the object would give it another prototype.
    if (name === "__proto__") return refuse;
    const visit = patterns.find(({ pattern }) => pattern.test(name))?.visit ?? visitAdditional;
    return visit ?? (isOpen || others === "drop" ? null : refuse);
  };
  return (names, result, run) => {
    let unknownCount = 0;
    for (const name of names) {
      if (Object.hasOwn(properties, name)) continue;
      const visit = visitOf(name);
      if (visit !== null) result.set(name, run.within(name, visit, result.given[name]));
      else if (!isOpen) result.delete(name);
      if (visit === refuse) unknownCount += 1;
      if (unknownCount >= UNKNOWN_NAMED_MAX || (result.isRefused && run.isSettled)) return;
    }
  };
}

export function arrayVisit(schema: Schema, compile: Compile): Visit {
  const { items, minItems = 0, maxItems = Number.POSITIVE_INFINITY, uniqueItems = false, contains } = schema;
  const isTuple = Array.isArray(items);
  const visits = isTuple ? items.map(compile) : [];
  const visitItem = isTuple || items === undefined ? null : compile(items as Schema);
  const visitContained = contains === undefined ? null : compile(contains);
  const visitItems = (list: readonly unknown[], run: Run): unknown => {
    if (list.length < minItems) return run.refuse(schema, "too_short", `must have at least ${minItems} items`);
    if (list.length > maxItems) {
      return run.refuse(schema, "too_long", `must have at most ${maxItems} items, got ${list.length}`);
    }
    let result = list;
    let isRefused = false;
    for (let index = 0; index < list.length; index++) {
      const visit = visits[index] ?? visitItem;
      if (visit === null) continue;
      const item = run.within(index, visit, list[index]);
      if (item === REFUSED) {
        isRefused = true;
        if (run.isSettled) break;
      } else if (item !== list[index]) {
        if (result === list) result = [...list];
        (result as unknown[])[index] = item;
      }
    }
    if (isRefused) return REFUSED;
    if (uniqueItems && new Set(list.map((item) => JSON.stringify(item))).size < list.length) {
      return run.refuse(schema, "invalid_value", "must not have an item twice");
    }
    if (visitContained !== null && !list.some((item) => run.tries(visitContained, item) !== REFUSED)) {
      return run.refuse(schema, "invalid_value", "lacks an item that it must have");
    }
    return result;
  };
  return (value, run) => {
    if (run.form !== "text") {
      return Array.isArray(value) ? visitItems(value, run) : run.refuse(schema, "invalid_type", "must be an array");
    }
    const parsed = parsedText(value, run);
    if (Array.isArray(parsed)) return run.as("json", () => visitItems(parsed, run));
    const entries = entriesOf(value, run);
    return entries === null ? run.refuse(schema, "invalid_type", notParsed("an array")) : visitItems(entries, run);
  };
}

/** Parses the array or object in a text, or in a field of a form; undefined: there is none. */
function parsedText(value: unknown, run: Run): unknown {
  if (run.form !== "text") return undefined;
  if (isParsed(value)) return value;
  return typeof value === "string" ? jsonOf(value) : undefined;
}

/** Returns the entries of a list in text form: one text with commas, several texts, or JSON. null: JSON that cannot be parsed. */
function entriesOf(value: unknown, run: Run): unknown[] | null {
  if (!Array.isArray(value)) return splitText(value, run);
  const entries: unknown[] = [];
  for (const entry of value) {
    const parsed = parsedText(entry, run);
    const found = Array.isArray(parsed) ? parsed : splitText(entry, run);
    if (found === null) return null;
    for (const one of found) entries.push(one);
  }
  return entries;
}

function splitText(value: unknown, run: Run): unknown[] | null {
  const text = textOf(value);
  if (text === null || isParsed(value)) return [value];
  const [, bare] = /^\[([^[\]{}]*)\]$/.exec(text) ?? [];
  if (bare === undefined && isJsonLike(text)) return null;
  return run.hasCommas ? (bare ?? text).split(",").map((entry) => entry.trim()) : [text];
}
