import type { storageObjects, storageParts, storageUploads } from "../../../../../schema/storage.ts";
import type { Millis } from "../../../../kernel/clock.ts";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { AuditActor } from "../../../../kernel/observing/request-trace.ts";
import type { Auth, BucketConfig, FileFacts } from "../../../config/types.ts";
import type { Actor, Transaction } from "../../../db/index.ts";

export type FileEvent = "upload" | "delete";

/** Notifies triggers and webhooks of changed files, inside the transaction of the change. */
export interface FileNotes {
  /** Whether any trigger or webhook reacts to such events of the bucket. */
  isWatched(bucket: string, event: FileEvent): boolean;
  note(
    tx: Transaction,
    change: { bucket: string; event: FileEvent; by: Actor; before: FileFacts | null; after: FileFacts | null },
  ): void;
}

/** A stored file. `fileId` is also its ETag. */
export type StoredObject = typeof storageObjects.$inferSelect;

export interface ObjectAddress {
  bucket: string;
  key: string;
}

export type Upload = typeof storageUploads.$inferSelect;
/** A stored part of an upload. `fileId` is also its etag. */
export type UploadPart = Omit<typeof storageParts.$inferSelect, "uploadId">;

/** The caller that asked for a signed upload URL. */
export type GrantHolder =
  | { kind: "user"; auth: Auth }
  | { kind: "serviceKey"; name: string }
  /** The server, or a service key in a record of an early version, which did not keep its name. */
  | { kind: "server" };

/** A signed upload URL that has not been used. */
export interface UploadGrant {
  id: string;
  bucket: string;
  key: string;
  holder: GrantHolder;
  /** Actor in the audit log: who asked for the URL, and so counts as the uploader; null: the changes are not audited. */
  actor: AuditActor | null;
  expiresAt: number;
}

interface ListedObject {
  key: string;
  size: number;
  /** Present when the list has folders. */
  contentType?: string;
  uploaded: string;
}

export interface ObjectPage {
  objects: ListedObject[];
  /** Present when the list has a delimiter: each folder once, up to and including its slash. */
  folders?: string[];
  truncated: boolean;
  cursor: string | null;
}

/** A file being written. It cannot be read before `finish`; the last call is either `finish` or `discard`. */
export interface IncomingFile {
  write(chunk: Uint8Array): Promise<void>;
  /** Resolves when the bytes are durable under the file's id. */
  finish(): Promise<void>;
  discard(): Promise<void>;
}

/**
 * Store of a bucket's bytes: whole files under random ids, written once and never changed. Errors: 507 when the disk is
 * full; 503 when the object store does not respond, or when bytes are missing.
 */
export interface FileStore {
  create(fileId: string): Promise<IncomingFile>;
  /**
   * Returns the bytes from `start` to `end` (exclusive) as the body of a response; `size` is that of the whole file.
   * Resolves when the first bytes are available.
   */
  body(fileId: string, range: { start: number; end: number; size: number }): Promise<Blob | ReadableStream<Uint8Array>>;
  /** Returns the path of the whole file, for other processes; null when its bytes are not on this machine. */
  localPath(fileId: string): string | null;
  /** Returns the whole file, read when its bytes are needed. */
  blob(fileId: string, sizeBytes: number): Promise<Blob>;
  /** Removes a file; does nothing when there is none. */
  remove(fileId: string): Promise<void>;
  /** Yields every file, including unfinished ones, in groups of bounded size, for the sweep. */
  ids(): AsyncIterable<readonly StoredId[]>;
}

export interface StoredId {
  fileId: string;
  /** Time of the write; null: unknown, and not needed when this server is the only writer. */
  writtenAt: Millis | null;
}

/** A place with files that the sweep examines. */
export interface SweptPlace {
  files: FileStore;
  /** Grace period of a file that no record names. */
  graceMs: Millis;
  /** Called before each sweep; false when another server has taken the place over. */
  isOurs(): Promise<boolean>;
}

/** File store under a prefix of an object store. */
export interface RemoteFiles extends FileStore {
  /** Name in messages. */
  readonly name: string;
  /** Reads the marker, which names the owner of the prefix; null when there is none. Errors: 503. */
  readMarker(): Promise<string | null>;
  writeMarker(text: string): Promise<void>;
}

/** Content of a response: a stored file, or a thumbnail of one. */
export interface Content {
  etag: string;
  size: number;
  contentType: string;
  body(range: { start: number; end: number; size: number }): MaybePromise<Blob | ReadableStream<Uint8Array>>;
}

export interface Bucket {
  name: string;
  config: BucketConfig;
  maxFileBytes: number;
  files: FileStore;
  /** Whether files are neither written nor deleted: in a drill the bucket's object store belongs to another server. */
  isReadOnly: boolean;
}

/** Returns what rules, triggers and webhooks see of a stored file. */
export function factsOf(object: StoredObject): FileFacts {
  const { key, size, contentType, customMetadata, uploadedBy, uploaded } = object;
  // A copy, because a rule may modify it, and the metadata is part of the response.
  const facts = { key, size, contentType, customMetadata: { ...customMetadata }, uploadedBy };
  return { ...facts, uploaded: new Date(uploaded).toISOString() };
}
