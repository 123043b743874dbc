import { type Static, type TSchema, Type } from "typebox";
import { authoredProblem } from "../../../kernel/schema/authored.ts";
import { DURATION_MAX_SECONDS } from "../limits.ts";
import { nameProblem } from "./names.ts";
import { describe, type PlainObject, type Report } from "./report.ts";

// Extensions of TypeBox's `Type` for the schemas of sections. `check.ts` interprets all of them.

/** A check that no schema can express. It is called only with values of the right shape. */
type Check<Value> = (value: Value, report: Report) => void;

/** The parts of a schema that `check.ts` reads. A name with ~ is not part of JSON Schema. */
export interface Shape {
  type?: string;
  anyOf?: readonly Shape[];
  const?: string;
  enum?: readonly string[];
  properties?: Readonly<Record<string, Shape>>;
  required?: readonly string[] | undefined;
  /** true: other members may have any value. Otherwise none are allowed. */
  additionalProperties?: boolean;
  items?: Shape;
  minItems?: number;
  minLength?: number;
  minimum?: number;
  maximum?: number;
  /** The schema of members whose names the user chooses. */
  "~entry"?: Shape;
  /** Describes the problem of such a name; null: valid. */
  "~name"?: (name: string) => string | null;
  /** Whether names that differ only in case are distinct. */
  "~caseCounts"?: boolean;
  "~unit"?: string;
  /** Whether messages must not quote the value. */
  "~secret"?: boolean;
  /** A check of values that are not JSON: the description of valid ones, and a predicate. */
  "~wanted"?: { words: string; is: (value: unknown) => boolean };
  /** A check that replaces all other keywords. */
  "~check"?: Check<unknown>;
  /** Checks that run in order, until one of them reports a problem. */
  "~rules"?: readonly Check<never>[];
  /** A check like those of `~rules`, which also runs for objects with problems. */
  "~relation"?: Check<PlainObject>;
}

/** A schema that is checked by a function alone. */
export const checkedBy = <Value>(check: Check<unknown>) => Type.Unsafe<Value>({ "~check": check });

/** Adds a check of values that have the right shape to a new schema. */
export function refined<Schema extends TSchema>(schema: Schema, rule: Check<Static<Schema>>): Schema {
  const { "~rules": rules = [] }: Shape = schema;
  return Object.assign(schema, { "~rules": [...rules, rule] });
}

/** Adds a check of the relations between an object's members to a new schema. It also runs for broken objects. */
export const related = <Schema extends TSchema>(schema: Schema, relation: Check<PlainObject>): Schema =>
  Object.assign(schema, { "~relation": relation });

/** An object whose member names the user chooses. */
export const named = <Entry extends TSchema>(
  entry: Entry,
  name: (name: string) => string | null = nameProblem,
  { caseCounts = false }: { caseCounts?: boolean } = {},
) =>
  // Type.Record takes a tenth of a millisecond each at every start.
  Type.Unsafe<Record<string, Static<Entry>>>({
    type: "object",
    "~entry": entry,
    "~name": name,
    "~caseCounts": caseCounts,
  });

export const list = <Item extends TSchema>(item: Item, { minItems = 1 }: { minItems?: 0 | 1 } = {}) =>
  Type.Immutable(Type.Array(item, { minItems }));

/** A value that is not JSON, such as a function. `words` says what it must be. */
export const valueThat = <Value>(words: string, is: (value: unknown) => boolean) =>
  Type.Unsafe<Value>({ "~wanted": { words, is } });

export const func = <Function>() => valueThat<Function>("a function", (value) => typeof value === "function");

/** An access rule: a constant answer, or a function that returns one. */
export const rule = <Function>() =>
  valueThat<boolean | Function>("true, false or a function", (value) => /^(boolean|function)$/.test(typeof value));

export const text = () => Type.String({ minLength: 1 });

/** A schema of TypeBox for JSON values: `Type` of "typebox", `t` of "elysia". */
export const jsonSchema = () =>
  checkedBy<object>((value, report) => {
    const problem = authoredProblem(value);
    if (problem !== null) report.say(`must be a schema such as t.Object({ … }): it ${problem}`);
  });

export const secretText = () => Type.String({ minLength: 1, "~secret": true });

/** A text for which `problem` returns null. */
export const textWith = (problem: (text: string) => string | null) =>
  refined(text(), (value, report) => {
    const message = problem(value);
    if (message !== null) report.say(message);
  });

export const whole = ({ min, max, unit }: { min: number; max?: number; unit?: string }) =>
  Type.Integer({ minimum: min, maximum: max ?? Number.MAX_SAFE_INTEGER, "~unit": unit });

/** Whole seconds: durations become columns, headers and tokens that hold only integers. */
export const seconds = ({ min = 1, max = DURATION_MAX_SECONDS }: { min?: number; max?: number } = {}) =>
  whole({ min, max, unit: "seconds" });

export const milliseconds = ({ min = 1 }: { min?: number } = {}) =>
  whole({ min, max: DURATION_MAX_SECONDS * 1_000, unit: "milliseconds" });

/** A URL with one of these schemes. */
export function url(...schemes: readonly string[]) {
  const wanted = schemes.map((scheme) => `${scheme}:`).join(" or ");
  return textWith((value) => {
    const protocol = URL.parse(value)?.protocol;
    if (schemes.some((scheme) => protocol === `${scheme}:`)) return null;
    return `must be a URL that begins with ${wanted}, got ${describe(value)}`;
  });
}
