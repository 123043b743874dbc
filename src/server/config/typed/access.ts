import type { JsonValue } from "../../../kernel/json/json.ts";
import type {
  AppAccess,
  DatabaseAccessor,
  DatabaseTransaction,
  JobsAccessor,
  ServerDatabaseAccessor,
  TableAccessor,
  TransactionTable,
  UserAccess,
} from "../app/index.ts";
import type { HookContext, Lookup, RuleContext } from "../context.ts";
import type { Auth } from "../identity.ts";
import type { AnyTables, TablesAmong } from "./declared.ts";
import type { RecordOf } from "./records.ts";

// `app` and the contexts of rules and hooks, typed from a config. Each falls back to the untyped one where the config declares
// nothing.

interface TypedLookups<Tables> {
  table<Name extends keyof Tables & string>(name: Name): Lookup<RecordOf<Tables[Name]>, Tables, Name>;
}

/** Lookups where there is no table. */
interface NoLookups {
  table(name: never): Lookup;
}

/** Lookups in the tables of one file. */
export type LookupsOf<Tables> = string extends keyof Tables
  ? Pick<RuleContext, "table">
  : [keyof Tables] extends [never]
    ? NoLookups
    : TypedLookups<Tables>;

interface TypedFiles<Namespaces> {
  db<Name extends keyof Namespaces & string>(namespace: Name, instanceId?: string): LookupsOf<Namespaces[Name]>;
}

/** The context of a rule. `Own`: the tables of its namespace; none for a rule that is about no record or instance. */
export type RuleContextOf<Namespaces, Own> = Pick<RuleContext, "namespace" | "instanceId" | "sent"> &
  LookupsOf<Own> &
  (string extends keyof Namespaces ? Pick<RuleContext, "db"> : TypedFiles<Namespaces>);

interface TypedTransaction<Tables> {
  table<Name extends keyof Tables & string>(name: Name): TransactionTable<RecordOf<Tables[Name]>, Tables, Name>;
}

type TransactionOf<Tables> = Omit<DatabaseTransaction, "table"> & TypedTransaction<Tables>;

interface TypedDatabase<Tables> {
  table<Name extends keyof Tables & string>(name: Name): TableAccessor<RecordOf<Tables[Name]>, Tables, Name>;
  /** Runs a transaction: see `ServerDatabaseAccessor`. */
  transaction<T>(work: (tx: TransactionOf<Tables>) => T extends PromiseLike<unknown> ? never : T): Promise<T>;
}

/** The type `Accessor` with the tables of one file. */
type DatabaseOf<Tables, Accessor> = string extends keyof Tables
  ? Accessor
  : Omit<Accessor, "table" | "transaction"> & TypedDatabase<Tables>;

interface TypedDatabases<Namespaces, Accessor> {
  db<Name extends keyof Namespaces & string>(
    namespace: Name,
    instanceId?: string,
  ): DatabaseOf<TablesAmong<Namespaces, Name>, Accessor>;
}

/** The access that `app.as(auth)` returns. */
type UserAccessOf<Namespaces> = Omit<UserAccess, "db"> & TypedDatabases<Namespaces, DatabaseAccessor>;

interface TypedUsers<Namespaces> {
  /** Returns access with the rights of a user: see `AppAccess`. */
  as(auth: Auth | null): UserAccessOf<Namespaces>;
}

type AppOfTables<Namespaces> = string extends keyof Namespaces
  ? AppAccess
  : Omit<AppAccess, "db" | "as"> & TypedDatabases<Namespaces, ServerDatabaseAccessor> & TypedUsers<Namespaces>;

/** The type that a schema made with `t` from "elysia" describes; any JSON for another schema, or none. */
export type DataOf<Schema> = Schema extends { static: infer Data } ? Data : JsonValue;

interface TypedJobs<Jobs> {
  readonly jobs: JobsAccessor<{ [Name in keyof Jobs & string]: DataOf<Jobs[Name]> }>;
}

/** `app` with the tables and the jobs of a config. `Jobs`: the schemas of their data by their names. */
export type AppOf<Namespaces, Jobs = AnyTables> = string extends keyof Jobs
  ? AppOfTables<Namespaces>
  : Omit<AppOfTables<Namespaces>, "jobs"> & TypedJobs<Jobs>;

/** The context of a hook. `Own`: the tables of its namespace. */
export type HookContextOf<Namespaces, Own, Jobs = AnyTables> = AppOf<Namespaces, Jobs> &
  Pick<HookContext, "namespace" | "instanceId"> &
  LookupsOf<Own>;
