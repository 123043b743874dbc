import type { Database } from "bun:sqlite";
import { vectorizeLayout } from "../../../../schema/migrations/index.ts";
import { SerialisedJson } from "../../../kernel/json/shown.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { type Actor, type Commits, type DatabaseFile, layOut, SERVER_ACTOR, type Transaction } from "../../db/index.ts";
import { conditionsSql } from "./filter.ts";
import {
  CHUNK_BYTES,
  CHUNK_VECTORS_MAX,
  CHUNK_VECTORS_MIN,
  COMPACT_AFTER_DELETIONS,
  COMPACT_STEP_VECTORS,
} from "./limits.ts";
import type {
  Bound,
  IndexDefinition,
  ListQuery,
  ProductJob,
  QueryJob,
  SearchQuery,
  SearchTask,
  StoredVector,
} from "./types.ts";

/**
 * Migrates the file of an index, `vectorize/NAME.db`. `items` has ids and metadata; `vectors`, a virtual table of sqlite-vec, has
 * the vectors under the same rowid, in chunks. sqlite-vec has no dot product, for which the chunks are read directly.
 */
export function migrateIndex(sqlite: Database, index: IndexDefinition, commits?: Commits): void {
  refuseChange(sqlite, index);
  const { dimensions, metric } = index;
  const distance = metric === "cosine" ? "cosine" : "l2";
  layOut(vectorizeLayout, { dimensions, metric, distance, chunkVectors: chunkVectors(dimensions) })(sqlite, commits);
}

export function chunkVectors(dimensions: number): number {
  const fitting = Math.floor(CHUNK_BYTES / (dimensions * Float32Array.BYTES_PER_ELEMENT * 8)) * 8;
  return Math.min(CHUNK_VECTORS_MAX, Math.max(CHUNK_VECTORS_MIN, fitting));
}

/** Refuses a changed declaration: stored vectors are meaningless with other dimensions, and scores differ with another metric. */
function refuseChange(sqlite: Database, index: IndexDefinition): void {
  if (sqlite.query("SELECT 1 FROM sqlite_schema WHERE name = 'index_definition'").get() === null) return;
  const found = sqlite
    .query<Pick<IndexDefinition, "dimensions" | "metric">, []>("SELECT * FROM index_definition")
    .get();
  if (found === null) return;
  for (const member of ["dimensions", "metric"] as const) {
    if (found[member] === index[member]) continue;
    throw new Error(
      `vectorize.${index.name}.${member}: the index on disk was made with ${found[member]}, the config says ` +
        `${index[member]}; declare a new index, or remove vectorize/${index.name}.db and its -wal file to begin anew`,
    );
  }
}

const FIND = "SELECT rowid FROM items WHERE id = ?1";
const METADATA = "SELECT metadata FROM items WHERE rowid = ?1";
const bytesOf = (values: Float32Array): Uint8Array => new Uint8Array(values.buffer);

export type VectorStore = ReturnType<typeof createVectorStore>;

