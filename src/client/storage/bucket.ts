import type { ClientContext } from "../context.ts";
import { deferred } from "../deferred.ts";
import { bucketPath, filePath } from "./paths.ts";
import type { Bucket } from "./types.ts";

/** What a page without uploads loads of files: their addresses. */
export function createBucket(context: ClientContext, name: string): Bucket {
  const path = bucketPath(name);
  const later = deferred(async () => (await import("./operations.ts")).createOperations(context, path));
  return {
    url: (key, { thumb } = {}) => context.transport.url(filePath(path, key), { thumb }),
    upload: later("upload"),
    signedUrl: later("signedUrl"),
    download: later("download"),
    list: later("list"),
    metadata: later("metadata"),
    setMetadata: later("setMetadata"),
    delete: later("delete"),
  };
}
