import { AppError } from "../../../../kernel/errors.ts";
import { jsonCopy } from "../../../../kernel/json/copy.ts";
import { createParser } from "../../../../kernel/schema/parser.ts";
import type { Pace } from "../../../../kernel/time/scheduler.ts";
import type { Principal } from "../../../access/principal.ts";
import type { BucketAccessor } from "../../../config/app/index.ts";
import type { Gates } from "../gates.ts";
import { parseContentType, parseMetadata } from "../model/content.ts";
import type { ListCursors } from "../model/cursors.ts";
import { parseKey } from "../model/keys.ts";
import type { StorageStore } from "../store/store.ts";
import { ownerOf, type StorageService, storedFile } from "./files.ts";
import type { FoundObject } from "./finding.ts";
import { ListOptions, listObjects } from "./listing.ts";
import { createReceiver } from "./receiving.ts";

const listOptions = createParser(ListOptions, { member: "an option of list" });

/**
 * Creates `app.storage(bucket)`, which bypasses rules, and `app.as(auth).storage(bucket)`, which obeys them. Keys, types,
 * metadata and sizes are checked as over HTTP.
 */
export function createBucketAccessor(
  deps: { service: StorageService; store: StorageStore; gates: Gates; cursors: ListCursors; paces: () => Pace },
  principal: Principal,
  bucket: string,
): BucketAccessor {
  const { service, store, gates, cursors, paces } = deps;
  const find = async (key: string): Promise<FoundObject | null> => {
    try {
      return await service.find(principal, bucket, key, { allowAnonymous: true });
    } catch (cause) {
      if (cause instanceof AppError && cause.status === 404) return null;
      throw cause;
    }
  };
  return {
    async put(key, bytes, options = {}) {
      // Copies: the caller may change the bytes and metadata meanwhile.
      const copy = bytes instanceof Blob ? bytes : bytes.slice();
      const blobType = bytes instanceof Blob ? bytes.type : undefined;
      const content = {
        key: parseKey(key),
        contentType: parseContentType(options.contentType ?? blobType),
        customMetadata: { ...parseMetadata(options.metadata) },
      };
      const gate = await gates.enter(principal, bucket, "write");
      const object = await service.put({
        gate,
        uploadedBy: ownerOf(principal),
        async receive(incoming) {
          const receiver = createReceiver(incoming, { maxBytes: gate.bucket.maxFileBytes }, null);
          if (copy instanceof Blob) for await (const chunk of copy.stream()) await receiver.take(chunk);
          else await receiver.take(copy);
          return { ...content, size: receiver.byteCount };
        },
      });
      return storedFile(object);
    },
    async get(key) {
      const found = await find(key);
      return found === null ? null : found.bucket.files.blob(found.object.fileId, found.object.size);
    },
    async head(key) {
      const found = await find(key);
      return found === null ? null : storedFile(found.object);
    },
    async delete(key) {
      try {
        await service.remove(principal, bucket, key);
        return true;
      } catch (cause) {
        if (cause instanceof AppError && cause.status === 404) return false;
        throw cause;
      }
    },
    async list(options = {}) {
      const parsed = () => listOptions.parse(jsonCopy({ ...options }));
      const page = await listObjects({ store, gates, cursors, paces }, principal, bucket, parsed);
      return { ...page, items: page.objects, hasMore: page.truncated };
    },
  };
}
