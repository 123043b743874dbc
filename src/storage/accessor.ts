import { SERVER } from "../access/principal.ts";
import type { BucketAccessor } from "../config/app/index.ts";
import { AppError } from "../kernel/errors.ts";
import { jsonCopy } from "../kernel/json/copy.ts";
import { createParser } from "../kernel/schema/parser.ts";
import type { Paces } from "../kernel/time/pace.ts";
import { parseContentType, parseMetadata } from "./content.ts";
import type { ListCursors } from "./cursors.ts";
import { parseKey } from "./keys.ts";
import { ListOptions, listObjects } from "./listing.ts";
import type { Gates } from "./rights/gates.ts";
import { type StorageService, storedFile } from "./service.ts";
import type { StorageStore } from "./store.ts";
import { createReceiver } from "./uploads/receive.ts";

const listOptions = createParser(ListOptions, { member: "an option of list" });

/** `app.storage(bucket)`: no rule is asked; keys, types, metadata and sizes are checked as over HTTP. */
export function createBucketAccessor(
  deps: { service: StorageService; store: StorageStore; gates: Gates; cursors: ListCursors; paces: Paces },
  bucket: string,
): BucketAccessor {
  const { service, store, gates, cursors, paces } = deps;
  return {
    async put(key, bytes, options = {}) {
      // Copies: the caller may change its bytes and metadata meanwhile.
      const copy = bytes instanceof Blob ? bytes : bytes.slice();
      const blobType = bytes instanceof Blob ? bytes.type : undefined;
      const content = {
        key: parseKey(key),
        contentType: parseContentType(options.contentType ?? blobType),
        customMetadata: { ...parseMetadata(options.metadata) },
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
      return storedFile(object);
    },
    async get(key) {
      const object = store.find({ bucket, key });
      return object === null ? null : gates.bucket(bucket).files.blob(object.fileId, object.size);
    },
    async head(key) {
      const object = store.find({ bucket, key });
      return object === null ? null : storedFile(object);
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
    list: (options = {}) =>
      listObjects({ store, gates, cursors, paces }, SERVER, bucket, () => listOptions.parse(jsonCopy({ ...options }))),
  };
}
