// The declarations of a config, as types alone: clients are typed from them, so nothing here needs a type of the server.

/** The schemas of tables by their names; `unknown` for a table without one. */
export interface AnyTables {
  [table: string]: unknown;
}
/** Tables by the names of their namespaces. */
export interface AnyNamespaces {
  [namespace: string]: AnyTables;
}

/**
 * The tables of a namespace, with all namespaces of the config, to whose tables references such as `shared/users` lead. These are under
 * a number, which `keyof Tables & string` leaves out.
 */
export type TablesAmong<Namespaces, Name extends keyof Namespaces> = Namespaces[Name] & { readonly 0: Namespaces };

/** The namespaces that `TablesAmong` has added; `unknown` without them. */
export type NamespacesAround<Tables> = Tables extends { readonly 0: infer Namespaces } ? Namespaces : unknown;

/**
 * The constraint under which TypeScript infers the namespaces of a config. A namespace without tables is inferred as `unknown`;
 * with `unknown` as the constraint, namespaces with computed names would refer to themselves.
 */
export interface InferredNamespaces {
  // biome-ignore lint/suspicious/noExplicitAny: the only constraint that both forms above fit
  [namespace: string]: any;
}

/** Namespaces as TypeScript infers them, normalized: `tables: {}` is inferred as `unknown`, and has no tables here. */
export type NamespacesOf<Namespaces> = {
  [Name in keyof Namespaces]: Namespaces[Name] extends AnyTables ? Namespaces[Name] : Record<never, never>;
};

/** Names of buckets or rooms. */
export interface AnyNames {
  [name: string]: unknown;
}

/** The declarations of a config, for code that is typed from it, such as a client. */
export interface ConfigTypes {
  /** The schema of each table by namespace and table; `RecordOf` returns the type of its records. */
  databases: AnyNamespaces;
  buckets: AnyNames;
  /** The actions of each room by its name: functions, whose last parameter and result are what clients send and receive. */
  rooms: AnyNames;
  /** The Elysia instance that `routes` returns, or a promise of it; `unknown` without routes. */
  routes?: unknown;
}

/** The types of a config: `TypesOf<typeof config>`. */
export type TypesOf<Config> = Config extends { readonly "~types"?: infer Types extends ConfigTypes }
  ? Types
  : ConfigTypes;
