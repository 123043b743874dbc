import type { Lookups } from "../access/lookups/lookups.ts";
import type { TableDoor } from "../access/table-door.ts";
import type { AppAccess, DatabaseAccessor } from "../config/app/index.ts";
import type { NamespaceConfig } from "../config/types.ts";
import type { StorageEngine } from "../db/index.ts";
import type { Endpoint } from "../http/endpoint.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { createDatabaseAccessor } from "./accessor.ts";
import { type DescribedTables, describeTables } from "./api/document.ts";
import { tableEndpoints, transactionEndpoints } from "./endpoints.ts";
import { openNamespaces, type TablesChangeListener } from "./namespaces.ts";
import { createTableService } from "./service.ts";

export interface TablesArea {
  endpoints: readonly Endpoint[];
  /** The declared tables for the OpenAPI document. */
  describe(): DescribedTables;
  /** `app.db(…)`. Errors: 404 when the namespace or table is not declared, at the first use. */
  accessor(namespace: string, instanceId?: string): DatabaseAccessor;
  /** Rights and filters for realtime. */
  readonly door: TableDoor;
  /** The context of the rules of other areas. */
  readonly lookups: Lookups;
  /** Waits for the hooks after writes. The engine closes the files. */
  stop(): Promise<void>;
}

/** Opens the declared namespaces. Errors: a declaration that would lose data; a file that cannot be opened. */
export function createTablesArea(deps: {
  databases: Readonly<Record<string, NamespaceConfig>>;
  engine: StorageEngine;
  /** The directory of the database files. */
  directory: string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
  app: () => AppAccess;
  onChange: TablesChangeListener;
  onCommit: TablesChangeListener;
}): TablesArea {
  const namespaces = openNamespaces(deps);
  const service = createTableService({ ...deps, namespaces });
  return {
    endpoints: [...tableEndpoints(service), ...transactionEndpoints(service)],
    describe: () => describeTables(namespaces, service),
    accessor: (namespace, instanceId) => createDatabaseAccessor(service, namespace, instanceId ?? null),
    door: service.door,
    lookups: service.lookups,
    stop: () => service.stop(),
  };
}