export function createVectorStore(file: DatabaseFile, index: IndexDefinition) {
  const insert = (tx: Transaction, vector: StoredVector): void => {
    const { lastInsertRowid } = tx
      .query("INSERT INTO items (id, metadata) VALUES (?1, ?2)")
      .run(vector.id, vector.metadata);
    tx.query("INSERT INTO vectors (rowid, embedding) VALUES (?1, ?2)").run(lastInsertRowid, bytesOf(vector.values));
  };
  const update = (tx: Transaction, rowid: number, vector: StoredVector): void => {
    tx.query("UPDATE items SET metadata = ?2 WHERE rowid = ?1").run(rowid, vector.metadata);
    tx.query("UPDATE vectors SET embedding = ?2 WHERE rowid = ?1").run(rowid, bytesOf(vector.values));
  };
  /** Audits a change; to be called before it. The log has a vector's metadata, not its values. */
  const audit = (tx: Transaction, id: string, rowid: number | null, vector: StoredVector | null): void =>
    tx.audit(({ isShown }) => {
      const action = vector === null ? "vector.delete" : "vector.upsert";
      const target = `vectorize/${index.name}/${id}`;
      // The metadata of a thousand vectors may be 64 MiB.
      if (!isShown) return { action, target };
      const present = rowid === null ? null : tx.query<{ metadata: string }>(METADATA).get(rowid);
      const before = present === null ? null : new SerialisedJson(present.metadata);
      return { action, target, before, after: vector === null ? null : new SerialisedJson(vector.metadata) };
    });
  return {
    /** Inserts or replaces vectors. Resolves to the number of new ones, when durable. `by`: the actor; the server by default. */
    upsert: (list: readonly StoredVector[], by: Actor = SERVER_ACTOR): Promise<number> =>
      file.write((tx) => {
        tx.causedBy(by);
        let newCount = 0;
        for (const vector of list) {
          const found = tx.query<{ rowid: number }>(FIND).get(vector.id);
          audit(tx, vector.id, found?.rowid ?? null, vector);
          if (found !== null) {
            update(tx, found.rowid, vector);
            continue;
          }
          insert(tx, vector);
          newCount++;
        }
        return newCount;
      }),
    /** Deletes vectors. Resolves to the number of those that existed. */
    delete: (ids: readonly string[], by: Actor = SERVER_ACTOR): Promise<number> =>
      file.write((tx) => {
        tx.causedBy(by);
        let count = 0;
        for (const id of ids) {
          const found = tx.query<{ rowid: number }>(FIND).get(id);
          if (found === null) continue;
          audit(tx, id, found.rowid, null);
          tx.query("DELETE FROM vectors WHERE rowid = ?1").run(found.rowid);
          tx.query("DELETE FROM items WHERE rowid = ?1").run(found.rowid);
          count++;
        }
        return count;
      }),
    count: (): number => file.query<{ count: number }>("SELECT count(*) AS count FROM items").get()?.count ?? 0,
    searchJob: (query: SearchQuery): SearchTask =>
      index.metric === "dot-product" ? productJob(query) : distanceJob(index, query),
    getJob: (ids: readonly string[]): SearchTask => ({
      shape: "vectors",
      sql: `SELECT items.id, items.metadata, vectors.embedding FROM json_each(?1) AS wanted
        JOIN items ON items.id = wanted.value JOIN vectors ON vectors.rowid = items.rowid ORDER BY wanted.key`,
      params: [JSON.stringify(ids)],
    }),
    listJob: ({ prefix, after, limit }: ListQuery): SearchTask => ({
      shape: "list",
      // One lower bound: with two, SQLite seeks to the first alone and reads every id between them.
      sql: "SELECT id, metadata FROM items WHERE id >= max(?1, ?2) AND id <> ?1 ORDER BY id LIMIT ?3",
      params: [after, prefix, limit + 1],
      prefix,
      limit,
    }),
  };
}

type Bind = (value: Bound) => string;

/** Returns SQL for the rowids that match the filter; null without one. It runs before the search, which so returns topK of the matching. */
const matching = ({ filter }: SearchQuery, bind: Bind): string | null =>
  filter.length === 0 ? null : `SELECT rowid FROM items WHERE ${conditionsSql(filter, bind)}`;

/** Returns SQL for the column of the embedding, NULL unless requested, and for the join that reads it. */
const valuesOf = ({ returnValues }: SearchQuery): [column: string, join: string] =>
  returnValues ? ["vectors.embedding", "JOIN vectors ON vectors.rowid = nearest.rowid"] : ["NULL", ""];

