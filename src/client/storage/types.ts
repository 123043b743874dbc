/** A stored file. */
export interface FileEntry {
  key: string;
  /** Bytes. */
  size: number;
  /** When it was stored: ISO 8601. */
  uploaded: string;
}

/** A file with what was stored beside it. */
export interface FileMetadata extends FileEntry {
  contentType: string;
  metadata: { [name: string]: string };
}

export type ChangedMetadata = Pick<FileMetadata, "key" | "metadata"> & Partial<FileMetadata>;

/** What is in one folder: its files, and folders below it, of which each page names some. */
export interface FolderPage {
  /** Beginnings of keys, up to and with the slash. */
  folders: string[];
  items: (FileEntry & { contentType: string })[];
  hasMore: boolean;
  /** For `cursor` of the next page; null on the last one. */
  cursor: string | null;
}

export interface FilePage {
  /** In byte order of the keys. May be short, and there are more nevertheless, where a rule hides files. */
  items: FileEntry[];
  hasMore: boolean;
  /** For `cursor` of the next page; null on the last one. */
  cursor: string | null;
}

/** Bytes. `loaded` never goes down. */
export interface UploadProgress {
  loaded: number;
  total: number;
}

export interface UploadOptions {
  /** Default: the type of the blob, else `application/octet-stream`. */
  contentType?: string;
  /** Texts that are stored beside the file. */
  metadata?: { readonly [name: string]: string };
  onProgress?: (progress: UploadProgress) => void;
  /** Ends the upload, which rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** A blob or file, bytes, or a text. */
export type Uploadable = BlobPart;

interface Cancellable {
  signal?: AbortSignal;
}

/** The files of one bucket. Errors of all: `PlatformError`. */
export interface Bucket {
  /**
   * Stores a file, in place of one with the same key. A file over 8 MiB is sent in parts, four at a time; a lost connection delays
   * it. After a reload, the same call with a `File` of the same name, size and date sends only what is missing, for 24 hours.
   */
  upload(key: string, file: Uploadable, options?: UploadOptions): Promise<FileEntry>;
  /** The address of a file that everybody may read, or of its thumbnail in a declared size, such as `200x200`. */
  url(key: string, options?: { thumb?: string }): string;
  /**
   * An address with which everybody may read the file, or its thumbnail in a declared size, for a time: `expiresIn` seconds, by
   * default an hour, at most 7 days.
   */
  signedUrl(key: string, options?: { expiresIn?: number; thumb?: string }): Promise<string>;
  /** The same for up to 100 files; those that do not exist are left out. Errors: `forbidden` where one may not be read. */
  signedUrls(
    keys: readonly string[],
    options?: { expiresIn?: number; thumb?: string },
  ): Promise<{ key: string; url: string }[]>;
  /** The file, its first `maxBytes` bytes, or its thumbnail. Errors: `not_found`. */
  download(key: string, options?: Cancellable & { thumb?: string; maxBytes?: number }): Promise<Blob>;
  /** The files that the caller may read; 100 by default, 1,000 at most. */
  list(options?: Cancellable & { prefix?: string; limit?: number; cursor?: string | null }): Promise<FilePage>;
  /** One folder: keys that begin with `prefix`, which ends with a slash or is empty, and go on without or up to the next slash. */
  browse(options?: Cancellable & { prefix?: string; limit?: number; cursor?: string | null }): Promise<FolderPage>;
  /** null when there is no such file. */
  metadata(key: string): Promise<FileMetadata | null>;
  /** Sets some of the texts beside a file; null removes one. Who may not read the file gets its key and the texts that were set. */
  setMetadata(key: string, changes: { readonly [name: string]: string | null }): Promise<ChangedMetadata>;
  /** Errors: `not_found`. */
  delete(key: string): Promise<void>;
  /** Up to 100 files, each by the rule. What was not deleted is in `failed`, with the reason. */
  deleteMany(keys: readonly string[]): Promise<{ deleted: string[]; failed: { key: string; error: string }[] }>;
}
