import type { FieldCode, FieldProblems } from "../errors.ts";
import { isLonger } from "../fields.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../json/json.ts";
import type { JsonSchema } from "./strict.ts";

/** Fields at fault that an answer names; a body with more is refused all the same. */
const PROBLEMS_MAX = 100;
/** Unknown members of one object that an answer names: a body has room for a million. */
const UNKNOWN_NAMED_MAX = 20;

/** A field of a value that a schema refused. */
interface FieldAtFault {
  /** Path of the field, such as `users.3.email`; empty for the whole value. */
  name: string;
  isRequired: boolean;
}

/** Names what is at fault in a value, once its schema has refused it. Each method returns whether it found a fault. */
export class Faults {
  readonly problems: FieldProblems;
  /** Noun for what an unknown member is not, such as "a field of this request". */
  readonly #member: string;
  #count = 0;

  constructor(problems: FieldProblems, member: string) {
    this.problems = problems;
    this.#member = member;
  }

  find(schema: JsonSchema, value: JsonValue | undefined, field: FieldAtFault): boolean {
    if (this.#count >= PROBLEMS_MAX) return true;
    if (value === undefined) return this.#missing(field);
    if (schema.anyOf !== undefined) return this.#ofUnion(schema.anyOf, value, field);
    const choices = schema.const === undefined ? schema.enum : [schema.const];
    if (choices !== undefined) return this.#ofChoices(choices, value, field);
    if (value === null && field.isRequired && schema.type !== undefined && schema.type !== "null") {
      return this.#missing(field);
    }
    if (this.#ofType(schema, value, field)) return true;
    const rule = schema["~refine"]?.find(({ check }) => !check(value))?.check;
    if (rule === undefined) return false;
    const { code, message } = rule.problem(field.name);
    return this.#add(field, code, message);
  }

  #ofType(schema: JsonSchema, value: JsonValue, field: FieldAtFault): boolean {
    const wrong = (kind: string) => this.#add(field, "invalid_type", `${field.name} must be ${kind}`);
    switch (schema.type) {
      case "object":
        return isJsonObject(value) ? this.#ofObject(schema, value, field) : wrong("an object");
      case "array":
        return Array.isArray(value) ? this.#ofArray(schema, value, field) : wrong("an array");
      case "string":
        return typeof value === "string" ? this.#ofText(schema, value, field) : wrong("a string");
      case "integer":
        if (typeof value !== "number" || !Number.isInteger(value)) return wrong("a whole number");
        return this.#ofNumber(schema, value, field);
      case "number":
        return typeof value === "number" ? this.#ofNumber(schema, value, field) : wrong("a number");
      case "boolean":
        return typeof value === "boolean" ? false : wrong("true or false");
      default:
        return schema.type === "null" && value !== null ? wrong("null") : false;
    }
  }

  #ofObject(schema: JsonSchema, value: JsonObject, { name }: FieldAtFault): boolean {
    const place = name === "" ? "" : `${name}.`;
    const { properties = {}, required = [], additionalProperties, maxProperties } = schema;
    if (maxProperties !== undefined) {
      const count = Object.keys(value).length;
      const message = `${name} must have at most ${maxProperties} members, got ${count}`;
      if (count > maxProperties) return this.#add({ name, isRequired: true }, "too_long", message);
    }
    const before = this.#count;
    for (const [member, ofMember] of Object.entries(properties)) {
      const isRequired = required.includes(member);
      const given = Object.hasOwn(value, member) ? value[member] : undefined;
      if (isRequired || given !== undefined) this.find(ofMember, given, { name: place + member, isRequired });
    }
    const [ofOthers] = Object.values(schema.patternProperties ?? {});
    let unknownCount = 0;
    for (const member in value) {
      if (Object.hasOwn(properties, member)) continue;
      // A member that the client sent is not missing: null there has the wrong type.
      const field = { name: place + member, isRequired: false };
      if (ofOthers !== undefined) this.find(ofOthers, value[member], field);
      else if (additionalProperties === false && unknownCount++ < UNKNOWN_NAMED_MAX) {
        this.#add(field, "unknown_field", `${field.name} is not ${this.#member}`);
      }
    }
    return this.#count > before;
  }

  #ofArray({ items, minItems = 0, maxItems }: JsonSchema, value: readonly JsonValue[], field: FieldAtFault): boolean {
    const { name } = field;
    if (value.length < minItems) {
      const items = minItems === 1 ? "item" : "items";
      return this.#add(field, "too_short", `${name} must have at least ${minItems} ${items}`);
    }
    if (maxItems !== undefined && value.length > maxItems) {
      return this.#add(field, "too_long", `${name} must have at most ${maxItems} items, got ${value.length}`);
    }
    const before = this.#count;
    for (const [index, item] of value.entries()) {
      if (items === undefined || this.#count >= PROBLEMS_MAX) break;
      this.find(items, item, { name: `${name}.${index}`, isRequired: true });
    }
    return this.#count > before;
  }

