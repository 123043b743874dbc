import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";

export interface KeyValueAccessor {
  /** Returns the value; null when missing or expired. */
  get(key: string): Promise<JsonValue>;
  set(key: string, value: JsonValue, options?: { /** Seconds. */ ttl?: number }): Promise<void>;
  delete(key: string): Promise<void>;
  list(options?: { prefix?: string; limit?: number; cursor?: string }): Promise<{
    /** The keys of the page, in order. */
    items: string[];
    hasMore: boolean;
    cursor: string | null;
    /** The former name of `items`, until 0.4. */
    keys: string[];
  }>;
}

export interface SqlAccessor {
  query(
    sql: string,
    params?: readonly JsonValue[],
  ): Promise<{ results: JsonObject[]; meta: { changes: number; rows_read: number; duration: number } }>;
}

export interface VectorAccessor {
  upsert(vectors: readonly { id: string; values: readonly number[]; metadata?: JsonObject }[]): Promise<number>;
  search(
    vector: readonly number[],
    options?: { topK?: number; filter?: JsonObject; returnValues?: boolean },
  ): Promise<{ id: string; score: number; metadata: JsonObject; values?: number[] }[]>;
  delete(ids: readonly string[]): Promise<number>;
}
