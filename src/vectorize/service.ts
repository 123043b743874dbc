import type { VectorAccessor } from "../config/app-access.ts";
import type { VectorMetric } from "../config/types.ts";
import { type DatabaseFile, type ReadCaller, SERVER_CALLER } from "../db/index.ts";
import { jsonCopy } from "../kernel/json-copy.ts";
import { parseIds, parseSearch, parseVectors } from "./actions.ts";
import type { Compaction } from "./compaction.ts";
import type { SearchPool } from "./search-pool.ts";
import type { VectorStore } from "./store.ts";
import type { IndexDefinition, SearchQuery, SearchTask, StoredVector } from "./types.ts";

export interface VectorService {
  readonly index: IndexDefinition;
  /** Replaces vectors of the same id, metadata too. Resolves to their number, when they are on disk. */
  upsert(vectors: readonly StoredVector[]): Promise<number>;
  /** The JSON of `{ matches, count }`, nearest first. */
  search(query: SearchQuery, caller: ReadCaller): Promise<string>;
  /** How many there were. */
  delete(ids: readonly string[]): Promise<number>;
  /** The JSON of `{ vectors }`, in the order asked, without those that are not there. */
  getByIds(ids: readonly string[], caller: ReadCaller): Promise<string>;
  describe(): { vectorCount: number; dimensions: number; metric: VectorMetric };
}

export function createVectorService(deps: {
  index: IndexDefinition;
  store: VectorStore;
  compaction: Compaction;
  pool: SearchPool;
  file: DatabaseFile;
  extensionPath: string;
}): VectorService {
  const { index, file, store, compaction, pool, extensionPath } = deps;
  const place = { path: file.path, extensionPath };
  /** The workers read on connections of their own, which do not know that a sync has failed. */
  const read = async (task: SearchTask, caller: ReadCaller): Promise<string> => {
    file.assertReadable();
    const text = await pool.run({ ...task, ...place }, caller);
    file.assertReadable();
    return text;
  };
  let vectorCount = store.count();
  return {
    index,
    async upsert(vectors) {
      vectorCount += await store.upsert(vectors);
      return vectors.length;
    },
    search: (query, caller) => read(store.searchJob(query), caller),
    async delete(ids) {
      const count = await store.delete(ids);
      vectorCount -= count;
      compaction.afterDeletions(count);
      return count;
    },
    getByIds: (ids, caller) => read(store.getJob(ids), caller),
    describe() {
      file.assertReadable();
      return { vectorCount, dimensions: index.dimensions, metric: index.metric };
    },
  };
}

/** `app.vectors(name)`: the same service, its arguments checked as a request's are. */
export function createVectorAccessor(service: VectorService): VectorAccessor {
  const { index } = service;
  return {
    async upsert(vectors) {
      // The public type promises JSON; what it cannot promise is checked as for a request.
      const list = vectors.map(({ id, values, metadata }) => ({
        id,
        values: [...values],
        metadata: jsonCopy(metadata ?? {}),
      }));
      return service.upsert(parseVectors(index, list));
    },
    async search(vector, options = {}) {
      const query = parseSearch(index, { ...options, vector: [...vector] });
      return JSON.parse(await service.search(query, SERVER_CALLER)).matches;
    },
    delete: async (ids) => service.delete(parseIds([...ids])),
  };
}