function distanceJob({ metric }: IndexDefinition, query: SearchQuery): QueryJob {
  const params: Bound[] = [];
  const bind = createBinder(params);
  const isNearest = `embedding MATCH ${bind(bytesOf(query.vector))} AND k = ${bind(query.topK)}`;
  const kept = matching(query, bind);
  const conditions = kept === null ? isNearest : `${isNearest} AND rowid IN (${kept})`;
  // Rounding can make the cosine of a vector with itself slightly greater than 1.
  const score = metric === "cosine" ? "max(-1.0, min(1.0, 1.0 - nearest.distance))" : "nearest.distance";
  const [values, join] = valuesOf(query);
  const sql = `SELECT items.id, ${score}, items.metadata, ${values}
    FROM (SELECT rowid, distance FROM vectors WHERE ${conditions}) AS nearest
    JOIN items ON items.rowid = nearest.rowid ${join} ORDER BY nearest.distance, items.id`;
  return { shape: "matches", sql, params };
}

function productJob(query: SearchQuery): ProductJob {
  const { vector, topK } = query;
  const params: Bound[] = [];
  const kept = matching(query, createBinder(params));
  const [values, join] = valuesOf(query);
  const sql = `SELECT items.rowid, items.id, items.metadata, ${values} FROM (SELECT value AS rowid FROM json_each(?1)) AS nearest
    JOIN items ON items.rowid = nearest.rowid ${join} ORDER BY items.id`;
  return { shape: "products", matching: kept === null ? null : { sql: kept, params }, vector, topK, sql };
}

/** Creates a function that binds a value and returns its placeholder: ?1, ?2, … in order. */
function createBinder(params: Bound[]): Bind {
  return (value) => `?${params.push(value)}`;
}

/** Selects the emptiest chunk that is at most half full, except the newest one, which is being filled. */
const SPARSE_CHUNK = `SELECT chunk_id FROM vectors_rowids GROUP BY chunk_id
  HAVING count(*) * 2 <= ?1 AND chunk_id < (SELECT max(chunk_id) FROM vectors_chunks) ORDER BY count(*) LIMIT 1`;
const ROWS_OF_CHUNK = "SELECT rowid FROM vectors_rowids WHERE chunk_id = ?1 LIMIT ?2";

/**
 * Compaction of chunks. sqlite-vec adds vectors to its newest chunk only, and frees a chunk when its last vector is deleted. After
 * many scattered deletions, nearly empty chunks would remain and still be searched, so their vectors are moved to the newest one.
 */
export type Compaction = ReturnType<typeof createCompaction>;

export function createCompaction(deps: { file: DatabaseFile; chunkVectors: number; logger: Logger }) {
  const { file, chunkVectors, logger } = deps;
  let deletionCount = 0;
  let isStopped = false;
  let running: Promise<void> | null = null;

  const moveSome = (chunkId: number): Promise<number> =>
    file.write((tx) => {
      const rows = tx.query<{ rowid: number }>(ROWS_OF_CHUNK).all(chunkId, COMPACT_STEP_VECTORS);
      for (const { rowid } of rows) {
        const stored = tx.query<{ embedding: Uint8Array }>("SELECT embedding FROM vectors WHERE rowid = ?1").get(rowid);
        if (stored === null) continue;
        tx.query("DELETE FROM vectors WHERE rowid = ?1").run(rowid);
        tx.query("INSERT INTO vectors (rowid, embedding) VALUES (?1, ?2)").run(rowid, stored.embedding);
      }
      return rows.length;
    });
  const compact = async (): Promise<void> => {
    while (!isStopped) {
      const [sparse] = await file.read(SPARSE_CHUNK, [chunkVectors]);
      const chunkId = sparse?.[0];
      if (typeof chunkId !== "number") return;
      while (!isStopped && (await moveSome(chunkId)) > 0);
    }
  };

  return {
    /** Counts deletions, and compacts in the background when there have been many. */
    afterDeletions(count: number): void {
      deletionCount += count;
      if (deletionCount < COMPACT_AFTER_DELETIONS || running !== null || isStopped) return;
      deletionCount = 0;
      running = compact()
        .catch((cause: unknown) => logger.error("vectorize: compaction of an index failed", { path: file.path, cause }))
        .finally(() => {
          running = null;
        });
    },
    /** Stops compacting. Resolves when no step is running. */
    async stop(): Promise<void> {
      isStopped = true;
      await running;
    },
  };
}
