import type { Field } from "../sections/tables/fields.ts";
import type { ACCOUNT_FIELDS, UsersConfig } from "../sections/users-table.ts";
import type { RuleContextOf } from "./access.ts";
import type { RecordOf } from "./records.ts";
import type { TypedRule, TypedUpdateRule } from "./rules.ts";

/** The fields of a table; false disables `createdAt` or `updatedAt`. */
export type SchemaShape = { readonly [field: string]: Field | false };

type AccountFields = typeof ACCOUNT_FIELDS;

/** The schema of the table of users. `Own`: the fields of a config's own. */
type UsersSchema<Own> = AccountFields & { updatedAt: false } & (unknown extends Own ? unknown : Own);

/** The namespaces of a config with its table of users. */
export type WithUsers<Namespaces, In extends string, Table extends string, Own> = [In] extends [never]
  ? Namespaces
  : {
      [Name in keyof Namespaces]: Name extends In
        ? Namespaces[Name] & { [Users in Table]: UsersSchema<Own> }
        : Namespaces[Name];
    };

interface TypedUsersAccess<R, Context> {
  read?: TypedRule<R, Context>;
  /** The rule for changes of the fields of your own. */
  update?: TypedUpdateRule<R, Context>;
}

type TablesIn<All, In> = In extends keyof All ? All[In] : unknown;

/** `auth.users`, whose rules know the records. `All`: the namespaces with the table of users. */
export interface TypedUsersTable<In extends string, Table extends string, Own, All>
  extends Omit<UsersConfig, "in" | "table" | "schema" | "access"> {
  /** The static namespace with the table. */
  in: In;
  /** The name of the table; `users` by default. */
  table?: Table;
  /** Fields of your own. */
  schema?: Own & SchemaShape;
  access?: TypedUsersAccess<
    NoInfer<RecordOf<UsersSchema<Own>>>,
    RuleContextOf<NoInfer<All>, NoInfer<TablesIn<All, In>>>
  >;
}
