import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/schema";
import { type FieldProblems, noProblems } from "../errors.ts";
import { throwProblems } from "../fields.ts";
import type { JsonValue } from "../json/json.ts";
import { Faults } from "./faults.ts";
import { type JsonSchema, strictSchema } from "./strict.ts";
import { AnyObject } from "./types.ts";

export interface Parser<Schema extends TSchema> {
  /** Returns the value if it conforms to the schema. Errors: 400 that names each field at fault. */
  parse(value: JsonValue): Static<Schema>;
  /** Returns the faults of the value by field; null when there are none. `prefix` precedes the names: `operations.3`. */
  problemsOf(value: JsonValue, prefix?: string): FieldProblems | null;
}

/**
 * Creates a parser for values of a declared schema. Members that the schema does not name are refused; `member` says what they are
 * not ("a field of this request"); `unexplained` is the answer where a keyword that `Faults` does not know refuses a value. The
 * schema is compiled on first use: many endpoints are never called.
 */
export function createParser<Schema extends TSchema>(
  schema: Schema,
  { member = "a field of this request", unexplained }: { member?: string; unexplained?: FieldProblems } = {},
): Parser<Schema> {
  // TypeBox decides; the strict schema is a JSON Schema, which is all that it needs.
  const isAny = (schema as TSchema) === AnyObject;
  let strict: JsonSchema | null = null;
  let compiled: { Check(value: unknown): boolean } | null = null;
  const problemsOf = (value: JsonValue, prefix = ""): FieldProblems | null => {
    strict ??= strictSchema(schema);
    compiled ??= Compile(strict);
    if (compiled.Check(value)) return null;
    const problems = noProblems();
    new Faults(problems, member).find(strict, value, { name: prefix, isRequired: true });
    if (Object.keys(problems).length > 0) return problems;
    // A refused value must not pass because nothing here finds the fault.
    if (unexplained === undefined) throw new Error("A schema refused a value without a reason");
    return unexplained;
  };
  return {
    problemsOf,
    parse(value) {
      if (!isAny) {
        const problems = problemsOf(value);
        if (problems !== null) throwProblems(problems);
      }
      return value as Static<Schema>;
    },
  };
}
