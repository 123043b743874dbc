import { join } from "node:path";
import { notFound, reasonOf } from "../../../kernel/errors.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { VectorAccessor } from "../../config/app/index.ts";
import type { DatabaseFile, StorageEngine } from "../../db/index.ts";
import { loadVectorExtension } from "../../db/vectors/load.ts";
import { vectorEndpoints } from "./endpoints.ts";
import { CACHE_KIB, SEARCH_PROCESSES_MAX } from "./limits.ts";
import {
  createSearches,
  createVectorAccessor,
  createVectorService,
  type Searches,
  type VectorService,
} from "./service.ts";
import { type Compaction, chunkVectors, createCompaction, createVectorStore, migrateIndex } from "./store.ts";
import type { IndexDefinition } from "./types.ts";

export type VectorArea = ReturnType<typeof createVectorArea>;

/**
 * Creates the area of vector indexes, one file each: `<data>/vectorize/NAME.db`. Errors: an Error that names the index whose
 * declaration has changed, or says that this system cannot load sqlite-vec. Rules: SPEC.md.
 */
export function createVectorArea(deps: {
  indexes: readonly IndexDefinition[];
  engine: StorageEngine;
  dataDirectory: string;
  /** Path of sqlite-vec; empty without indexes. */
  extensionPath: string;
  logger: Logger;
}) {
  const { indexes, engine, extensionPath, logger } = deps;
  const directory = join(deps.dataDirectory, "vectorize");
  // One processor remains for the server.
  const processesMax = Math.max(1, Math.min(SEARCH_PROCESSES_MAX, navigator.hardwareConcurrency - 1));
  const searches = createSearches({ processesMax, clock: engine.clock });
  const opened = indexes.map((index) => openIndex({ index, engine, directory, extensionPath, searches, logger }));
  const services = new Map(opened.map(({ service }) => [service.index.name, service]));

  return {
    endpoints: vectorEndpoints(services, engine.clock),
    /** Returns `app.vectors(index)`. Errors: 404 if no such index is declared. */
    accessor(name: string): VectorAccessor {
      const service = services.get(name);
      if (service === undefined) throw notFound(`There is no vector index "${name}"`);
      return createVectorAccessor(service);
    },
    /** Ends the search processes and background work. The engine closes the files. */
    async stop(): Promise<void> {
      await Promise.all([searches.stop(), ...opened.map(({ compaction }) => compaction.stop())]);
    },
  };
}

function openIndex(deps: {
  index: IndexDefinition;
  engine: StorageEngine;
  directory: string;
  extensionPath: string;
  searches: Searches;
  logger: Logger;
}): { service: VectorService; compaction: Compaction } {
  const { index, engine, directory, extensionPath, searches, logger } = deps;
  const path = join(directory, `${index.name}.db`);
  const file: DatabaseFile = engine.open(path, {
    cacheKiB: CACHE_KIB,
    migrate(sqlite, commits) {
      try {
        loadVectorExtension(sqlite, extensionPath);
      } catch (cause) {
        const reason = reasonOf(cause);
        throw new Error(`vectorize: SQLite here cannot load sqlite-vec, which vector indexes need: ${reason}`, {
          cause,
        });
      }
      migrateIndex(sqlite, index, commits);
    },
  });
  const compaction = createCompaction({ file, chunkVectors: chunkVectors(index.dimensions), logger });
  const store = createVectorStore(file, index);
  return {
    service: createVectorService({ index, file, store, compaction, searches, extensionPath, logger }),
    compaction,
  };
}
