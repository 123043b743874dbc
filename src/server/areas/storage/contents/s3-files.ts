import type { BucketConfig } from "../../../config/types.ts";
import { guarded, openRemoteBody, storeFailed } from "../../../http/bodies/remote-body.ts";
import { findHost } from "../../../http/outgoing/hosts.ts";
import { openObjectStore, readS3Note } from "../../../http/outgoing/object-store.ts";
import { S3_LIST_KEYS, S3_PART_BYTES, S3_RETRIES } from "../limits.ts";
import type { IncomingFile, RemoteFiles } from "../model/types.ts";
import { isFileId } from "./local-files.ts";

/** The object that names the owner of the prefix. */
const MARKER = "platform-owner.json";

type S3Backend = NonNullable<BucketConfig["backend"]>["s3"];

/**
 * Whole files in a bucket of an S3-compatible store, as objects named `PREFIX` + id. An upload that is discarded may be there
 * for a moment, under an id that no record names.
 */
export function createS3Files(backend: S3Backend): RemoteFiles {
  const { endpoint, bucket, prefix = "" } = backend;
  const client = openObjectStore(backend);
  const fileOf = (fileId: string) => client.file(prefix + fileId);
  const calling = <T>(work: () => Promise<T>): Promise<T> => guarded(findHost(endpoint).then(work));

  const marker = client.file(prefix + MARKER);

  return {
    name: `The object store ${endpoint}, bucket "${bucket}", prefix "${prefix}",`,
    readMarker: () => calling(() => readS3Note(marker)),
    async writeMarker(text) {
      await calling(() => marker.write(text, { type: "application/json" }));
    },
    create: (fileId) => calling(async () => createIncoming(fileOf(fileId))),
    async body(fileId, { start, end, size }) {
      await guarded(findHost(endpoint));
      const file = fileOf(fileId);
      // As a stream: a response made of the file itself would send the client to the object store.
      return openRemoteBody((start === 0 && end === size ? file : file.slice(start, end)).stream(), end - start);
    },
    localPath: () => null,
    async blob(fileId, sizeBytes) {
      const file = fileOf(fileId);
      const { size } = await calling(() => file.stat());
      if (size !== sizeBytes) throw storeFailed(new Error(`${sizeBytes} bytes are on record, ${size} are there`));
      return file;
    },
    remove: (fileId) => calling(() => fileOf(fileId).delete()),
    async *ids() {
      let continuationToken: string | undefined;
      do {
        const page = await calling(() =>
          client.list({
            prefix,
            maxKeys: S3_LIST_KEYS,
            ...(continuationToken === undefined ? {} : { continuationToken }),
          }),
        );
        yield (page.contents ?? [])
          .map(({ key, lastModified }) => ({ fileId: key.slice(prefix.length), writtenAt: timeOf(lastModified) }))
          .filter(({ fileId }) => isFileId(fileId));
        continuationToken = page.isTruncated === true ? page.nextContinuationToken : undefined;
      } while (continuationToken !== undefined);
    },
  };
}

/** Where the store gives no time the object counts as new: what is new is not swept. */
function timeOf(lastModified: string | undefined): number {
  const time = Date.parse(lastModified ?? "");
  return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time;
}

function createIncoming(file: Bun.S3File): IncomingFile {
  const writer = file.writer({ partSize: S3_PART_BYTES, queueSize: 1, retry: S3_RETRIES });
  let waitingBytes = 0;
  let isEnded = false;
  return {
    async write(chunk) {
      // A copy: the writer may send later than the chunk's memory lives.
      writer.write(new Uint8Array(chunk));
      waitingBytes += chunk.byteLength;
      if (waitingBytes < S3_PART_BYTES) return;
      waitingBytes = 0;
      await guarded(Promise.resolve(writer.flush()));
    },
    async finish() {
      isEnded = true;
      await guarded(Promise.resolve(writer.end()));
    },
    async discard() {
      if (!isEnded) {
        isEnded = true;
        // The writer has no abort. Ending it leaves no parts in the store; the object is deleted right after.
        await Promise.resolve(writer.end()).catch(() => {});
      }
      await file.delete().catch(() => {});
    },
  };
}
