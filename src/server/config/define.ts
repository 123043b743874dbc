import type { DefinedConfig, TypedConfig } from "./typed/config.ts";
import type { AnyNames, InferredNamespaces, NamespacesOf } from "./typed/declared.ts";
import type { WithUsers } from "./typed/users.ts";
import type { WithViews } from "./typed/views.ts";

/**
 * Defines the default export of a `platform.config.ts`. It checks types only; values are checked when the config is loaded.
 * `typeof` its result carries the declared types: see `TypesOf`.
 */
export function defineConfig<
  const Namespaces extends InferredNamespaces,
  const Buckets extends AnyNames,
  const Rooms extends AnyNames,
  const Triggers extends AnyNames,
  const Webhooks extends AnyNames,
  const Jobs extends AnyNames,
  Api,
  const In extends string = never,
  const Table extends string = "users",
  const Own = unknown,
  const Views = unknown,
>(
  config: TypedConfig<Namespaces, Buckets, Rooms, Triggers, Webhooks, Jobs, Api, In, Table, Own, Views>,
): DefinedConfig<{
  databases: NamespacesOf<WithViews<WithUsers<Namespaces, In, Table, Own>, Views>>;
  buckets: Buckets;
  rooms: Rooms;
  routes: Api;
}> {
  // Only the types differ: the rules are the same functions, with a narrower record type than TableRecord.
  return config as unknown as DefinedConfig<{
    databases: NamespacesOf<WithViews<WithUsers<Namespaces, In, Table, Own>, Views>>;
    buckets: Buckets;
    rooms: Rooms;
    routes: Api;
  }>;
}
