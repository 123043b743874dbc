import type { JsonObject } from "../../kernel/json/json.ts";
import { bucketPath } from "../storage/paths.ts";
import type { Transport } from "../transport/types.ts";
import type { AdminBuckets, KeyValue, Sql, UnfinishedUpload, Vector, VectorMatch, Vectors } from "./types.ts";

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

export const createSql = ({ request }: Transport, name: string): Sql => ({
  query: (query, params, { signal } = {}) =>
    request("POST", `/api/d1/${encodeURIComponent(name)}`, { body: { query, params }, signal }),
});

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
