import type { JsonValue } from "../../../kernel/json/json.ts";
import type { GeoPoint } from "../../../kernel/records/geo.ts";
import type { RecordFile, TableRecord } from "../records.ts";

interface ValueByType {
  string: string;
  text: string;
  number: number;
  integer: number;
  boolean: boolean;
  date: string;
  datetime: string;
  geo: GeoPoint;
  json: JsonValue;
  references: string[];
  file: RecordFile;
}

/**
 * The type of a member by its name. `F extends { type: … }` does not work: before TypeScript 6 the inferred schema counts as a
 * fresh object literal, which is not assignable to a type that lacks one of its members.
 */
type Member<F, Name extends string> = Name extends keyof F ? F[Name] : undefined;

/** The type of a field's value. With `validate: "new"` records may have values that `enum` does not list. */
type ValueOf<F> =
  Member<Member<F, "validate"> extends "new" ? unknown : F, "enum"> extends readonly (infer Choice)[]
    ? Choice
    : Member<F, "type"> extends { readonly "~json": infer Own }
      ? Own
      : Member<F, "schema"> extends { static: infer Checked }
        ? Checked
        : Member<F, "type"> extends infer Type extends keyof ValueByType
          ? ValueByType[Type]
          : "references" extends keyof F
            ? string
            : JsonValue;

/** References to several records are never null: without any they are `[]`. So are files of a field with `many`. */
type FieldValue<F> =
  Member<F, "many"> extends number
    ? RecordFile[]
    : Member<F, "required"> extends true
      ? ValueOf<F>
      : Member<F, "type"> extends "references"
        ? ValueOf<F>
        : ValueOf<F> | null;

interface AutoFields {
  id: string;
  createdAt: string;
  updatedAt: string;
}

/**
 * A record of a table with this schema. `required` fields and `references` are never null, all others may be; `enum` becomes the union of its
 * values. Without a schema it is `TableRecord`, whose fields have any JSON value.
 */
export type RecordOf<Schema> = unknown extends Schema
  ? TableRecord
  : string extends keyof Schema
    ? TableRecord
    : {
        [Name in keyof AutoFields | keyof Schema as Name extends keyof Schema
          ? Schema[Name] extends false
            ? never
            : Name
          : Name]: Name extends keyof Schema ? FieldValue<Schema[Name]> : string;
      };

/** A record that a hook returns as a replacement, and that `app` inserts: any of its fields. */
export type WrittenOf<R> = string extends keyof R ? TableRecord : { [Name in keyof R]?: R[Name] | null };

type FieldOperator<Value> =
  | { $op: "deleteField" }
  | (Extract<Value, number> extends never ? never : { $op: "increment"; value: number })
  | (IsIds<Value> extends true ? { $op: "add" | "remove"; value: string } : never);

/** Whether these are the values of several references. A `json` field takes any value, of which lists of texts are some. */
type IsIds<Value> = [Value] extends [string[]] ? true : false;

/** The changes of a record: values and operators. */
export type ChangesOf<R> = string extends keyof R
  ? TableRecord
  : { [Name in keyof R]?: R[Name] | null | FieldOperator<R[Name]> };
