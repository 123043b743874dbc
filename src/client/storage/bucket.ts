import type { ClientContext } from "../context.ts";
import { deferred } from "../deferred.ts";
import { later } from "../later.ts";
import { bucketPath, filePath } from "./paths.ts";
import type { Bucket } from "./types.ts";

/** Creates a bucket with addresses only. The other operations are loaded on first use. */
export function createBucket(context: ClientContext, name: string): Bucket {
  const path = bucketPath(name);
  const load = async () => (await later()).createOperations(context, path);
  return {
    url: (key, { thumb } = {}) => context.transport.url(filePath(path, key), { thumb }),
    ...deferred(
      load,
      "upload",
      "signedUrl",
      "signedUrls",
      "download",
      "list",
      "browse",
      "metadata",
      "setMetadata",
      "delete",
      "deleteMany",
    ),
  };
}
