import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { bucketPath } from "../storage/paths.ts";
import type { Transport } from "../transport/types.ts";

export interface KeyValue {
  /** Returns the value of a key; null when missing or expired. */
  get<T = JsonValue>(key: string): Promise<T | null>;
  /** Sets a key. `ttl` is in seconds; without it the key does not expire. */
  set(key: string, value: JsonValue, options?: { ttl?: number }): Promise<void>;
  delete(key: string): Promise<void>;
  list(options?: {
    prefix?: string;
    limit?: number;
    cursor?: string | null;
  }): Promise<{ keys: string[]; cursor: string | null }>;
}

export interface Sql {
  /** Executes one statement; the `?` parameters are bound in order. Aborting `signal` ends a read. */
  query<Row = JsonObject>(
    sql: string,
    params?: readonly (string | number | boolean | null)[],
    options?: { signal?: AbortSignal },
  ): Promise<{ results: Row[]; meta: { changes: number; rows_read: number; duration: number } }>;
}

/** Configuration of a bucket, and its use of the quota. All sizes are in bytes. */
export interface BucketDescription {
  name: string;
  /** Whether files are in an object store. */
  external: boolean;
  /** Whether the bucket is read-only, as in a drill. */
  readOnly: boolean;
  /** Whether browsers show files of every type: `true` in a sandbox, `"sameOrigin"` as pages of the server's origin. */
  inline: boolean | "sameOrigin";
  maxFileSize: number;
  /** Thumbnail sizes, such as `200x200`. */
  thumbs: string[];
  /** Quota and use; null: none is configured. A null member is unlimited. */
  quota: { total: number | null; perUser: number | null; used: number } | null;
}

export interface UnfinishedUpload {
  uploadId: string;
  key: string;
  contentType: string;
  /** Id of the uploading user; null: a service key. */
  ownerId: string | null;
  /** Number of parts received; `size` is their total in bytes. */
  parts: number;
  size: number;
  createdAt: string;
  expiresAt: string;
}

export interface AdminBuckets {
  describe(bucket: string): Promise<BucketDescription>;
  /** Returns unfinished uploads, newest first. */
  uploads(
    bucket: string,
    options?: { limit?: number; cursor?: string | null },
  ): Promise<{ items: UnfinishedUpload[]; cursor: string | null }>;
  /** Aborts an unfinished upload and removes its parts. Errors: `not_found`. */
  abort(bucket: string, upload: Pick<UnfinishedUpload, "uploadId" | "key">): Promise<void>;
}

export interface Vector {
  id: string;
  values: readonly number[];
  metadata?: JsonObject;
}

export interface VectorMatch {
  id: string;
  score: number;
  metadata: JsonObject;
  values?: number[];
}

export interface Vectors {
  /** Stores vectors, and returns their number. */
  upsert(vectors: readonly Vector[]): Promise<number>;
  /** Returns matches, nearest first. */
  search(
    vector: readonly number[],
    options?: { topK?: number; filter?: JsonObject; returnValues?: boolean },
  ): Promise<VectorMatch[]>;
  get(ids: readonly string[]): Promise<Required<Vector>[]>;
  /** Returns vectors without values, ordered by id. */
  list(options?: { prefix?: string; limit?: number; cursor?: string | null }): Promise<{
    items: { id: string; metadata: JsonObject }[];
    cursor: string | null;
  }>;
  /** Deletes vectors, and returns how many existed. */
  delete(ids: readonly string[]): Promise<number>;
  describe(): Promise<{ vectorCount: number; dimensions: number; metric: string }>;
}

export function createKeyValue({ request }: Transport, name: string): KeyValue {
  const act = <T>(body: object) => request<T>("POST", `/api/kv/${encodeURIComponent(name)}`, { body });
  return {
    get: async <T>(key: string) => (await act<{ value: T | null }>({ action: "get", key })).value,
    async set(key, value, options) {
      await act({ action: "set", key, value, ...options });
    },
    async delete(key) {
      await act({ action: "delete", key });
    },
    list: (options) => act({ action: "list", ...options }),
  };
}

const createSqlAt = ({ request }: Transport, path: string): Sql => ({
  query: (query, params, { signal } = {}) => request("POST", path, { body: { query, params }, signal }),
});

export const createSql = (transport: Transport, name: string): Sql =>
  createSqlAt(transport, `/api/d1/${encodeURIComponent(name)}`);

export const createTableSql = (transport: Transport, namespace: string, instanceId?: string): Sql =>
  createSqlAt(
    transport,
    ["/api/admin/sql", namespace, ...(instanceId === undefined ? [] : [instanceId])].map(encodePart).join("/"),
  );

const encodePart = (part: string, index: number): string => (index === 0 ? part : encodeURIComponent(part));

export function createBuckets({ request }: Transport): AdminBuckets {
  const path = (bucket: string): string => `/api/admin/storage/${encodeURIComponent(bucket)}`;
  return {
    describe: (bucket) => request("GET", path(bucket)),
    async uploads(bucket, query) {
      const answer = await request<{ uploads: UnfinishedUpload[]; cursor: string | null }>(
        "GET",
        `${path(bucket)}/uploads`,
        { query: { ...query } },
      );
      return { items: answer.uploads, cursor: answer.cursor };
    },
    async abort(bucket, { uploadId, key }) {
      await request("POST", `${bucketPath(bucket)}/multipart/abort`, { body: { uploadId, key } });
    },
  };
}

export function createVectors({ request }: Transport, name: string): Vectors {
  const act = <T>(body: object) => request<T>("POST", `/api/vectorize/${encodeURIComponent(name)}`, { body });
  return {
    upsert: async (vectors) => (await act<{ count: number }>({ action: "upsert", vectors })).count,
    search: async (vector, options) =>
      (await act<{ matches: VectorMatch[] }>({ action: "search", vector, ...options })).matches,
    get: async (ids) =>
      (await act<{ vectors: (Required<Vector> & { metadata: JsonObject })[] }>({ action: "getByIds", ids })).vectors,
    async list(options) {
      const { vectors, cursor } = await act<{
        vectors: { id: string; metadata: JsonObject }[];
        cursor: string | null;
      }>({ action: "list", ...options });
      return { items: vectors, cursor };
    },
    delete: async (ids) => (await act<{ count: number }>({ action: "delete", ids })).count,
    describe: () => act({ action: "describe" }),
  };
}
