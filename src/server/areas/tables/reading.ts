import type { Clock } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { Principals } from "../../access/principals.ts";
import type { SignerDeps } from "../../access/signers.ts";
import type { NamespaceConfig } from "../../config/types.ts";
import type { DatabaseFile } from "../../db/index.ts";
import type { Endpoint } from "../../http/endpoint.ts";
import { readingEndpoints } from "./endpoints/endpoints.ts";
import { readNamespaces } from "./records/read-namespaces.ts";
import { createTableService } from "./service.ts";
import { createFollowers } from "./tombstones/followers.ts";

/** Endpoints that read tables, by what follows the table in their path: `""`, `"count"`, `":id"`, …. */
export interface ReadingEndpoints {
  static: ReadonlyMap<string, Endpoint>;
  /** Endpoints of instances. */
  dynamic: ReadonlyMap<string, Endpoint>;
}

/**
 * Opens the tables in a process that does not write, for quick reads. `spoil` throws, and marks what is under way as unanswerable
 * here: whatever needs more than these files is for the process that writes them.
 */
export async function createTableReading(deps: {
  databases: Readonly<Record<string, NamespaceConfig>>;
  /** Directory of the database files. */
  directory: string;
  open: (path: string) => DatabaseFile;
  /** Returns the file of an instance that is lent to this process; null: it is not. */
  instance: (namespace: string, instanceId: string, path: string) => DatabaseFile | null;
  spoil: () => never;
  requirePresent: Principals["requirePresent"];
  clock: Clock;
  ids: Ids;
  logger: Logger;
  secret: string;
  publicUrl: string | null;
  /** Looks up who has signed urls. */
  account: SignerDeps["account"];
  serviceKey: SignerDeps["serviceKey"];
}): Promise<{ endpoints: ReadingEndpoints; lookups: Lookups }> {
  const { spoil } = deps;
  const namespaces = readNamespaces(deps);
  const service = createTableService({
    ...deps,
    namespaces,
    // Nothing is carried out: it never begins.
    followers: createFollowers({ ...deps, namespaces }),
    app: spoil,
    prepareJob: spoil,
    accountsChanged: async () => spoil(),
    files: spoil,
    vectorLibrary: spoil,
    // Searches by meaning are for the process that counts them.
    embeddingsLimit: { requests: 1, window: 1 },
  });
  // Its only work besides requests is that of a process that writes.
  await service.stop();
  return { endpoints: readingEndpoints(service), lookups: service.lookups };
}
