import {
  closeSync,
  copyFileSync,
  createReadStream,
  createWriteStream,
  fdatasyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Clock } from "../../../../../kernel/clock.ts";
import { codeOf, isMissing, reasonOf } from "../../../../../kernel/errors.ts";
import type { BackupsPlace, ObjectStore } from "../../../../config/types.ts";
import { syncDirectorySync } from "../../../../disk/directory-names.ts";
import { S3Bucket, type S3Page } from "../../../../http/outgoing/object-store.ts";
import { S3_LIST_KEYS, S3_PART_BYTES, S3_PARTS_AT_ONCE, S3_RETRIES } from "../../limits.ts";
import { BackupError } from "../../types.ts";

export interface StoredObject {
  key: string;
  bytes: number;
}

/** Store of a continuous backup. Keys have `/`. Errors of its methods: BackupError, or those of the file system. */
export interface Store {
  /** Name in messages. */
  readonly name: string;
  /** Reads an object; null: there is none. */
  read(key: string): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Copies an object to a new file. false: there is none. */
  fetch(key: string, path: string): Promise<boolean>;
  /** Stores an object, whole or not at all. */
  put(key: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  putFile(key: string, path: string): Promise<void>;
  /** Reads a small object with the tag of its version; null: there is none. */
  readTagged(key: string): Promise<{ text: string; tag: string } | null>;
  /** Replaces the version of an object with this tag; null: stores it if there is none. false: there is another version. */
  putIf(key: string, bytes: Uint8Array<ArrayBuffer>, tag: string | null): Promise<boolean>;
  /** Lists the objects whose keys begin with `prefix`. */
  list(prefix: string): AsyncGenerator<StoredObject>;
  /** Removes an object. false: the store refuses it, as a lock of objects does until its time. */
  remove(key: string): Promise<boolean>;
}

export type StorePlace = BackupsPlace;

export function openStore(to: StorePlace, clock: Clock): Store {
  return "folder" in to ? createFolder(to.folder) : createObjectStore(to.s3, clock);
}

const UNFINISHED = ".new";
const OWNER_ONLY = 0o600;

function createFolder(folder: string): Store {
  /** Runs `write` on a temporary file, which then gets the object's name. */
  const place = (key: string, write: (path: string) => void): void => {
    const path = join(folder, key);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const temporary = `${path}.${process.pid}${UNFINISHED}`;
    rmSync(temporary, { force: true });
    try {
      write(temporary);
      const descriptor = openSync(temporary, "r+");
      try {
        fdatasyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
      renameSync(temporary, path);
    } catch (cause) {
      rmSync(temporary, { force: true });
      throw cause;
    }
    syncDirectorySync(dirname(path));
  };
  async function* listed(key: string): AsyncGenerator<StoredObject> {
    const entries = await readdir(join(folder, key), { withFileTypes: true }).catch((cause: unknown) => {
      if (isMissing(cause)) return [];
      throw cause;
    });
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      const path = key === "" ? entry.name : `${key}/${entry.name}`;
      if (entry.isDirectory()) yield* listed(path);
      else if (!entry.name.endsWith(UNFINISHED)) {
        const stats = statSync(join(folder, path), { throwIfNoEntry: false });
        if (stats !== undefined) yield { key: path, bytes: stats.size };
      }
    }
  }
  return {
    name: `The folder ${folder}`,
    async read(key) {
      try {
        return new Uint8Array(readFileSync(join(folder, key)));
      } catch (cause) {
        if (isMissing(cause)) return null;
        throw cause;
      }
    },
    async fetch(key, path) {
      try {
        copyFileSync(join(folder, key), path);
        return true;
      } catch (cause) {
        if (isMissing(cause)) return false;
        throw cause;
      }
    },
    put: async (key, bytes) => place(key, (path) => writeFileSync(path, bytes, { mode: OWNER_ONLY })),
    putFile: async (key, source) => place(key, (path) => copyFileSync(source, path)),
    readTagged: async (key) => versionIn(join(folder, key)),
    async putIf(key, bytes, tag) {
      if ((versionIn(join(folder, key))?.tag ?? null) !== tag) return false;
      place(key, (path) => writeFileSync(path, bytes, { mode: OWNER_ONLY }));
      return true;
    },
    list: (prefix) => listed(prefix.replace(/\/$/, "")),
    async remove(key) {
      await rm(join(folder, key), { force: true });
      return true;
    },
  };
}

/** Reads a small file, whose hash is the tag of its version; null: there is none. */
function versionIn(path: string): { text: string; tag: string } | null {
  try {
    const text = readFileSync(path, "utf8");
    return { text, tag: new Bun.CryptoHasher("sha256").update(text).digest("hex") };
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw cause;
  }
}

function createObjectStore(store: ObjectStore, clock: Clock): Store {
  const { endpoint, bucket, prefix: given = "" } = store;
  const prefix = given === "" || given.endsWith("/") ? given : `${given}/`;
  const objects = new S3Bucket(store, clock);
  return {
    name: `The object store ${endpoint}, bucket "${bucket}", prefix "${prefix}",`,
    async read(key) {
      try {
        return new Uint8Array(await new Response(await objects.read(prefix + key, null)).arrayBuffer());
      } catch (cause) {
        if (isNoSuchKey(cause)) return null;
        throw failed(cause);
      }
    },
    async fetch(key, path) {
      try {
        const body = await objects.read(prefix + key, null);
        // Types of the platform's streams; Bun's are the same.
        await pipeline(Readable.fromWeb(body as never), createWriteStream(path, { mode: OWNER_ONLY }));
        return true;
      } catch (cause) {
        rmSync(path, { force: true });
        if (isNoSuchKey(cause)) return false;
        throw failed(cause);
      }
    },
    put: (key, bytes) => explained(objects.put(prefix + key, bytes, { retries: S3_RETRIES, isChecked: true })),
    async putFile(key, path) {
      const upload = objects.upload(prefix + key, {
        partBytes: S3_PART_BYTES,
        atOnce: S3_PARTS_AT_ONCE,
        retries: S3_RETRIES,
        isChecked: true,
      });
      try {
        for await (const chunk of createReadStream(path)) await upload.write(chunk);
        await upload.finish();
      } catch (cause) {
        await upload.abort().catch(() => {});
        throw failed(cause);
      }
    },
    async *list(wanted) {
      let after: string | null = null;
      do {
        const page: S3Page = await explained(objects.list(prefix + wanted, { after, keysMax: S3_LIST_KEYS }));
        for (const { key, size } of page.objects) yield { key: key.slice(prefix.length), bytes: size };
        after = page.next;
      } while (after !== null);
    },
    readTagged: (key) => explained(objects.readTagged(prefix + key)),
    putIf: (key, bytes, tag) => explained(objects.putIf(prefix + key, bytes, tag, { retries: S3_RETRIES })),
    async remove(key) {
      try {
        await objects.remove(prefix + key);
        return true;
      } catch (cause) {
        if (codeOf(cause) === "AccessDenied") return false;
        throw failed(cause);
      }
    },
  };
}

const isNoSuchKey = (cause: unknown): boolean => codeOf(cause) === "NoSuchKey";

const failed = (cause: unknown): BackupError =>
  new BackupError(`The object store failed: ${reasonOf(cause)}`, { cause });

async function explained<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw failed(cause);
  }
}
