import type { TSchema } from "typebox";
import { closestName } from "../../../kernel/closest-name.ts";
import { describe, isPlainObject, type PlainObject, type Report } from "./report.ts";
import type { Shape } from "./schema.ts";

/**
 * Validates a value, adds every problem to the report, and returns whether there was none. The schema is interpreted, not compiled:
 * a config is checked once per start, and the messages need the schema anyway.
 */
export function check(declared: TSchema, value: unknown, report: Report): boolean {
  const schema: Shape = declared;
  const before = report.problems.length;
  if (schema["~check"] === undefined) checkShape(schema, value, report);
  else schema["~check"](value, report);
  for (const rule of schema["~rules"] ?? []) {
    // The schema has validated the shape, from which the rule's type follows.
    if (report.problems.length === before) rule(value as never, report);
  }
  if (isPlainObject(value)) schema["~relation"]?.(value, report);
  return report.problems.length === before;
}

function checkShape(schema: Shape, value: unknown, report: Report): void {
  if (schema.anyOf !== undefined) checkUnion(schema.anyOf, value, report);
  else if (!isOfType(schema, value)) sayWanted([schema], value, report);
  else if (isPlainObject(value) && schema.properties !== undefined) checkMembers(schema, value, report);
  else if (isPlainObject(value) && schema["~entry"] !== undefined) checkNamed(schema, value, report);
  else if (Array.isArray(value) && schema.items !== undefined) checkList(schema, value, report);
  else if (value === "" && schema.minLength !== undefined) report.say("must not be empty");
}

/** Whether a value has the type of a schema, regardless of the members of objects and lists. */
function isOfType(schema: Shape, value: unknown): boolean {
  if (schema["~wanted"] !== undefined) return schema["~wanted"].is(value);
  if (schema.const !== undefined) return value === schema.const;
  if (schema.enum !== undefined) return schema.enum.some((choice) => choice === value);
  const { minimum = -Infinity, maximum = Infinity } = schema;
  switch (schema.type) {
    case "object":
      return isPlainObject(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isSafeInteger(value) && Number(value) >= minimum && Number(value) <= maximum;
    case "number":
      return Number.isFinite(value);
    default:
      return typeof value === schema.type;
  }
}

function checkUnion(branches: readonly Shape[], value: unknown, report: Report): void {
  const branch = branches.find((each) => isOfType(each, value));
  if (branch === undefined) sayWanted(branches, value, report);
  else check(branch, value, report);
}

/** Reports the expected values, and the choice that was probably intended. */
function sayWanted(branches: readonly Shape[], value: unknown, report: Report): void {
  const choices = branches.flatMap((branch) => branch.enum ?? branch.const ?? []);
  const closest = typeof value === "string" ? closestName(value, choices) : "";
  const isSecret = branches.some((branch) => branch["~secret"] === true);
  const got = isSecret ? `a value of type ${typeof value}` : describe(value);
  report.say(`must be ${branches.map(wordsOf).join(" or ")}, got ${got}${closest}`);
}

function wordsOf(schema: Shape): string {
  if (schema["~wanted"] !== undefined) return schema["~wanted"].words;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return `one of ${schema.enum.join(", ")}`;
  switch (schema.type) {
    case "object":
      return "an object";
    case "array":
      return "a list";
    case "boolean":
      return "true or false";
    case "integer":
      return wholeNumber(schema);
    default:
      return `a ${schema.type}`;
  }
}

function wholeNumber({ minimum, maximum, "~unit": unit }: Shape): string {
  const range = maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or more` : `from ${minimum} to ${maximum}`;
  return `a whole number${unit === undefined ? "" : ` of ${unit}`}, ${range}`;
}

function checkMembers(schema: Shape, value: PlainObject, report: Report): void {
  const { properties = {}, required = [] } = schema;
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const declared = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (declared !== undefined) check(declared, member, report.at(name));
    else if (schema.additionalProperties !== true) report.at(name).say(unknownOption(name, Object.keys(properties)));
  }
  for (const name of required) if (value[name] === undefined) report.at(name).say("is required");
}

function unknownOption(name: string, known: readonly string[]): string {
  if (known.length === 0) return "is not an option: nothing can be configured here";
  const closest = closestName(name, known);
  return `is not an option here${closest === "" ? `; the options are ${known.join(", ")}` : closest}`;
}

function checkNamed(schema: Shape, value: PlainObject, report: Report): void {
  const seen = new Map<string, string>();
  for (const [name, member] of Object.entries(value)) {
    const at = report.at(name);
    const problem = schema["~name"]?.(name) ?? null;
    const twin = schema["~caseCounts"] === true ? undefined : seen.get(name.toLowerCase());
    seen.set(name.toLowerCase(), name);
    if (problem !== null) at.say(problem);
    if (twin !== undefined) at.say(`differs from ${twin} only in case, which SQLite and some file systems ignore`);
    if (member === undefined) at.say("is undefined; leave it out instead");
    else check(schema["~entry"] ?? {}, member, at);
  }
}

function checkList({ items = {}, minItems = 0 }: Shape, value: readonly unknown[], report: Report): void {
  if (value.length < minItems) report.say("must not be empty");
  for (const [index, item] of value.entries()) check(items, item, report.at(index));
}
