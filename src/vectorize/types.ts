import type { VectorMetric } from "../config/types.ts";

export interface IndexDefinition {
  name: string;
  dimensions: number;
  metric: VectorMetric;
}

/** A vector as it is stored: numbers of 32 bits. */
export interface StoredVector {
  id: string;
  values: Float32Array<ArrayBuffer>;
  /** Euclidean length of `values`. */
  length: number;
  metadata: string;
}

export interface SearchQuery {
  vector: Float32Array<ArrayBuffer>;
  length: number;
  topK: number;
  filter: MetadataCondition[];
  returnValues: boolean;
}

export type FilterPrimitive = string | number | boolean | null;

/** All of a filter's conditions must hold. `path` is the member's name. */
export type MetadataCondition =
  | { operator: "in" | "notIn"; path: string; values: FilterPrimitive[] }
  | { operator: ">" | ">=" | "<" | "<="; path: string; value: string | number };

/** A request's body, checked. Spec: Native resource endpoints; decisions 8. */
export type VectorAction =
  | { action: "upsert"; vectors: StoredVector[] }
  | { action: "search"; query: SearchQuery }
  | { action: "delete"; ids: string[] }
  | { action: "getByIds"; ids: string[] }
  | { action: "describe" };

/** One SQL query for a search worker; its rows come back as JSON text in this form. */
export interface SearchJob {
  path: string;
  extensionPath: string;
  sql: string;
  params: (string | number | Uint8Array)[];
  /** Whether the file is mapped into memory: chunks are searched a third quicker so, plain rows a quarter slower. */
  isMapped: boolean;
  /** `matches`: id, score, metadata, values or null. `vectors`: id, metadata, values. */
  shape: "matches" | "vectors";
}
