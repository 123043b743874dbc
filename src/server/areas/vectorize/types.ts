import type { VectorMetric } from "../../config/types.ts";

export interface IndexDefinition {
  name: string;
  dimensions: number;
  metric: VectorMetric;
}

/** Vector as it is stored, in 32-bit floats. */
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

/** Query for ids that begin with `prefix`, after `after` in the order of their bytes. */
export interface ListQuery {
  prefix: string;
  after: string;
  limit: number;
}

export type FilterPrimitive = string | number | boolean | null;

/** Condition of a filter, of which all must match. `path` is the member's name. */
export type MetadataCondition =
  | { operator: "in" | "notIn"; path: string; values: FilterPrimitive[] }
  | { operator: ">" | ">=" | "<" | "<="; path: string; value: string | number };

export type Bound = string | number | Uint8Array;

/** Job for a search process, which answers with JSON. */
export type SearchJob = SearchPlace & SearchTask;

/** Index file and extension that a search uses. */
export interface SearchPlace {
  path: string;
  extensionPath: string;
}

export type SearchTask = QueryJob | ProductJob | ListJob;

/** Job of one query whose rows are the answer. `matches`: id, score, metadata, values or null. `vectors`: id, metadata, values. */
export interface QueryJob {
  shape: "matches" | "vectors";
  sql: string;
  params: Bound[];
}

/** Job that scans all vectors for the greatest dot products. */
export interface ProductJob {
  shape: "products";
  /** Query for the rowids that match the filter; null: all. */
  matching: { sql: string; params: Bound[] } | null;
  vector: Float32Array<ArrayBuffer>;
  topK: number;
  /** Query for rowid, id, metadata, values or null of the chosen vectors, by id, given the JSON of their rowids. */
  sql: string;
}

/** Job that reads ids and metadata of a page, and one row more. */
interface ListJob {
  shape: "list";
  sql: string;
  params: Bound[];
  prefix: string;
  limit: number;
}
