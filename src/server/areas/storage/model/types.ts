import type { storageObjects, storageParts, storageUploads } from "../../../../../schema/storage.ts";
import type { Millis } from "../../../../kernel/clock.ts";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { AuditActor } from "../../../../kernel/observing/request-trace.ts";
import type { Auth, BucketConfig, FileFacts } from "../../../config/types.ts";
import type { Actor, Transaction } from "../../../db/index.ts";

export type FileEvent = "upload" | "delete";

/** Tells triggers and webhooks of files, inside the transaction of the change. */
export interface FileNotes {
  /** Whether such events of the bucket set off anything. */
  isWatched(bucket: string, event: FileEvent): boolean;
  note(
    tx: Transaction,
    change: { bucket: string; event: FileEvent; by: Actor; before: FileFacts | null; after: FileFacts | null },
  ): void;
}

/** A stored file. Its `fileId` is its ETag too. */
export type StoredObject = typeof storageObjects.$inferSelect;

export interface ObjectAddress {
  bucket: string;
  key: string;
}

export type Upload = typeof storageUploads.$inferSelect;
/** Its `fileId` is its etag. */
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
  /** As whom the audit log names who asked for it, and so who uploads; null: its changes are not audited. */
  actor: AuditActor | null;
  expiresAt: number;
}

export interface ListedObject {
  key: string;
  size: number;
  /** Where the list has folders. */
  contentType?: string;
  uploaded: string;
}

export interface ObjectPage {
  objects: ListedObject[];
  /** Where the list has a delimiter: each once, up to and with its slash. */
  folders?: string[];
  truncated: boolean;
  cursor: string | null;
}

/** A file that is being written. It cannot be read before `finish`; the last call is either `finish` or `discard`. */
export interface IncomingFile {
  write(chunk: Uint8Array): Promise<void>;
  /** Resolves when the bytes are durable under the file's id. */
  finish(): Promise<void>;
  discard(): Promise<void>;
}

/**
 * The bytes of a bucket's files: whole files under random ids, written once and never changed. Errors: 507 when the disk is
 * full, 503 when the object store does not answer, or the bytes are not there, or not all of them.
 */
export interface FileStore {
  create(fileId: string): Promise<IncomingFile>;
  /**
   * The bytes from `start` to `end` (exclusive) as the body of an answer; `size` is that of the whole file. Resolves when the
   * first bytes are there.
   */
  body(fileId: string, range: { start: number; end: number; size: number }): Promise<Blob | ReadableStream<Uint8Array>>;
  /** The path of the whole file, for other processes; null: its bytes are elsewhere. */
  localPath(fileId: string): string | null;
  /** The whole file, read when its bytes are asked for. */
  blob(fileId: string, sizeBytes: number): Promise<Blob>;
  /** Does nothing where there is no such file. */
  remove(fileId: string): Promise<void>;
  /** Every file, in groups of bounded size, unfinished ones included: for the sweep. */
  ids(): AsyncIterable<readonly StoredId[]>;
}

export interface StoredId {
  fileId: string;
  /** null: unknown, and not needed where this server is the only writer. */
  writtenAt: Millis | null;
}

/** Where files are, for the sweep. */
export interface SweptPlace {
  files: FileStore;
  /** How long a file that no record names stays. */
  graceMs: Millis;
  /** Asked before each sweep; false: another server has taken the place over. */
  isOurs(): Promise<boolean>;
}

/** A prefix of an object store. */
export interface RemoteFiles extends FileStore {
  /** For messages. */
  readonly name: string;
  /** The object that names the owner of the prefix; null: it has none. Errors: 503. */
  readMarker(): Promise<string | null>;
  writeMarker(text: string): Promise<void>;
}

/** The content of an answer: a stored file, or a thumbnail of one. */
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
  /** Its files are neither written nor deleted: in a drill its object store belongs to another server. */
  isReadOnly: boolean;
}

/** What rules, triggers and webhooks see of a stored file. */
export function factsOf(object: StoredObject): FileFacts {
  const { key, size, contentType, customMetadata, uploadedBy, uploaded } = object;
  // A copy, because a rule may write into it, and the metadata is answered.
  const facts = { key, size, contentType, customMetadata: { ...customMetadata }, uploadedBy };
  return { ...facts, uploaded: new Date(uploaded).toISOString() };
}
