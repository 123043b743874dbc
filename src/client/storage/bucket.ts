import type { ClientContext } from "../context.ts";
import { bucketPath, filePath } from "./paths.ts";
import type { Bucket } from "./types.ts";

/** What a page without uploads loads of files: their addresses. */
export function createBucket(context: ClientContext, name: string): Bucket {
  const path = bucketPath(name);
  const operations = async () => (await import("./loaded.ts")).createOperations(context, path);
  return {
    url: (key, { thumb } = {}) => context.transport.url(filePath(path, key), { thumb }),
    upload: async (...given) => (await import("./loaded.ts")).upload(context, path, ...given),
    signedUrl: async (...given) => (await operations()).signedUrl(...given),
    signedUrls: async (...given) => (await operations()).signedUrls(...given),
    download: async (...given) => (await operations()).download(...given),
    list: async (...given) => (await operations()).list(...given),
    browse: async (...given) => (await operations()).browse(...given),
    metadata: async (key) => (await operations()).metadata(key),
    setMetadata: async (...given) => (await operations()).setMetadata(...given),
    delete: async (key) => (await operations()).delete(key),
    deleteMany: async (keys) => (await operations()).deleteMany(keys),
  };
}
