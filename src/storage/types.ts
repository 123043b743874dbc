import type { Auth, BucketConfig, FileFacts } from "../config/types.ts";
import type { Millis } from "../kernel/clock.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import type { ObjectRecord } from "./statements/objects.ts";
import type { PartRecord, UploadRecord } from "./statements/uploads.ts";

/** A stored file. Its `fileId` is its ETag too. */
export type StoredObject = ObjectRecord;

export interface ObjectAddress {
  bucket: string;
  key: string;
}

export type Upload = UploadRecord;
/** Its `fileId` is its etag. */
export type UploadPart = Omit<PartRecord, "uploadId">;

/** Who asked for a signed upload URL. */
export type GrantHolder =
  | { kind: "user"; auth: Auth }
  | { kind: "serviceKey"; name: string }
  /** The server, or a service key of a version that did not note its name. */
  | { kind: "server" };

/** A signed upload URL that has not been used. */
export interface UploadGrant {
  id: string;
  bucket: string;
  key: string;
  holder: GrantHolder;
  expiresAt: number;
}

export interface ListedObject {
  key: string;
  size: number;
  uploaded: string;
}

export interface ObjectPage {
  objects: ListedObject[];
  truncated: boolean;
  cursor: string | null;
}

/** Bytes on their way in. Nothing of them can be read before `finish`; exactly one of `finish` and `discard` is called last. */
export interface IncomingFile {
  write(chunk: Uint8Array): Promise<void>;
  /** Resolves when the bytes are durable under the file's id. */
  finish(): Promise<void>;
  discard(): Promise<void>;
}

/**
 * Where a bucket's bytes lie: whole files under random ids, written once and never changed. Errors: 507 no space left,
 * 503 the object store does not answer.
 */
export interface FileStore {
  create(fileId: string): Promise<IncomingFile>;
  /**
   * Bytes from `start` up to `end` (exclusive), as the body of an answer; resolves when they have begun to come. The whole
   * file's bytes where it is all of it.
   */
  body(fileId: string, range: { start: number; end: number; size: number }): Promise<Blob | ReadableStream<Uint8Array>>;
  /** All of it, lazily read. */
  blob(fileId: string, sizeBytes: number): Promise<Blob>;
  /** Also for one that is not there. */
  remove(fileId: string): Promise<void>;
  /** Every file, in groups of bounded size, unfinished ones included: for the sweep. */
  ids(): AsyncIterable<readonly StoredId[]>;
}

export interface StoredId {
  fileId: string;
  /** null: nobody else writes there, so that nothing depends on it. */
  writtenAt: Millis | null;
}

/** A prefix of an object store. */
export interface RemoteFiles extends FileStore {
  /** For messages. */
  readonly name: string;
  /** Says whose the prefix is; null: nobody's. Errors: 503. */
  readMarker(): Promise<string | null>;
  writeMarker(text: string): Promise<void>;
}

export interface Bucket {
  name: string;
  config: BucketConfig;
  maxFileBytes: number;
  files: FileStore;
  /** Its files are neither written nor deleted: its object store belongs to another server. */
  isReadOnly: boolean;
}

export type BucketAction = "read" | "write" | "delete";

/** A bucket's rule for one caller and one action, where credentials, bucket and scope have been looked at. */
export interface Gate {
  readonly bucket: Bucket;
  /** What the rule says of every file in the bucket; null: it depends on the file. */
  readonly verdict: boolean | null;
  readonly isAnonymous: boolean;
  ask(file: FileFacts): MaybePromise<boolean>;
  /** Errors: 401 without credentials, else 403. */
  enforce(isAllowed: boolean): void;
}
