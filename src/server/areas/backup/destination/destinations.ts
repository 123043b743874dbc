import { createWriteStream, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Clock } from "../../../../kernel/clock.ts";
import { isMissing, reasonOf } from "../../../../kernel/errors.ts";
import type { BackupsPlace, ObjectStore } from "../../../config/types.ts";
import { syncDirectorySync } from "../../../disk/directory-names.ts";
import { replaceSmallFile } from "../../../disk/small-file.ts";
import { openRemoteBody } from "../../../http/bodies/remote-body.ts";
import { S3Bucket, type S3Page } from "../../../http/outgoing/object-store.ts";
import { UPLOAD_FOLDER } from "../layout.ts";
import { BACKUPS_LISTED_MAX, S3_LIST_KEYS, S3_PART_BYTES, S3_PARTS_AT_ONCE, S3_RETRIES } from "../limits.ts";
import { BackupError } from "../types.ts";
import { sweepWorkFolder } from "../work-folder.ts";
import { isOwnName, isRemains } from "./names.ts";

/** Name of the file that records the owner of a destination. The leading dot hides it from `ls | tail -1`. */
export const MARKER = ".platform-owner.json";
/** Name of the file that records when backups were last verified. */
export const VERIFIED_NOTE = ".platform-verified.json";

/** A backup at its destination, also one that is kept as failed. */
export interface StoredBackup {
  name: string;
  sizeBytes: number;
}

/** Destination of backups. Errors of its methods: BackupError, or those of the file system. */
export interface Destination {
  /** Name in messages. */
  readonly name: string;
  /** Reads a small text beside the backups: MARKER or VERIFIED_NOTE. null when there is none. */
  readNote(name: string): Promise<string | null>;
  writeNote(name: string, text: string): Promise<void>;
  /** Returns the folder to write the archive to. Called before each backup. */
  prepare(): string;
  /** Stores a complete archive. */
  accept(path: string, name: string): Promise<void>;
  /** Lists backups, oldest first, without the files of others; none if the destination does not exist yet. */
  backups(): Promise<StoredBackup[]>;
  /** Returns the bytes from `start` (inclusive) to `end` (exclusive) of a backup of `size` bytes. */
  body(name: string, range: { start: number; end: number; size: number }): Promise<Blob | ReadableStream<Uint8Array>>;
  /** Resolves to the path of the backup on this machine, which `clean` may remove. */
  fetch(name: string, signal: AbortSignal): Promise<string>;
  remove(name: string): Promise<void>;
  /** Removes temporary files. */
  clean(): void;
}

export function openDestination(to: BackupsPlace, dataDirectory: string, clock: Clock): Destination {
  return "folder" in to ? createFolder(to.folder) : createObjectStore(to.s3, join(dataDirectory, UPLOAD_FOLDER), clock);
}

function createFolder(folder: string): Destination {
  return {
    name: `The folder ${folder}`,
    async readNote(name) {
      try {
        return readFileSync(join(folder, name), "utf8");
      } catch (cause) {
        if (isMissing(cause)) return null;
        throw cause;
      }
    },
    async writeNote(name, text) {
      mkdirSync(folder, { recursive: true });
      replaceSmallFile(join(folder, name), text);
    },
    prepare() {
      mkdirSync(folder, { recursive: true });
      for (const name of readdirSync(folder).filter(isRemains)) sweepWorkFolder(join(folder, name));
      return folder;
    },
    // The archive is written to its final place, unless it gets another name.
    async accept(path, name) {
      if (path === join(folder, name)) return;
      renameSync(path, join(folder, name));
      syncDirectorySync(folder);
    },
    async backups() {
      const found: StoredBackup[] = [];
      for (const name of await namesIn(folder)) {
        // The file may have been deleted meanwhile.
        const facts = await stat(join(folder, name)).catch(() => null);
        if (facts?.isFile() === true) found.push({ name, sizeBytes: facts.size });
      }
      return found;
    },
    body: async (name, { start, end, size }) => {
      const file = Bun.file(join(folder, name));
      return start === 0 && end === size ? file : file.slice(start, end);
    },
    fetch: async (name) => join(folder, name),
    remove: async (name) => rmSync(join(folder, name)),
    clean() {},
  };
}

/** Lists the names in a folder, in order; none for a missing folder. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter(isOwnName).sort();
  } catch (cause) {
    if (isMissing(cause)) return [];
    throw cause;
  }
}

/**
 * Creates a destination in an object store. The archive is complete before the first byte is uploaded, so an interrupted
 * upload leaves no object.
 */
function createObjectStore(store: ObjectStore, folder: string, clock: Clock): Destination {
  const { endpoint, bucket, prefix = "" } = store;
  const objects = new S3Bucket(store, clock);
  const clean = () => rmSync(folder, { recursive: true, force: true });
  const prepare = () => {
    clean();
    mkdirSync(folder, { mode: 0o700 });
    return folder;
  };
  return {
    name: `The object store ${endpoint}, bucket "${bucket}", prefix "${prefix}",`,
    readNote: (name) => explained(objects.readNote(prefix + name)),
    writeNote: (name, text) =>
      explained(objects.put(prefix + name, text, { retries: S3_RETRIES, type: "application/json" })),
    prepare,
    async accept(path, name) {
      const upload = objects.upload(prefix + name, {
        type: "application/zstd",
        partBytes: S3_PART_BYTES,
        atOnce: S3_PARTS_AT_ONCE,
        retries: S3_RETRIES,
      });
      try {
        for await (const chunk of Bun.file(path).stream()) await explained(upload.write(chunk));
        await explained(upload.finish());
      } catch (cause) {
        await upload.abort().catch(() => {});
        throw cause;
      }
      const size = await explained(objects.sizeOf(prefix + name));
      const sizeBytes = statSync(path).size;
      if (size !== sizeBytes) {
        throw new BackupError(`The object store has ${size} bytes of ${prefix + name} instead of ${sizeBytes}`);
      }
    },
    async backups() {
      const found: StoredBackup[] = [];
      let listed = 0;
      let after: string | null = null;
      do {
        const page: S3Page = await explained(objects.list(prefix, { after, keysMax: S3_LIST_KEYS }));
        for (const { key, size } of page.objects) {
          const name = key.slice(prefix.length);
          listed++;
          if (isOwnName(name)) found.push({ name, sizeBytes: size });
        }
        after = page.next;
      } while (after !== null && listed < BACKUPS_LISTED_MAX);
      return found.sort((one, other) => (one.name < other.name ? -1 : 1));
    },
    async body(name, { start, end, size }) {
      const range = start === 0 && end === size ? null : { start, end };
      return openRemoteBody(await objects.read(prefix + name, range), end - start);
    },
    async fetch(name, signal) {
      const path = join(prepare(), name);
      const size = await explained(objects.sizeOf(prefix + name));
      const body = await explained(openRemoteBody(await objects.read(prefix + name, null), size));
      // Types of the platform's streams; Bun's are the same.
      const source = Readable.fromWeb((body instanceof Blob ? body.stream() : body) as never);
      await explained(pipeline(source, createWriteStream(path, { mode: 0o600 }), { signal }));
      return path;
    },
    remove: (name) => explained(objects.remove(prefix + name)),
    clean,
  };
}

/** Adds the name of the object store to errors, as its messages are sometimes bare codes. */
async function explained<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new BackupError(`The object store failed: ${reason}`, { cause });
  }
}
