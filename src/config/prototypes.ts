import type { NamespaceConfig, PlatformConfig, TableConfig } from "./types.ts";

interface Named<T> {
  [name: string]: T;
}

/** A copy without a prototype, whose entries have gone through `change`. */
function bare<T>(map: Named<T> | undefined, change: (entry: T) => T = (entry) => entry): Named<T> {
  const copy: Named<T> = Object.create(null);
  for (const [name, entry] of Object.entries(map ?? {})) copy[name] = change(entry);
  return copy;
}

const bareTable = (table: TableConfig): TableConfig =>
  table.schema === undefined ? table : { ...table, schema: bare(table.schema) };

const bareNamespace = (namespace: NamespaceConfig): NamespaceConfig => ({
  ...namespace,
  tables: bare(namespace.tables, bareTable),
});

/**
 * The same config with maps of names that have no prototype, so that a name from a request (`constructor`,
 * `hasOwnProperty`) finds nothing that nobody declared. Absent maps stay absent.
 */
export function withoutPrototypes(config: PlatformConfig): PlatformConfig {
  const { databases, storage, auth, kv, d1, vectorize, rooms, serviceKeys } = config;
  return {
    ...config,
    ...(databases && { databases: bare(databases, bareNamespace) }),
    ...(storage && { storage: { ...storage, buckets: bare(storage.buckets) } }),
    ...(auth?.oauth && { auth: { ...auth, oauth: bare(auth.oauth) } }),
    ...(kv && { kv: bare(kv) }),
    ...(d1 && { d1: bare(d1) }),
    ...(vectorize && { vectorize: bare(vectorize) }),
    ...(rooms && {
      rooms: bare(rooms, (room) => ({
        ...room,
        ...(room.actions && { actions: bare(room.actions) }),
        ...(room.timers && { timers: bare(room.timers) }),
      })),
    }),
    ...(serviceKeys && { serviceKeys: bare(serviceKeys) }),
  };
}