  #ofText({ minLength = 0, maxLength, pattern }: JsonSchema, value: string, field: FieldAtFault): boolean {
    const { name, isRequired } = field;
    if (!isLonger(value, minLength - 1)) {
      if (value === "" && minLength === 1 && isRequired) return this.#missing(field);
      const characters = minLength === 1 ? "character" : "characters";
      return this.#add(field, "too_short", `${name} must have at least ${minLength} ${characters}`);
    }
    if (maxLength !== undefined && isLonger(value, maxLength)) {
      return this.#add(field, "too_long", `${name} must have at most ${maxLength} characters`);
    }
    if (pattern === undefined || new RegExp(pattern, "u").test(value)) return false;
    return this.#add(field, "pattern_mismatch", `${name} must match ${pattern}`);
  }

  #ofNumber({ minimum, maximum }: JsonSchema, value: number, field: FieldAtFault): boolean {
    const { name } = field;
    if (minimum !== undefined && value < minimum) {
      return this.#add(field, "too_small", `${name} must be at least ${minimum}, got ${value}`);
    }
    if (maximum === undefined || value <= maximum) return false;
    return this.#add(field, "too_large", `${name} must be at most ${maximum}, got ${value}`);
  }

  #ofChoices(choices: readonly unknown[], value: JsonValue, field: FieldAtFault): boolean {
    if (value === null && field.isRequired) return this.#missing(field);
    if (choices.includes(value)) return false;
    return this.#add(field, "invalid_value", `${field.name} must be ${oneOf(choices)}`);
  }

  #ofUnion(members: readonly JsonSchema[], value: JsonValue, field: FieldAtFault): boolean {
    const others = members.filter(({ type }) => type !== "null");
    if (value === null && others.length < members.length) return false;
    if (others.every((one) => one.const !== undefined)) {
      return this.#ofChoices(
        others.map((one) => one.const),
        value,
        field,
      );
    }
    const discriminator = discriminatorOf(others);
    if (discriminator !== null && isJsonObject(value)) return this.#ofVariant(others, discriminator, value, field);
    const fitting = others.length === 1 ? others : others.filter(({ type }) => type === typeOf(value));
    const [only] = fitting;
    if (fitting.length === 1 && only !== undefined) return this.find(only, value, field);
    if (value === null && field.isRequired) return this.#missing(field);
    if (fitting.length > 1) return this.#add(field, "invalid_value", `${field.name} is not valid`);
    const kinds = [...new Set(others.map(kindOf))].join(" or ");
    return this.#add(field, "invalid_type", `${field.name} must be ${kinds}`);
  }

  /** Finds faults in an object of a union whose members differ in one constant, such as `action`. */
  #ofVariant(members: readonly JsonSchema[], discriminator: string, value: JsonObject, field: FieldAtFault): boolean {
    const given = Object.hasOwn(value, discriminator) ? value[discriminator] : undefined;
    const constantOf = (one: JsonSchema) => one.properties?.[discriminator]?.const;
    const variant = members.find((one) => constantOf(one) === given);
    if (variant !== undefined) return this.#ofObject(variant, value, field);
    const name = field.name === "" ? discriminator : `${field.name}.${discriminator}`;
    const choices = oneOf(members.map(constantOf));
    const isMissing = given === undefined || given === null;
    const message = isMissing ? `${name} is required: ${choices}` : `${name} must be ${choices}`;
    return this.#add({ name, isRequired: true }, isMissing ? "required" : "invalid_value", message);
  }

  #missing(field: FieldAtFault): boolean {
    return this.#add(field, "required", `${field.name} is required`);
  }

  #add({ name }: FieldAtFault, code: FieldCode, message: string): true {
    if (this.problems[name] === undefined) this.#count += 1;
    this.problems[name] ??= { code, message };
    return true;
  }
}

/** Returns the member that is another constant in each of the objects; null where there is none. */
function discriminatorOf(members: readonly JsonSchema[]): string | null {
  const names = Object.keys(members[0]?.properties ?? {});
  return names.find((name) => members.every((one) => one.properties?.[name]?.const !== undefined)) ?? null;
}

function oneOf(choices: readonly unknown[]): string {
  const names = choices.map((choice) => (typeof choice === "string" ? choice : JSON.stringify(choice)));
  return names.length === 1 ? String(names[0]) : `one of ${names.join(", ")}`;
}

function typeOf(value: JsonValue): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

const KINDS: Readonly<Record<string, string>> = {
  object: "an object",
  array: "an array",
  string: "a string",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
};
const kindOf = ({ type }: JsonSchema): string => KINDS[String(type)] ?? "another value";
