import { type Static, type TSchema, Type } from "typebox";
import { DURATION_MAX_SECONDS } from "../limits.ts";
import { nameProblem } from "./names.ts";
import { describe, type PlainObject, type Report } from "./report.ts";

// What the schemas of sections use beside TypeBox's own `Type`. `check.ts` reads all of it.

/** A check that no schema can express. It is called with values of the right shape only. */
type Check<Value> = (value: Value, report: Report) => void;

/** The parts of a schema that `check.ts` reads. A name with ~ is not part of JSON Schema. */
export interface Shape {
  type?: string;
  anyOf?: readonly Shape[];
  const?: string;
  enum?: readonly string[];
  properties?: Readonly<Record<string, Shape>>;
  required?: readonly string[] | undefined;
  /** true: other members may have any value. Otherwise there may be none. */
  additionalProperties?: boolean;
  items?: Shape;
  minItems?: number;
  minLength?: number;
  minimum?: number;
  maximum?: number;
  /** The members of an object with names that the user chooses. */
  "~entry"?: Shape;
  /** What is wrong with such a name; null when nothing is. */
  "~name"?: (name: string) => string | null;
  /** Names that differ only in case are two names. */
  "~caseCounts"?: boolean;
  "~unit"?: string;
  /** No message may repeat the value. */
  "~secret"?: boolean;
  /** Values that are not JSON: what they must be, in words, and whether one is. */
  "~wanted"?: { words: string; is: (value: unknown) => boolean };
  /** Replaces all other keywords. */
  "~check"?: Check<unknown>;
  /** They run in their order, until one of them reports a problem. */
  "~rules"?: readonly Check<never>[];
  /** As one of `~rules`, also for objects that have problems already. */
  "~relation"?: Check<PlainObject>;
}

/** A schema that is checked by a function alone. */
export const checkedBy = <Value>(check: Check<unknown>) => Type.Unsafe<Value>({ "~check": check });

/** Adds a check of values that have the right shape to a new schema. */
export function refined<Schema extends TSchema>(schema: Schema, rule: Check<Static<Schema>>): Schema {
  const { "~rules": rules = [] }: Shape = schema;
  return Object.assign(schema, { "~rules": [...rules, rule] });
}

/** Adds a check of what the members of an object say about one another to a new schema. It also runs for broken objects. */
export const related = <Schema extends TSchema>(schema: Schema, relation: Check<PlainObject>): Schema =>
  Object.assign(schema, { "~relation": relation });

/** An object whose members have names that the user chooses. */
export const named = <Entry extends TSchema>(
  entry: Entry,
  name: (name: string) => string | null = nameProblem,
  { caseCounts = false }: { caseCounts?: boolean } = {},
) =>
  // Not Type.Record, which takes a tenth of a millisecond each at every start.
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

/** A rule of access: a constant answer, or a function that gives one. */
export const rule = <Function>() =>
  valueThat<boolean | Function>("true, false or a function", (value) => /^(boolean|function)$/.test(typeof value));

export const text = () => Type.String({ minLength: 1 });

export const secretText = () => Type.String({ minLength: 1, "~secret": true });

/** A text for which `problem` gives null. */
export const textWith = (problem: (text: string) => string | null) =>
  refined(text(), (value, report) => {
    const message = problem(value);
    if (message !== null) report.say(message);
  });

export const whole = ({ min, max, unit }: { min: number; max?: number; unit?: string }) =>
  Type.Integer({ minimum: min, maximum: max ?? Number.MAX_SAFE_INTEGER, "~unit": unit });

/** Whole, as durations become columns, headers and tokens that hold whole numbers only. */
export const seconds = ({ min = 1, max = DURATION_MAX_SECONDS }: { min?: number; max?: number } = {}) =>
  whole({ min, max, unit: "seconds" });

export const milliseconds = ({ min = 1 }: { min?: number } = {}) =>
  whole({ min, max: DURATION_MAX_SECONDS * 1_000, unit: "milliseconds" });

/** An address with one of these schemes. */
export function url(...schemes: readonly string[]) {
  const wanted = schemes.map((scheme) => `${scheme}:`).join(" or ");
  return textWith((value) => {
    const protocol = URL.parse(value)?.protocol;
    if (schemes.some((scheme) => protocol === `${scheme}:`)) return null;
    return `must be a URL that begins with ${wanted}, got ${describe(value)}`;
  });
}
