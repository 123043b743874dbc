import type { TypesOf } from "../../server/config/typed/declared.ts";
import type { RecordOf as RecordOfSchema } from "../../server/config/typed/records.ts";

/** A change of a number by an amount, however many clients change it at once. */
export interface Increment {
  $op: "increment";
  value: number;
}
/** A field that becomes null. */
export interface FieldDeletion {
  $op: "deleteField";
}

type Member<Field, Name extends string> = Name extends keyof Field ? Field[Name] : undefined;
/** Fields that the server fills in. */
type Timestamps = "createdAt" | "updatedAt";
/** Fields without which an insert is refused. */
type NeededOf<Schema> = {
  [Name in keyof Schema]: Member<Schema[Name], "required"> extends true
    ? Member<Schema[Name], "default"> extends undefined
      ? Member<Schema[Name], "onUpdate"> extends undefined
        ? Name
        : never
      : never
    : never;
}[keyof Schema];

type Untyped = { [field: string]: unknown };
type IsTyped<Schema> = unknown extends Schema ? false : string extends keyof Schema ? false : true;
type RequiredOf<Schema> = {
  [Name in keyof Schema]: Member<Schema[Name], "required"> extends true ? Name : never;
}[keyof Schema];

/**
 * What an insert into a table with this schema takes: required fields without a default, and any others. null counts as missing
 * where a field is not required.
 */
export type InsertOfSchema<Schema> =
  IsTyped<Schema> extends true
    ? { [Name in NeededOf<Schema> & keyof RecordOfSchema<Schema>]: RecordOfSchema<Schema>[Name] } & {
        [Name in Exclude<keyof RecordOfSchema<Schema>, NeededOf<Schema> | Timestamps>]?: RecordOfSchema<Schema>[Name];
      }
    : Untyped;

type OperatorsOf<Value> = FieldDeletion | (Extract<Value, number> extends never ? never : Increment);
type NumberOperator<Value> = Extract<Value, number> extends never ? never : Increment;

/** What an update of a table with this schema takes. `id` and the times are ignored, so that a whole record can be sent back. */
export type ChangesOfSchema<Schema> =
  IsTyped<Schema> extends true
    ? {
        [Name in keyof RecordOfSchema<Schema>]?:
          | RecordOfSchema<Schema>[Name]
          | (Name extends "id" | Timestamps
              ? never
              : Name extends RequiredOf<Schema>
                ? NumberOperator<RecordOfSchema<Schema>[Name]>
                : OperatorsOf<RecordOfSchema<Schema>[Name]>);
      }
    : Untyped;

type Databases<Config> = TypesOf<Config>["databases"];
type SchemaOf<Config, Namespace extends string, Table extends string> = Namespace extends keyof Databases<Config>
  ? Table extends keyof Databases<Config>[Namespace]
    ? Databases<Config>[Namespace][Table]
    : unknown
  : unknown;

/** The names of the namespaces of a config. */
export type NamespaceOf<Config> = keyof Databases<Config> & string;
/** The names of the tables of a namespace. */
export type TableOf<Config, Namespace extends NamespaceOf<Config>> = keyof Databases<Config>[Namespace] & string;

/** A record of a table: `RecordOf<typeof config, "shared", "films">`. */
export type RecordOf<
  Config,
  Namespace extends NamespaceOf<Config>,
  Table extends TableOf<Config, Namespace>,
> = RecordOfSchema<SchemaOf<Config, Namespace, Table>>;

/** What an insert into a table takes: `InsertOf<typeof config, "shared", "films">`. */
export type InsertOf<
  Config,
  Namespace extends NamespaceOf<Config>,
  Table extends TableOf<Config, Namespace>,
> = InsertOfSchema<SchemaOf<Config, Namespace, Table>>;
