import type { Clock } from "../../../../kernel/clock.ts";
import type { BucketConfig } from "../../../config/types.ts";
import { guarded, openRemoteBody, storeFailed } from "../../../http/bodies/remote-body.ts";
import { lazyObject, S3Bucket, type S3Page } from "../../../http/outgoing/object-store.ts";
import type { IncomingFile, RemoteFiles } from "../model/types.ts";
import { isFileId } from "./local-files.ts";

/** Name of the object that records the owner of the prefix. */
const MARKER = "platform-owner.json";
/** Size of one part of an upload. A smaller file is one request; this much is buffered per upload. */
const PART_BYTES = 5 * 1024 * 1024;
const RETRIES = 2;
/** Keys per page of a list. */
const LIST_KEYS = 1000;

type S3Backend = NonNullable<BucketConfig["backend"]>["s3"];

/**
 * Stores whole files in a bucket of an S3-compatible store, as objects named `PREFIX` + id. A discarded upload may exist
 * for a moment, under an id that no record names.
 */
export function createS3Files(backend: S3Backend, clock: Clock): RemoteFiles {
  const { endpoint, bucket, prefix = "" } = backend;
  const store = new S3Bucket(backend, clock);
  return {
    name: `The object store ${endpoint}, bucket "${bucket}", prefix "${prefix}",`,
    readMarker: () => guarded(store.readNote(prefix + MARKER)),
    writeMarker: (text) => guarded(store.put(prefix + MARKER, text, { type: "application/json" })),
    create: async (fileId) => createIncoming(store, prefix + fileId),
    async body(fileId, { start, end, size }) {
      const range = start === 0 && end === size ? null : { start, end };
      return openRemoteBody(await guarded(store.read(prefix + fileId, range)), end - start);
    },
    localPath: () => null,
    async blob(fileId, sizeBytes) {
      const size = await guarded(store.sizeOf(prefix + fileId));
      if (size !== sizeBytes) throw storeFailed(new Error(`${sizeBytes} bytes are on record, ${size} are there`));
      return lazyObject(backend, prefix + fileId);
    },
    remove: (fileId) => guarded(store.remove(prefix + fileId)),
    async *ids() {
      for (let after: string | null = null; ; ) {
        const page: S3Page = await guarded(store.list(prefix, { after, keysMax: LIST_KEYS }));
        yield page.objects
          .map(({ key, lastModified }) => ({ fileId: key.slice(prefix.length), writtenAt: timeOf(lastModified) }))
          .filter(({ fileId }) => isFileId(fileId));
        if (page.next === null) return;
        after = page.next;
      }
    },
  };
}

/** Parses the time of an object. An object without a time counts as new, so that it is not swept. */
function timeOf(lastModified: string): number {
  const time = Date.parse(lastModified);
  return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time;
}

function createIncoming(store: S3Bucket, key: string): IncomingFile {
  const upload = store.upload(key, { partBytes: PART_BYTES, atOnce: 1, retries: RETRIES });
  let isEnded = false;
  return {
    write: (chunk) => guarded(upload.write(chunk)),
    async finish() {
      isEnded = true;
      await guarded(upload.finish());
    },
    async discard() {
      if (!isEnded) await upload.abort().catch(() => {});
      await store.remove(key).catch(() => {});
    },
  };
}
