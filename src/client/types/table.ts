import type { FilterOf } from "../../server/config/typed/filters.ts";
import type { RecordOf } from "../../server/config/typed/records.ts";
import type { CheckedPath, WithRelated } from "./expand.ts";
import type { Cancellable, Query } from "./query.ts";
import type { ChangesOfSchema, InsertOfSchema } from "./records.ts";

export interface ConditionOptions<R> {
  /** Conditions that the stored record must meet when it is written. Errors: `precondition_failed`. */
  if?: FilterOf<R>;
}

export interface Batch<Schema> {
  inserts?: readonly InsertOfSchema<Schema>[];
  updates?: readonly { id: string; data: ChangesOfSchema<Schema> }[];
  deletes?: readonly string[];
}

export interface BatchResult<R> {
  inserted: R[];
  updated: R[];
  deleted: { id: string }[];
}

/** A table: a query of all its records, and its writes. A query's `update` and `delete` are those of `where(…)`. */
export interface Table<Tables, Name extends keyof Tables & string>
  extends Omit<Query<Tables, Name, RecordOf<Tables[Name]>>, "update" | "delete"> {
  /** null when there is no such record, or the caller may not read it. */
  get<
    Field extends keyof RecordOf<Tables[Name]> & string = keyof RecordOf<Tables[Name]> & string,
    const Path extends string = never,
  >(
    id: string,
    options?: Cancellable & {
      fields?: readonly Field[];
      expand?: readonly (Path & CheckedPath<Tables, Name, Path>)[];
    },
  ): Promise<WithRelated<
    Tables,
    Name,
    Pick<RecordOf<Tables[Name]>, Field | ("id" & keyof RecordOf<Tables[Name]>)>,
    Path
  > | null>;
  insert(record: InsertOfSchema<Tables[Name]>): Promise<RecordOf<Tables[Name]>>;
  /** Changes fields of a record; `increment` and `deleteField` are atomic. Errors: `not_found`. */
  update(
    id: string,
    changes: ChangesOfSchema<Tables[Name]>,
    options?: ConditionOptions<RecordOf<Tables[Name]>>,
  ): Promise<RecordOf<Tables[Name]>>;
  /** Updates the record with the same id, or the same value of `conflictTarget`, a unique field; else inserts it. */
  upsert(
    record: InsertOfSchema<Tables[Name]>,
    options: { conflictTarget: keyof RecordOf<Tables[Name]> & string },
  ): Promise<RecordOf<Tables[Name]>>;
  upsert(record: InsertOfSchema<Tables[Name]> & { id: string }): Promise<RecordOf<Tables[Name]>>;
  /** Errors: `not_found`. */
  delete(id: string, options?: ConditionOptions<RecordOf<Tables[Name]>>): Promise<void>;
  /** Up to 500 writes, all or none. With `upsert`, inserts update the records that have their ids. */
  batch(operations: Batch<Tables[Name]>, options?: { upsert?: boolean }): Promise<BatchResult<RecordOf<Tables[Name]>>>;
}

type OperationOf<Tables, Name extends keyof Tables & string> =
  | { table: Name; action: "insert"; data: InsertOfSchema<Tables[Name]> }
  | ({ table: Name; action: "update"; id: string; data: ChangesOfSchema<Tables[Name]> } & ConditionOptions<
      RecordOf<Tables[Name]>
    >)
  | ({
      table: Name;
      action: "upsert";
      data: InsertOfSchema<Tables[Name]>;
      conflictTarget?: keyof RecordOf<Tables[Name]> & string;
    } & ConditionOptions<RecordOf<Tables[Name]>>)
  | ({ table: Name; action: "delete"; id: string } & ConditionOptions<RecordOf<Tables[Name]>>);

/** An operation of a transaction. */
export type Operation<Tables> = { [Name in keyof Tables & string]: OperationOf<Tables, Name> }[keyof Tables & string];

type ResultOf<Tables, Done> = Done extends { action: "delete" }
  ? { id: string }
  : Done extends { table: infer Name extends keyof Tables }
    ? RecordOf<Tables[Name]>
    : never;

/** The tables of a namespace, or of one instance of it. */
export interface Database<Tables> {
  table<Name extends keyof Tables & string>(name: Name): Table<Tables, Name>;
  /** Up to 500 operations over all tables, in order, all or none. The results have the order of the operations. */
  transaction<const Operations extends readonly Operation<Tables>[]>(
    operations: Operations,
  ): Promise<{ -readonly [Index in keyof Operations]: ResultOf<Tables, Operations[Index]> }>;
}
