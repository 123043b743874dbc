import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type { Auth } from "../identity.ts";
import type { Field } from "../sections/tables/fields.ts";
import type { ViewConfig } from "../sections/tables/views.ts";
import type { RuleContextOf } from "./access.ts";
import type { FilterOf } from "./filters.ts";
import type { RecordOf } from "./records.ts";

/** The schema of a view as that of a table: `createdAt` and `updatedAt` exist where the view declares them. */
type ViewSchema<Schema> = { [Name in Exclude<"createdAt" | "updatedAt", keyof Schema>]: false } & Schema;

type ViewSchemas<Views> = unknown extends Views ? unknown : { [View in keyof Views]: ViewSchema<Views[View]> };

/** The namespaces of a config with their views, which are read like tables. */
export type WithViews<Namespaces, Views> = unknown extends Views
  ? Namespaces
  : {
      [Name in keyof Namespaces]: Name extends keyof Views
        ? Namespaces[Name] & ViewSchemas<Views[Name]>
        : Namespaces[Name];
    };

interface TypedViewAccess<R, Context> {
  read?: boolean | ((auth: Auth | null, record: R, context: Context) => MaybePromise<boolean | FilterOf<R>>);
}

/** A view whose rule knows its records. `Own`: the tables of its namespace. */
export interface TypedView<Schema, Own, Namespaces> extends Omit<ViewConfig, "schema" | "access" | "live"> {
  /** The fields that the SQL gives: see `ViewConfig`. */
  schema: Schema & { readonly [field: string]: Field };
  /** The rule of reading: see `ViewConfig`. */
  access?: TypedViewAccess<NoInfer<RecordOf<ViewSchema<Schema>>>, RuleContextOf<NoInfer<Namespaces>, NoInfer<Own>>>;
  /** The tables whose changes are told to subscribers: see `ViewConfig`. */
  live?: readonly (keyof NoInfer<Own> & string)[];
}
