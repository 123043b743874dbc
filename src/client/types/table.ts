import type { CheckedPath, WithRelated } from "../../server/config/typed/expand.ts";
import type { FilterOf } from "../../server/config/typed/filters.ts";
import type { RecordOf } from "../../server/config/typed/records.ts";
import type { FormOptions } from "../tables/forms.ts";
import type { Cancellable, Query } from "./query.ts";
import type { ChangesOfSchema, InsertInBatch, InsertOfSchema, UpsertOfSchema } from "./records.ts";

export interface ConditionOptions<R> {
  /** Conditions that the stored record must match at the time of the write. Errors: `precondition_failed`. */
  if?: FilterOf<R>;
}

export interface Batch<Schema> {
  inserts?: readonly InsertInBatch<Schema>[];
  updates?: readonly { id: string; data: ChangesOfSchema<Schema> }[];
  deletes?: readonly string[];
}

export interface BatchResult<R> {
  inserted: R[];
  updated: R[];
  deleted: { id: string }[];
}

/** Table: a query of all its records, and its writes. For `update` and `delete` of a query, use `where(…)`. */
export interface Table<Tables, Name extends keyof Tables & string>
  extends Omit<Query<Tables, Name, RecordOf<Tables[Name]>>, "update" | "delete"> {
  /** Returns a record; null if there is none, or the caller may not read it. */
  get<
    Field extends keyof RecordOf<Tables[Name]> & string = keyof RecordOf<Tables[Name]> & string,
    const Path extends string = never,
  >(
    id: string,
    options?: Cancellable & {
      fields?: readonly Field[];
      expand?: readonly (Path & CheckedPath<Tables, Name, Path>)[];
      /** Seconds for which the `url` of each file is good without a token: 1 to 604,800. */
      signFiles?: number;
    },
  ): Promise<WithRelated<
    Tables,
    Name,
    Pick<RecordOf<Tables[Name]>, Field | ("id" & keyof RecordOf<Tables[Name]>)>,
    Path
  > | null>;
  /** Inserts a record. With `File` or `Blob` objects in fields of files it is sent as a form, which does not wait offline. */
  insert(record: InsertOfSchema<Tables[Name]>, options?: FormOptions): Promise<RecordOf<Tables[Name]>>;
  /**
   * Updates fields of a record; `increment` and `deleteField` are atomic. In a list of files those with an `id` stay, in this
   * order, and new ones follow; a single new file is added to the list. Errors: `not_found`.
   */
  update(
    id: string,
    changes: ChangesOfSchema<Tables[Name], Blob>,
    options?: ConditionOptions<RecordOf<Tables[Name]>> & FormOptions,
  ): Promise<RecordOf<Tables[Name]>>;
  /** Updates the record with the same id, or the same value of `conflictTarget`, a unique field; inserts it if there is none. */
  upsert(
    record: UpsertOfSchema<Tables[Name]>,
    options: { conflictTarget: keyof RecordOf<Tables[Name]> & string } & FormOptions,
  ): Promise<RecordOf<Tables[Name]>>;
  upsert(record: UpsertOfSchema<Tables[Name]> & { id: string }, options?: FormOptions): Promise<RecordOf<Tables[Name]>>;
  /** Deletes a record. Errors: `not_found`. */
  delete(id: string, options?: ConditionOptions<RecordOf<Tables[Name]>>): Promise<void>;
  /** Executes up to 500 writes, all or none. With `upsert`, inserts update existing records with the same ids. */
  batch(operations: Batch<Tables[Name]>, options?: { upsert?: boolean }): Promise<BatchResult<RecordOf<Tables[Name]>>>;
}

type OperationOf<Tables, Name extends keyof Tables & string> =
  | { table: Name; action: "insert"; data: InsertInBatch<Tables[Name]> }
  | ({ table: Name; action: "update"; id: string; data: ChangesOfSchema<Tables[Name]> } & ConditionOptions<
      RecordOf<Tables[Name]>
    >)
  | ({
      table: Name;
      action: "upsert";
      data: InsertInBatch<Tables[Name]>;
      conflictTarget?: keyof RecordOf<Tables[Name]> & string;
    } & ConditionOptions<RecordOf<Tables[Name]>>)
  | ({ table: Name; action: "delete"; id: string } & ConditionOptions<RecordOf<Tables[Name]>>);

/** Operation of a transaction. */
export type Operation<Tables> = { [Name in keyof Tables & string]: OperationOf<Tables, Name> }[keyof Tables & string];

type ResultOf<Tables, Done> = Done extends { action: "delete" }
  ? { id: string }
  : Done extends { table: infer Name extends keyof Tables }
    ? RecordOf<Tables[Name]>
    : never;

/** Tables of a namespace, or of one instance. */
export interface Database<Tables> {
  table<Name extends keyof Tables & string>(name: Name): Table<Tables, Name>;
  /** Executes up to 500 operations on any tables, in order, all or none. Returns the results in the same order. */
  transaction<const Operations extends readonly Operation<Tables>[]>(
    operations: Operations,
  ): Promise<{ -readonly [Index in keyof Operations]: ResultOf<Tables, Operations[Index]> }>;
}
