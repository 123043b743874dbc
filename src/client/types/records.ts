import type { RecordFile } from "../../server/config/records.ts";
import type { TypesOf } from "../../server/config/typed/declared.ts";
import type { RecordOf as RecordOfSchema } from "../../server/config/typed/records.ts";

/** Atomic change of a number by an amount. */
export interface Increment {
  $op: "increment";
  value: number;
}
/** Change that sets a field to null. */
export interface FieldDeletion {
  $op: "deleteField";
}

/** Atomic change of several references by one id. An id that is there already, or is not there, changes nothing. */
export interface ReferenceChange {
  $op: "add" | "remove";
  value: string;
}

type Member<Field, Name extends string> = Name extends keyof Field ? Field[Name] : undefined;
/** Fields that the server sets. */
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

/** A stored file that an update keeps: as it was answered, or its id alone. */
type KeptFile = Pick<RecordFile, "id"> & Partial<RecordFile>;

/**
 * Value of a field to write. A field of files takes `New` files, and where records exist `Kept` ones: one of them, a list of both
 * with `many`, or a single new one, which is added.
 */
type GivenOf<Schema, Name extends keyof RecordOfSchema<Schema>, New, Kept> =
  Member<Member<Schema, Name & string>, "type"> extends "file"
    ? Member<Member<Schema, Name & string>, "many"> extends number
      ? New | readonly (New | Kept)[] | null
      : New | Kept | Extract<RecordOfSchema<Schema>[Name], null>
    : RecordOfSchema<Schema>[Name];

/**
 * Record to insert into a table with this schema: required fields without a default, and any others. null counts as missing if a
 * field is not required. Fields of files take `Blob` or `File` objects.
 */
export type InsertOfSchema<Schema, New = Blob, Kept = never> =
  IsTyped<Schema> extends true
    ? { [Name in NeededOf<Schema> & keyof RecordOfSchema<Schema>]: GivenOf<Schema, Name, New, Kept> } & {
        [Name in Exclude<keyof RecordOfSchema<Schema>, NeededOf<Schema> | Timestamps>]?: GivenOf<
          Schema,
          Name,
          New,
          Kept
        >;
      }
    : Untyped;

/** Record to insert, or to update with: its fields of files also take stored ones. */
export type UpsertOfSchema<Schema> = InsertOfSchema<Schema, Blob, KeptFile>;
/** Record of a batch or transaction, which take no new files. */
export type InsertInBatch<Schema> = InsertOfSchema<Schema, never>;

type OperatorsOf<Value> = FieldDeletion | AtomicOperator<Value>;
type AtomicOperator<Value> =
  | (Extract<Value, number> extends never ? never : Increment)
  | ([Value] extends [string[]] ? ReferenceChange : never);

/**
 * Changes of an update of a table with this schema. `id` and the timestamps are ignored, so that a whole record can be sent back.
 */
export type ChangesOfSchema<Schema, New = never> =
  IsTyped<Schema> extends true
    ? {
        [Name in keyof RecordOfSchema<Schema>]?:
          | GivenOf<Schema, Name, New, KeptFile>
          | (Name extends "id" | Timestamps
              ? never
              : Name extends RequiredOf<Schema>
                ? AtomicOperator<RecordOfSchema<Schema>[Name]>
                : OperatorsOf<RecordOfSchema<Schema>[Name]>);
      }
    : Untyped;

type Databases<Config> = TypesOf<Config>["databases"];
type SchemaOf<Config, Namespace extends string, Table extends string> = Namespace extends keyof Databases<Config>
  ? Table extends keyof Databases<Config>[Namespace]
    ? Databases<Config>[Namespace][Table]
    : unknown
  : unknown;

/** Names of the namespaces of a config. */
export type NamespaceOf<Config> = keyof Databases<Config> & string;
/** Names of the tables of a namespace. */
export type TableOf<Config, Namespace extends NamespaceOf<Config>> = keyof Databases<Config>[Namespace] & string;

/** Record of a table: `RecordOf<typeof config, "shared", "films">`. */
export type RecordOf<
  Config,
  Namespace extends NamespaceOf<Config>,
  Table extends TableOf<Config, Namespace>,
> = RecordOfSchema<SchemaOf<Config, Namespace, Table>>;

/** Record to insert into a table: `InsertOf<typeof config, "shared", "films">`. */
export type InsertOf<
  Config,
  Namespace extends NamespaceOf<Config>,
  Table extends TableOf<Config, Namespace>,
> = InsertOfSchema<SchemaOf<Config, Namespace, Table>>;
