import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { S3Client } from "bun";
import type { BackupsConfig, ObjectStore } from "../../config/types.ts";
import { UPLOAD_FOLDER } from "../layout.ts";
import { BACKUPS_LISTED_MAX, S3_PART_BYTES, S3_PARTS_AT_ONCE, S3_RETRIES } from "../limits.ts";
import { BackupError } from "../types.ts";
import { sweepWorkFolder } from "../work-folder.ts";
import { isRemains } from "./names.ts";

/** Where scheduled backups go. */
export interface Destination {
  /** Where the file is made; called before each backup. */
  prepare(): string;
  /** Takes over a file that is whole. */
  accept(path: string, name: string): Promise<void>;
  /** Names of files, those of others among them. Where nothing has been made yet, none. */
  names(): Promise<string[]>;
  /** Bytes of one of them. */
  sizeOf(name: string): Promise<number>;
  remove(name: string): Promise<void>;
  /** Removes what has only been needed on the way. */
  clean(): void;
}

export function openDestination(to: BackupsConfig["to"], dataDirectory: string): Destination {
  return "folder" in to ? createFolder(to.folder) : createObjectStore(to.s3, join(dataDirectory, UPLOAD_FOLDER));
}

function createFolder(folder: string): Destination {
  return {
    prepare() {
      mkdirSync(folder, { recursive: true });
      for (const name of readdirSync(folder).filter(isRemains)) sweepWorkFolder(join(folder, name));
      return folder;
    },
    // It is made at its place.
    async accept() {},
    names: async () => (existsSync(folder) ? readdirSync(folder) : []),
    sizeOf: async (name) => statSync(join(folder, name)).size,
    remove: async (name) => rmSync(join(folder, name)),
    clean() {},
  };
}

/** An archive is whole before the first byte is sent: an upload that breaks off leaves no object. */
function createObjectStore(store: ObjectStore, folder: string): Destination {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey, prefix = "" } = store;
  const client = new S3Client({
    ...{ endpoint, bucket, accessKeyId, secretAccessKey },
    ...(region === undefined ? {} : { region }),
  });
  const clean = () => rmSync(folder, { recursive: true, force: true });
  return {
    prepare() {
      clean();
      mkdirSync(folder, { mode: 0o700 });
      return folder;
    },
    async accept(path, name) {
      const options = { partSize: S3_PART_BYTES, queueSize: S3_PARTS_AT_ONCE, retry: S3_RETRIES };
      await explained(client.write(prefix + name, Bun.file(path), { ...options, type: "application/zstd" }));
      const { size } = await explained(client.stat(prefix + name));
      const sizeBytes = statSync(path).size;
      if (size !== sizeBytes) {
        throw new BackupError(`The object store has ${size} bytes of ${prefix + name}, not ${sizeBytes}`);
      }
    },
    async names() {
      const names: string[] = [];
      let continuationToken: string | undefined;
      do {
        const page = await explained(
          client.list({ prefix, ...(continuationToken === undefined ? {} : { continuationToken }) }),
        );
        for (const { key } of page.contents ?? []) names.push(key.slice(prefix.length));
        continuationToken = page.isTruncated === true ? page.nextContinuationToken : undefined;
      } while (continuationToken !== undefined && names.length < BACKUPS_LISTED_MAX);
      return names;
    },
    sizeOf: async (name) => (await explained(client.stat(prefix + name))).size,
    remove: (name) => explained(client.delete(prefix + name)),
    clean,
  };
}

/** The library's messages are bare codes at times. */
async function explained<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BackupError(`The object store does not answer as it should: ${reason}`, { cause });
  }
}
