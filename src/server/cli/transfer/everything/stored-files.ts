import type { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "../../../../kernel/clock.ts";
import { AppError, isMissing } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import { objectPath } from "../../../areas/backup/layout.ts";
import { createS3Files } from "../../../areas/storage/contents/s3-files.ts";
import type { BucketConfig } from "../../../config/types.ts";
import { CommandError } from "../../errors.ts";

const SEGMENT_MAX_BYTES = 255;
/** Times that a file is looked up again that was replaced while it was read. */
const ATTEMPTS_MAX = 5;

/** Bytes of a file, as a server has stored them. */
interface StoredContent {
  bucket: string;
  fileId: string;
  size: number;
}

interface ObjectRow {
  bucket: string;
  key: string;
  fileId: string;
  size: number;
  contentType: string;
  customMetadata: string;
}

/** Copies bytes of files from a data directory, and from the object stores of the config's buckets, into the folder of an export. */
export function createFileCopies(deps: {
  data: string;
  folder: string;
  buckets: Readonly<Record<string, BucketConfig>>;
  signal: AbortSignal;
}) {
  const { data, folder, buckets, signal } = deps;

  const open = async ({ bucket, fileId, size }: StoredContent): Promise<AsyncIterable<Uint8Array> | null> => {
    const backend = buckets[bucket]?.backend;
    if (backend !== undefined) {
      const files = createS3Files(backend.s3, systemClock);
      return new Response(await files.body(fileId, { start: 0, end: size, size })).body;
    }
    return Bun.file(join(data, objectPath("objects", fileId))).stream();
  };

  /** Returns the hash; null: the bytes are gone. Errors: the file has another size. */
  const copy = async (content: StoredContent, path: string): Promise<string | null> => {
    const hash = createHash("sha256");
    const file = openSync(path, "wx");
    let size = 0;
    let isWhole = false;
    try {
      for await (const chunk of (await open(content)) ?? []) {
        signal.throwIfAborted();
        hash.update(chunk);
        size += chunk.byteLength;
        for (let at = 0; at < chunk.byteLength; ) at += writeSync(file, chunk, at);
      }
      if (size !== content.size) {
        throw new CommandError(
          `a file of the bucket ${content.bucket} has ${size} bytes, and should have ${content.size}`,
        );
      }
      isWhole = true;
      return hash.digest("hex");
    } catch (cause) {
      if (isMissing(cause)) return null;
      if (cause instanceof AppError)
        throw new CommandError(`a file of the bucket ${content.bucket}: ${cause.message}`, { cause });
      throw cause;
    } finally {
      closeSync(file);
      if (!isWhole) rmSync(path);
    }
  };

  return {
    /** Copies every file of every bucket. Yields the line that describes it. */
    async *ofBuckets(system: Database): AsyncGenerator<JsonObject> {
      const next = system.query<ObjectRow, [string, string]>(
        "SELECT * FROM storage_objects WHERE (bucket, key) > (?, ?) ORDER BY bucket, key LIMIT 1",
      );
      const again = system.query<ObjectRow, [string, string]>(
        "SELECT * FROM storage_objects WHERE bucket = ? AND key = ?",
      );
      for (let row = next.get("", ""); row !== null; row = next.get(row.bucket, row.key)) {
        const path = freePath(folder, {
          wanted: ["files", row.bucket, ...row.key.split("/")],
          otherwise: ["files", row.bucket, hashOf(row.key)],
        });
        // A file that is replaced meanwhile is copied as it is then.
        let found: ObjectRow | null = row;
        for (let attempt = 1; found !== null; attempt++) {
          const sha256 = await copy(found, join(folder, path));
          if (sha256 !== null) {
            yield lineOf(found, path, sha256);
            break;
          }
          const before: string = found.fileId;
          found = again.get(row.bucket, row.key);
          if (found !== null && (found.fileId === before || attempt === ATTEMPTS_MAX)) {
            throw new CommandError(`the bytes of ${row.bucket}/${row.key} are not there: platform doctor says more`);
          }
        }
      }
    },

    /** Copies a file of a record below `place`, under its name. Errors: its bytes are not there. */
    async ofRecord(place: readonly string[], { name, ...content }: StoredContent & { name: string }): Promise<void> {
      const above = ["files", ...place.map((one) => (isSegment(one) ? one : hashOf(one)))];
      const path = freePath(folder, { wanted: [...above, name], otherwise: [...above, content.fileId] });
      if ((await copy(content, join(folder, path))) === null) {
        throw new CommandError(`the bytes of ${place.join("/")}/${name} are not there: platform doctor says more`);
      }
    },
  };
}

const lineOf = (
  { bucket, key, contentType, customMetadata, size }: ObjectRow,
  path: string,
  sha256: string,
): JsonObject => ({
  bucket,
  key,
  path,
  contentType,
  customMetadata: JSON.parse(customMetadata),
  size,
  sha256,
});

/**
 * Returns a path below the folder that nothing has yet, and makes the folders above it: `otherwise` where the wanted one is no path, or
 * is taken, as on some systems by another case.
 */
function freePath(
  folder: string,
  { wanted, otherwise }: { wanted: readonly string[]; otherwise: readonly string[] },
): string {
  const free = [wanted.every(isSegment) ? wanted : null, otherwise].find((one) => one !== null && isFree(folder, one));
  if (free === undefined || free === null) throw new CommandError(`${otherwise.join("/")} is there already`);
  return free.join("/");
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Whether a text names a file on every system. */
const isSegment = (text: string): boolean =>
  text !== "" &&
  Buffer.byteLength(text) <= SEGMENT_MAX_BYTES &&
  !/[\p{Cc}/\\:*?"<>|]/u.test(text) &&
  !/^\.{1,2}$|[. ]$/.test(text);

function isFree(folder: string, segments: readonly string[]): boolean {
  const path = join(folder, ...segments);
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch {
    // A file has the name of a folder above it.
    return false;
  }
  return !existsSync(path);
}
