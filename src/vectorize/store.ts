import type { Database } from "bun:sqlite";
import type { DatabaseFile, Transaction } from "../db/index.ts";
import { CHUNK_BYTES, CHUNK_VECTORS_MAX, CHUNK_VECTORS_MIN } from "./limits.ts";
import { conditionsSql } from "./metadata-filter.ts";
import type { IndexDefinition, SearchJob, SearchQuery, StoredVector } from "./types.ts";

/**
 * One index's file, `vectorize/NAME.db`: `items` has ids and metadata, and the vectors lie under the same rowid in `vectors`,
 * a table of sqlite-vec, which searches chunks of them. It knows no dot product: for that `vectors` is a plain table.
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
  sqlite.run("CREATE TABLE items (rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, metadata TEXT NOT NULL) STRICT");
  sqlite.run(vectorsTable(index));
}

function vectorsTable({ dimensions, metric }: IndexDefinition): string {
  if (metric === "dot-product") {
    return "CREATE TABLE vectors (rowid INTEGER PRIMARY KEY, embedding BLOB NOT NULL, length REAL NOT NULL) STRICT";
  }
  return `CREATE VIRTUAL TABLE vectors USING vec0(embedding float[${dimensions}]
    distance_metric=${metric === "cosine" ? "cosine" : "l2"}, chunk_size=${chunkVectors(dimensions)})`;
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
  const vectors = index.metric === "dot-product" ? PLAIN_VECTORS : CHUNKED_VECTORS;
  const insert = (tx: Transaction, vector: StoredVector): void => {
    const { lastInsertRowid } = tx
      .query("INSERT INTO items (id, metadata) VALUES (?1, ?2)")
      .run(vector.id, vector.metadata);
    tx.query(vectors.insert).run(lastInsertRowid, ...vectors.valuesOf(vector));
  };
  const update = (tx: Transaction, rowid: number, vector: StoredVector): void => {
    tx.query("UPDATE items SET metadata = ?2 WHERE rowid = ?1").run(rowid, vector.metadata);
    tx.query(vectors.update).run(rowid, ...vectors.valuesOf(vector));
  };
  return {
    upsert: (list) =>
      file.write((tx) => {
        let newCount = 0;
        for (const vector of list) {
          const found = tx.query<{ rowid: number }>(FIND).get(vector.id);
          if (found !== null) {
            update(tx, found.rowid, vector);
            continue;
          }
          insert(tx, vector);
          newCount++;
        }
        return newCount;
      }),
    delete: (ids) =>
      file.write((tx) => {
        let count = 0;
        for (const id of ids) {
          const found = tx.query<{ rowid: number }>(FIND).get(id);
          if (found === null) continue;
          tx.query("DELETE FROM vectors WHERE rowid = ?1").run(found.rowid);
          tx.query("DELETE FROM items WHERE rowid = ?1").run(found.rowid);
          count++;
        }
        return count;
      }),
    count: () => file.query<{ count: number }>("SELECT count(*) AS count FROM items").get()?.count ?? 0,
    searchJob: (query) => searchJob(index, query),
    getJob: (ids) => ({
      sql: `SELECT items.id, items.metadata, vectors.embedding FROM json_each(?1) AS wanted
        JOIN items ON items.id = wanted.value JOIN vectors ON vectors.rowid = items.rowid ORDER BY wanted.key`,
      params: [JSON.stringify(ids)],
    }),
  };
}

interface VectorWrites {
  insert: string;
  update: string;
  /** What is bound after the rowid. */
  valuesOf(vector: StoredVector): (Uint8Array | number)[];
}

const CHUNKED_VECTORS: VectorWrites = {
  insert: "INSERT INTO vectors (rowid, embedding) VALUES (?1, ?2)",
  update: "UPDATE vectors SET embedding = ?2 WHERE rowid = ?1",
  valuesOf: (vector) => [bytesOf(vector)],
};

const PLAIN_VECTORS: VectorWrites = {
  insert: "INSERT INTO vectors (rowid, embedding, length) VALUES (?1, ?2, ?3)",
  update: "UPDATE vectors SET embedding = ?2, length = ?3 WHERE rowid = ?1",
  valuesOf: (vector) => [bytesOf(vector), vector.length],
};

/** The filter narrows before the nearest are chosen, so that topK come back where so many match. */
function searchJob(index: IndexDefinition, query: SearchQuery): Pick<SearchJob, "sql" | "params"> {
  const params: SearchJob["params"] = [];
  const bind = createBinder(params);
  const vector = bind(new Uint8Array(query.vector.buffer));
  const isMatching =
    query.filter.length === 0 ? null : `rowid IN (SELECT rowid FROM items WHERE ${conditionsSql(query.filter, bind)})`;
  const isProduct = index.metric === "dot-product";
  const nearest = isProduct
    ? nearestByProduct(vector, isMatching, query, bind)
    : nearestByDistance(vector, isMatching, query, bind);
  // Rounding can leave the cosine of a vector with itself a hair above 1.
  const score = index.metric === "cosine" ? "max(-1.0, min(1.0, 1.0 - nearest.rank))" : "nearest.rank";
  const values = query.returnValues ? "vectors.embedding" : "NULL";
  const join = query.returnValues ? "JOIN vectors ON vectors.rowid = nearest.rowid" : "";
  const sql = `SELECT items.id, ${score}, items.metadata, ${values} FROM (${nearest}) AS nearest
    JOIN items ON items.rowid = nearest.rowid ${join} ORDER BY nearest.rank ${isProduct ? "DESC" : "ASC"}, items.id`;
  return { sql, params };
}

type Bind = (value: string | number | Uint8Array) => string;

function nearestByDistance(vector: string, isMatching: string | null, { topK }: SearchQuery, bind: Bind): string {
  const conditions = [`embedding MATCH ${vector}`, `k = ${bind(topK)}`, ...(isMatching === null ? [] : [isMatching])];
  return `SELECT rowid, distance AS rank FROM vectors WHERE ${conditions.join(" AND ")}`;
}

/** The product of two vectors is their cosine times both lengths; with a length of zero it is zero. */
function nearestByProduct(vector: string, isMatching: string | null, query: SearchQuery, bind: Bind): string {
  const product = `(1.0 - vec_distance_cosine(embedding, ${vector})) * length * ${bind(query.length)}`;
  const where = isMatching === null ? "" : `WHERE ${isMatching}`;
  return `SELECT rowid, coalesce(${product}, 0.0) AS rank FROM vectors ${where} ORDER BY rank DESC LIMIT ${bind(query.topK)}`;
}

/** Placeholders ?1, ?2, … in the order in which values are bound. */
function createBinder(params: SearchJob["params"]): Bind {
  return (value) => `?${params.push(value)}`;
}
