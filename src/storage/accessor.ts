import { SERVER } from "../access/principal.ts";
import type { BucketAccessor } from "../config/app-access.ts";
import { AppError } from "../kernel/errors.ts";
import type { Paces } from "../kernel/pace.ts";
import { parseContentType, parseMetadata } from "./content.ts";
import type { ListCursors } from "./cursors.ts";
import { parseKey } from "./keys.ts";
import { listObjects, parseListing } from "./listing.ts";
import type { Gates } from "./rights/gates.ts";
import { describe, type StorageService } from "./service.ts";
import type { StorageStore } from "./store.ts";
import { createReceiver } from "./uploads/receive.ts";

/** `app.storage(bucket)`: passes rules; keys, types, metadata and sizes are checked as over HTTP. Decisions 12. */
export function createBucketAccessor(
  deps: { service: StorageService; store: StorageStore; gates: Gates; cursors: ListCursors; paces: Paces },
  bucket: string,
): BucketAccessor {
  const { service, store, gates, cursors, paces } = deps;
  return {
    async put(key, bytes, options = {}) {
      // A copy: the caller may go on writing into its own bytes.
      const copy = bytes instanceof Blob ? bytes : bytes.slice();
      const blobType = bytes instanceof Blob ? bytes.type : undefined;
      const content = {
        key: parseKey(key),
        contentType: parseContentType(options.contentType ?? blobType),
        customMetadata: parseMetadata(options.metadata),
      };
      const gate = await gates.enter(SERVER, bucket, "write");
      const object = await service.put({
        gate,
        uploadedBy: null,
        async receive(incoming) {
          const receiver = createReceiver(incoming, { maxBytes: gate.bucket.maxFileBytes });
          if (copy instanceof Blob) for await (const chunk of copy.stream()) await receiver.take(chunk);
          else await receiver.take(copy);
          return { ...content, size: receiver.byteCount };
        },
      });
      return describe(object);
    },
    async get(key) {
      const object = store.find({ bucket, key });
      return object === null ? null : gates.bucket(bucket).files.blob(object.fileId, object.size);
    },
    async head(key) {
      const object = store.find({ bucket, key });
      return object === null ? null : describe(object);
    },
    async delete(key) {
      try {
        await service.remove(SERVER, bucket, key);
        return true;
      } catch (cause) {
        if (cause instanceof AppError && cause.status === 404) return false;
        throw cause;
      }
    },
    list: (options = {}) => listObjects({ store, gates, cursors, paces }, SERVER, bucket, () => parseListing(options)),
  };
}
