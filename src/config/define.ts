import type { JsonValue } from "../kernel/json/json.ts";
import type { MaybePromise, OrNothing } from "../kernel/maybe-promise.ts";
import type { HookContext, RuleContext } from "./context.ts";
import type {
  Auth,
  Field,
  Filter,
  NamespaceConfig,
  PlatformConfig,
  TableAccess,
  TableConfig,
  TableRecord,
} from "./types.ts";

interface ValueByType {
  string: string;
  text: string;
  number: number;
  integer: number;
  boolean: boolean;
  datetime: string;
  json: JsonValue;
}

type SchemaShape = { readonly [field: string]: Field | false };

/**
 * A member by its name. `F extends { type: … }` does not work: before TypeScript 6 the inferred schema counts as a fresh
 * object literal, which is not assignable to a type that lacks one of its members.
 */
type Member<F, Name extends string> = Name extends keyof F ? F[Name] : undefined;

type ValueOf<F> =
  Member<F, "enum"> extends readonly (infer Choice)[]
    ? Choice
    : Member<F, "type"> extends infer Type extends keyof ValueByType
      ? ValueByType[Type]
      : JsonValue;

type FieldValue<F> = Member<F, "required"> extends true ? ValueOf<F> : ValueOf<F> | null;

interface AutoFields {
  id: string;
  createdAt: string;
  updatedAt: string;
}

/**
 * A record of a table with this schema. `required` fields are never null, all others may be; `enum` gives the union of its
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

/** The record that a `before*` hook may return, which is written instead. */
type Written<R> = string extends keyof R ? TableRecord : { [Name in keyof R]?: R[Name] | null };

type TypedRule<R> = boolean | ((auth: Auth | null, record: R, context: RuleContext) => MaybePromise<boolean | Filter>);

type TypedUpdateRule<R> =
  | boolean
  | ((auth: Auth | null, record: R, next: R, context: RuleContext) => MaybePromise<boolean | Filter>);

interface TypedAccess<R> extends Pick<TableAccess, "upsert"> {
  read?: TypedRule<R>;
  insert?: TypedRule<R>;
  update?: TypedUpdateRule<R>;
  delete?: TypedRule<R>;
}

interface TypedHooks<R> {
  beforeInsert?: (auth: Auth | null, record: R, context: HookContext) => MaybePromise<OrNothing<Written<R>>>;
  beforeUpdate?: (
    auth: Auth | null,
    record: R,
    changes: Written<R>,
    context: HookContext,
  ) => MaybePromise<OrNothing<Written<R>>>;
  beforeDelete?: (auth: Auth | null, record: R, context: HookContext) => MaybePromise<void>;
  afterInsert?: (record: R, context: HookContext) => MaybePromise<void>;
  afterUpdate?: (record: R, before: R, context: HookContext) => MaybePromise<void>;
  afterDelete?: (record: R, context: HookContext) => MaybePromise<void>;
}

interface TypedTable<Schema> extends Omit<TableConfig, "schema" | "access" | "hooks"> {
  schema?: Schema & SchemaShape;
  access?: TypedAccess<NoInfer<RecordOf<Schema>>>;
  hooks?: TypedHooks<NoInfer<RecordOf<Schema>>>;
}

interface TypedNamespace<Tables> extends Omit<NamespaceConfig, "tables"> {
  tables: { [Table in keyof Tables]: TypedTable<Tables[Table]> };
}

/** `PlatformConfig` whose rules and hooks know the fields of their own table. */
export interface TypedConfig<Namespaces> extends Omit<PlatformConfig, "databases"> {
  databases?: { [Namespace in keyof Namespaces]: TypedNamespace<Namespaces[Namespace]> };
}

/**
 * The default export of a `platform.config.ts`. It checks types only; values are checked when the config is loaded.
 */
export function defineConfig<const Namespaces extends { [namespace: string]: { [table: string]: unknown } }>(
  config: TypedConfig<Namespaces>,
): PlatformConfig {
  // Only the types differ: the rules are the same functions, whose record has a narrower type than TableRecord.
  return config as unknown as PlatformConfig;
}
