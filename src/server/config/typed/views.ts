import type { Field } from "../sections/tables/fields.ts";
import type { ViewConfig } from "../sections/tables/views.ts";
import type { RuleContextOf } from "./access.ts";
import type { RecordOf } from "./records.ts";
import type { TypedRule } from "./rules.ts";

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
  read?: TypedRule<R, Context>;
}

/**
 * Views as any of them are. With `TypedViews` beside it in a union, from which schemas and the parameters of rules are inferred: in an
 * intersection of mapped types TypeScript 5.4 infers nothing. A type with a signature here would take those parameters' types away.
 */
export interface AnyViews {
  [view: string]: Omit<ViewConfig, "access"> & {
    // biome-ignore lint/complexity/noBannedTypes: any other type of functions has a signature
    access?: { read?: boolean | Function };
  };
}

/** The views of a namespace. No config is of this type, so that a mistake in one is named by the type of namespaces. */
export interface TypedViews<Views, Own, Namespaces> {
  tables?: never;
  views?: { [View in keyof Views]: TypedView<Views[View], Own, Namespaces> };
}

/** A view whose rule knows its records. `Own`: the tables of its namespace. */
interface TypedView<Schema, Own, Namespaces> extends Omit<ViewConfig, "schema" | "access" | "live"> {
  /** The fields that the SQL gives: see `ViewConfig`. */
  schema: Schema & { readonly [field: string]: Field };
  /** The rule of reading: see `ViewConfig`. */
  access?: TypedViewAccess<NoInfer<RecordOf<ViewSchema<Schema>>>, RuleContextOf<NoInfer<Namespaces>, NoInfer<Own>>>;
  /** The tables whose changes are told to subscribers: see `ViewConfig`. */
  live?: readonly (keyof NoInfer<Own> & string)[];
}
