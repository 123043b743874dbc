import type { Database } from "bun:sqlite";
import type { DatabaseFile, Transaction } from "../db/index.ts";
import { CHUNK_BYTES, CHUNK_VECTORS_MAX, CHUNK_VECTORS_MIN } from "./limits.ts";
import { conditionsSql } from "./metadata-filter.ts";
import type { IndexDefinition, SearchJob, SearchQuery, StoredVector } from "./types.ts";

/**
 * One index's file, `vectorize/NAME.db`: `items` has ids and metadata, and the vectors lie under the same rowid in `vectors`,
 * a table of sqlite-vec, which searches chunks of them. It knows no dot product: such an index keeps them in `items`.
 */
export function migrateIndex(sqlite: Database, index: IndexDefinition): void {
  sqlite.run("CREATE TABLE IF NOT EXISTS index_definition (dimensions INTEGER NOT NULL, metric TEXT NOT NULL) STRICT");
  const found = sqlite
    .query<Pick<IndexDefinition, "dimensions" | "metric">, []>("SELECT * FROM index_definition")
    .get();
  if (found !== null) {
    refuseChange(index, found);
    return;
  }
  sqlite.run("INSERT INTO index_definition VALUES (?, ?)", [index.dimensions, index.metric]);
  const columns = index.metric === "dot-product" ? ", embedding BLOB NOT NULL, length REAL NOT NULL" : "";
  sqlite.run(
    `CREATE TABLE items (rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, metadata TEXT NOT NULL ${columns}) STRICT`,
  );
  if (index.metric === "dot-product") return;
  const metric = index.metric === "cosine" ? "cosine" : "l2";
  sqlite.run(
    `CREATE VIRTUAL TABLE vectors USING vec0(
      embedding float[${index.dimensions}] distance_metric=${metric}, chunk_size=${chunkVectors(index.dimensions)})`,
  );
}

export function chunkVectors(dimensions: number): number {
  const fitting = Math.floor(CHUNK_BYTES / (dimensions * Float32Array.BYTES_PER_ELEMENT * 8)) * 8;
  return Math.min(CHUNK_VECTORS_MAX, Math.max(CHUNK_VECTORS_MIN, fitting));
}

/** Stored vectors mean nothing under other dimensions, and their scores something else under another metric. */
function refuseChange(index: IndexDefinition, found: Pick<IndexDefinition, "dimensions" | "metric">): void {
  for (const member of ["dimensions", "metric"] as const) {
    if (found[member] === index[member]) continue;
    throw new Error(
      `vectorize.${index.name}.${member}: the index on disk was made with ${found[member]}, the config says ` +
        `${index[member]}; declare a new index, or remove vectorize/${index.name}.db to begin anew`,
    );
  }
}

export interface VectorStore {
  /** The number of vectors that are new. Durable when it resolves. */
  upsert(vectors: readonly StoredVector[]): Promise<number>;
  /** The number of vectors that were there. */
  delete(ids: readonly string[]): Promise<number>;
  count(): number;
  searchJob(query: SearchQuery): Pick<SearchJob, "sql" | "params">;
  getJob(ids: readonly string[]): Pick<SearchJob, "sql" | "params">;
}

const FIND = "SELECT rowid FROM items WHERE id = ?1";
const bytesOf = ({ values }: StoredVector): Uint8Array => new Uint8Array(values.buffer);

export function createVectorStore(file: DatabaseFile, index: IndexDefinition): VectorStore {
  const write = index.metric === "dot-product" ? PLAIN_WRITES : CHUNKED_WRITES;
  return {
    upsert: (vectors) =>
      file.write((tx) => {
        let newCount = 0;
        for (const vector of vectors) {
          const found = tx.query<{ rowid: number }>(FIND).get(vector.id);
          if (found === null) {
            write.insert(tx, vector);
            newCount++;
          } else {
            write.update(tx, found.rowid, vector);
          }
        }
        return newCount;
      }),
    delete: (ids) =>
      file.write((tx) => {
        let count = 0;
        for (const id of ids) {
          const found = tx.query<{ rowid: number }>(FIND).get(id);
          if (found === null) continue;
          write.delete(tx, found.rowid);
          count++;
        }
        return count;
      }),
    count: () => file.query<{ count: number }>("SELECT count(*) AS count FROM items").get()?.count ?? 0,
    searchJob: (query) => (index.metric === "dot-product" ? dotProductSearch(query) : chunkedSearch(index, query)),
    getJob: (ids) => ({
      sql:
        index.metric === "dot-product"
          ? `SELECT items.id, items.metadata, items.embedding
             FROM json_each(?1) AS wanted JOIN items ON items.id = wanted.value ORDER BY wanted.key`
          : `SELECT items.id, items.metadata, vectors.embedding FROM json_each(?1) AS wanted
             JOIN items ON items.id = wanted.value JOIN vectors ON vectors.rowid = items.rowid ORDER BY wanted.key`,
      params: [JSON.stringify(ids)],
    }),
  };
}

