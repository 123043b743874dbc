import type { VectorMetric } from "../../config/types.ts";

export interface IndexDefinition {
  name: string;
  dimensions: number;
  metric: VectorMetric;
}

/** A vector as it is stored, in 32-bit floats. */
export interface StoredVector {
  id: string;
  values: Float32Array<ArrayBuffer>;
  metadata: string;
}

export interface SearchQuery {
  vector: Float32Array<ArrayBuffer>;
  topK: number;
  filter: MetadataCondition[];
  returnValues: boolean;
}

/** Ids that begin with `prefix`, after `after` in the order of their bytes. */
export interface ListQuery {
  prefix: string;
  after: string;
  limit: number;
}

export type FilterPrimitive = string | number | boolean | null;

/** All conditions of a filter must match. `path` is the member's name. */
export type MetadataCondition =
  | { operator: "in" | "notIn"; path: string; values: FilterPrimitive[] }
  | { operator: ">" | ">=" | "<" | "<="; path: string; value: string | number };

export type Bound = string | number | Uint8Array;

/** A job for a search process, which answers with JSON. */
export type SearchJob = SearchPlace & SearchTask;

/** The index's file. */
export interface SearchPlace {
  path: string;
  extensionPath: string;
}

export type SearchTask = QueryJob | ProductJob | ListJob;

/** One query whose rows are the answer. `matches`: id, score, metadata, values or null. `vectors`: id, metadata, values. */
export interface QueryJob {
  shape: "matches" | "vectors";
  sql: string;
  params: Bound[];
}

/** A scan of all vectors. */
export interface ProductJob {
  shape: "products";
  /** Returns the rowids that the filter keeps; null: all. */
  matching: { sql: string; params: Bound[] } | null;
  vector: Float32Array<ArrayBuffer>;
  topK: number;
  /** Returns rowid, id, metadata, values or null of the chosen ones, by id, given the JSON of their rowids. */
  sql: string;
}

/** Returns the ids and metadata of a page, and one row more. */
export interface ListJob {
  shape: "list";
  sql: string;
  params: Bound[];
  prefix: string;
  limit: number;
}
