import type { RecordFile } from "../config/types.ts";
import type { ReadCaller } from "../db/index.ts";

/** The file of tables in which records have files. `instanceId` is null in a static namespace. */
export interface RecordPlace {
  namespace: string;
  instanceId: string | null;
}

/** A file of a form before its bytes: what the form says of it, and what its field allows. */
export interface ArrivingFile {
  bucket: string;
  /** The field that errors name. */
  field: string;
  /** The bytes that the field allows; null: as many as the bucket. */
  maxBytes: number | null;
  /** The content type as the form declares it, with its parameters; undefined: it declares none. */
  contentType: string | undefined;
}

/** A file that is being received. */
export interface StagedFile {
  readonly id: string;
  readonly contentType: string;
  /** Bytes taken so far. */
  readonly size: number;
  /** Errors: 413 over a bound, 507 without room. */
  take(chunk: Uint8Array): Promise<void>;
  /** Says that no more bytes follow. The next file begins when these are on disk. */
  end(): void;
}

/** The files of one request, on their way to a record. */
export interface FileUpload {
  /** Begins a file. Errors: 400 for a content type that is none, 503 in a drill. */
  begin(file: ArrivingFile): Promise<StagedFile>;
  /** Makes all files durable: only then may a record name them. Errors: 413 over a quota, 507, 503. */
  store(): Promise<void>;
}

/** The bytes of records' files. Who may do what is the caller's to decide. */
export interface RecordFiles {
  /** Runs `work`, which writes a record with the files of `upload`. Those that no record has afterwards are removed. */
  upload<T>(from: RecordPlace & { ownerId: string | null }, work: (upload: FileUpload) => Promise<T>): Promise<T>;
  /**
   * Answers GET and HEAD of a file. `isPublic`: caches may share the answer. Errors: 404 where there are no such bytes of this
   * place; 400, 413, 415, 503 for `thumb`; 416; 503.
   */
  answer(
    asked: { request: Request; thumb: string | undefined; isPublic: boolean },
    file: RecordPlace & { file: RecordFile },
    caller: ReadCaller,
  ): Promise<Response>;
  /** Removes the files of an instance that no record has, after its deletion or restore. */
  instanceChanged(place: RecordPlace): void;
}

/** Looks up which files records have. */
export interface FileReferences {
  /**
   * Resolves to those of these files that a record has, once that is on disk. All of them where their table is not declared: its
   * records stay. Errors: their file cannot be read.
   */
  having(place: RecordPlace, fileIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Whether the file of tables exists; true in a namespace that is not declared. */
  exists(place: RecordPlace): boolean;
}

/** Job that compares files with the records that have had them, enqueued by the commit that takes them away. */
export const COMPARE_FILES_JOB = "platform.files";

/** The data of that job. */
export interface ComparedFiles extends RecordPlace {
  fileIds: string[];
}
