import { S3Client } from "bun";
import type { BucketConfig } from "../../config/types.ts";
import type { IncomingFile, RemoteFiles } from "../types.ts";
import { guarded, openRemoteBody, storeFailed } from "./remote-body.ts";

/** What S3 takes as one part; a smaller file goes as a single request. Also what is held in memory per upload. */
const S3_PART_BYTES = 5 * 1024 * 1024;
const S3_RETRIES = 2;
const LIST_KEYS = 1000;
/** The object that says whose the prefix is. */
const MARKER = "platform-owner.json";

type S3Backend = NonNullable<BucketConfig["backend"]>["s3"];

/**
 * Whole files in a bucket of an S3-compatible store, named `PREFIX` + id. What is not finished may be there for a moment,
 * under an id that nothing names.
 */
export function createS3Files(backend: S3Backend): RemoteFiles {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey, prefix = "" } = backend;
  const client = new S3Client({
    ...{ endpoint, bucket, accessKeyId, secretAccessKey },
    ...(region === undefined ? {} : { region }),
  });
  const fileOf = (fileId: string) => client.file(prefix + fileId);

  const marker = client.file(prefix + MARKER);

  return {
    name: `The object store ${endpoint}, bucket "${bucket}", prefix "${prefix}",`,
    readMarker: () => guarded(textOf(marker)),
    async writeMarker(text) {
      await guarded(marker.write(text, { type: "application/json" }));
    },
    create: async (fileId) => createIncoming(fileOf(fileId)),
    body(fileId, { start, end, size }) {
      const file = fileOf(fileId);
      // As a stream: a response made of the file itself would send the client to the object store.
      return openRemoteBody((start === 0 && end === size ? file : file.slice(start, end)).stream(), end - start);
    },
    async blob(fileId, sizeBytes) {
      const file = fileOf(fileId);
      const { size } = await guarded(file.stat());
      if (size !== sizeBytes) throw storeFailed(new Error(`${sizeBytes} bytes are on record, ${size} are there`));
      return file;
    },
    remove: (fileId) => guarded(fileOf(fileId).delete()),
    async *ids() {
      let continuationToken: string | undefined;
      do {
        const page = await guarded(
          client.list({
            ...{ prefix, maxKeys: LIST_KEYS },
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

/** Others may keep objects of their own under the prefix; those are not ours to sweep. */
const isFileId = (name: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name);

/** A store that does not say when is taken to say now: what is new is not swept. */
function timeOf(lastModified: string | undefined): number {
  const time = Date.parse(lastModified ?? "");
  return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time;
}

/** null: there is no such object. */
async function textOf(file: Bun.S3File): Promise<string | null> {
  try {
    return await file.text();
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "NoSuchKey") return null;
    throw cause;
  }
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
        // The writer knows no abort: ended, the upload leaves no parts behind, and the object goes at once.
        await Promise.resolve(writer.end()).catch(() => {});
      }
      await file.delete().catch(() => {});
    },
  };
}