interface Writes {
  insert(tx: Transaction, vector: StoredVector): void;
  update(tx: Transaction, rowid: number, vector: StoredVector): void;
  delete(tx: Transaction, rowid: number): void;
}

const CHUNKED_WRITES: Writes = {
  insert(tx, vector) {
    const { lastInsertRowid } = tx
      .query("INSERT INTO items (id, metadata) VALUES (?1, ?2)")
      .run(vector.id, vector.metadata);
    tx.query("INSERT INTO vectors (rowid, embedding) VALUES (?1, ?2)").run(lastInsertRowid, bytesOf(vector));
  },
  update(tx, rowid, vector) {
    tx.query("UPDATE items SET metadata = ?2 WHERE rowid = ?1").run(rowid, vector.metadata);
    tx.query("UPDATE vectors SET embedding = ?2 WHERE rowid = ?1").run(rowid, bytesOf(vector));
  },
  delete(tx, rowid) {
    tx.query("DELETE FROM vectors WHERE rowid = ?1").run(rowid);
    tx.query("DELETE FROM items WHERE rowid = ?1").run(rowid);
  },
};

const PLAIN_WRITES: Writes = {
  insert(tx, vector) {
    tx.query("INSERT INTO items (id, metadata, embedding, length) VALUES (?1, ?2, ?3, ?4)").run(
      vector.id,
      vector.metadata,
      bytesOf(vector),
      vector.length,
    );
  },
  update(tx, rowid, vector) {
    tx.query("UPDATE items SET metadata = ?2, embedding = ?3, length = ?4 WHERE rowid = ?1").run(
      rowid,
      vector.metadata,
      bytesOf(vector),
      vector.length,
    );
  },
  delete(tx, rowid) {
    tx.query("DELETE FROM items WHERE rowid = ?1").run(rowid);
  },
};

/** Placeholders ?1, ?2, … in the order in which values are bound. */
function createBinder(params: SearchJob["params"]): (value: string | number | Uint8Array) => string {
  return (value) => `?${params.push(value)}`;
}

/** The filter narrows before the nearest are chosen, so that topK come back where so many match. */
function chunkedSearch(index: IndexDefinition, query: SearchQuery): Pick<SearchJob, "sql" | "params"> {
  const params: SearchJob["params"] = [];
  const bind = createBinder(params);
  const nearest = [`embedding MATCH ${bind(new Uint8Array(query.vector.buffer))}`, `k = ${bind(query.topK)}`];
  if (query.filter.length > 0) {
    nearest.push(`rowid IN (SELECT rowid FROM items WHERE ${conditionsSql(query.filter, bind)})`);
  }
  // Rounding can leave the cosine of a vector with itself a hair above 1.
  const score = index.metric === "cosine" ? "max(-1.0, min(1.0, 1.0 - nearest.distance))" : "nearest.distance";
  const values = query.returnValues ? "vectors.embedding" : "NULL";
  const join = query.returnValues ? "JOIN vectors ON vectors.rowid = nearest.rowid" : "";
  const sql = `SELECT items.id, ${score}, items.metadata, ${values}
    FROM (SELECT rowid, distance FROM vectors WHERE ${nearest.join(" AND ")}) AS nearest
    JOIN items ON items.rowid = nearest.rowid ${join} ORDER BY nearest.distance, items.id`;
  return { sql, params };
}

/** The product of two vectors is their cosine times both lengths; with a length of zero it is zero. */
function dotProductSearch(query: SearchQuery): Pick<SearchJob, "sql" | "params"> {
  const params: SearchJob["params"] = [];
  const bind = createBinder(params);
  const vector = bind(new Uint8Array(query.vector.buffer));
  const score = `coalesce((1.0 - vec_distance_cosine(embedding, ${vector})) * length * ${bind(query.length)}, 0.0)`;
  const where = query.filter.length === 0 ? "" : `WHERE ${conditionsSql(query.filter, bind)}`;
  const nearest = `SELECT rowid, ${score} AS score FROM items ${where} ORDER BY score DESC, id LIMIT ${bind(query.topK)}`;
  const values = query.returnValues ? "items.embedding" : "NULL";
  const sql = `SELECT items.id, nearest.score, items.metadata, ${values}
    FROM (${nearest}) AS nearest JOIN items ON items.rowid = nearest.rowid ORDER BY nearest.score DESC, items.id`;
  return { sql, params };
}
