/** Stored file. */
export interface FileEntry {
  key: string;
  /** Size in bytes. */
  size: number;
  /** Time of the upload, ISO 8601. */
  uploaded: string;
}

/** File with its metadata. */
export interface FileMetadata extends FileEntry {
  contentType: string;
  metadata: { [name: string]: string };
}

export type ChangedMetadata = Pick<FileMetadata, "key" | "metadata"> & Partial<FileMetadata>;

/** Page of one folder: some of its files and subfolders. */
export interface FolderPage {
  /** Prefixes of keys, each ending with a slash. */
  folders: string[];
  items: (FileEntry & { contentType: string })[];
  hasMore: boolean;
  /** Cursor of the next page; null on the last one. */
  cursor: string | null;
}

export interface FilePage {
  /** Files in byte order of the keys. May be short before the last page, where a rule hides files. */
  items: FileEntry[];
  hasMore: boolean;
  /** Cursor of the next page; null on the last one. */
  cursor: string | null;
}

/** Progress in bytes. `loaded` never decreases. */
export interface UploadProgress {
  loaded: number;
  total: number;
}

export interface UploadOptions {
  /** Content type. Default: the type of the blob, else `application/octet-stream`. */
  contentType?: string;
  /** Custom metadata, stored with the file. */
  metadata?: { readonly [name: string]: string };
  onProgress?: (progress: UploadProgress) => void;
  /** Aborts the upload, which rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Content of a file: a blob or file, bytes, or a text. */
export type Uploadable = BlobPart;

interface Cancellable {
  signal?: AbortSignal;
}

/** Files of one bucket. Failed calls reject with `PlatformError`. */
export interface Bucket {
  /**
   * Stores a file, replacing one with the same key. A file over 8 MiB is sent in parts, four at a time; a lost connection only
   * delays it. After a reload, the same call with a `File` of the same name, size and date sends only the missing parts, for 24
   * hours.
   */
  upload(key: string, file: Uploadable, options?: UploadOptions): Promise<FileEntry>;
  /** Returns the address of a public file, or of its thumbnail in a declared size, such as `200x200`. */
  url(key: string, options?: { thumb?: string }): string;
  /**
   * Returns an address with which anyone can read the file, or its thumbnail in a declared size. It expires after `expiresIn`
   * seconds: an hour by default, at most 7 days.
   */
  signedUrl(key: string, options?: { expiresIn?: number; thumb?: string }): Promise<string>;
  /** Returns signed addresses of up to 100 files; missing files are left out. Errors: `forbidden` if one may not be read. */
  signedUrls(
    keys: readonly string[],
    options?: { expiresIn?: number; thumb?: string },
  ): Promise<{ key: string; url: string }[]>;
  /** Downloads a file, its first `maxBytes` bytes, or its thumbnail. Errors: `not_found`. */
  download(key: string, options?: Cancellable & { thumb?: string; maxBytes?: number }): Promise<Blob>;
  /** Returns the files that the caller may read; 100 by default, 1,000 at most. */
  list(options?: Cancellable & { prefix?: string; limit?: number; cursor?: string | null }): Promise<FilePage>;
  /** Returns one folder: keys that begin with `prefix` (empty, or ending with a slash), cut at the next slash. */
  browse(options?: Cancellable & { prefix?: string; limit?: number; cursor?: string | null }): Promise<FolderPage>;
  /** Returns a file's metadata; null when there is no such file. */
  metadata(key: string): Promise<FileMetadata | null>;
  /**
   * Merges custom metadata; null removes a member. A caller who may not read the file receives only its key and the texts that
   * were set.
   */
  setMetadata(key: string, changes: { readonly [name: string]: string | null }): Promise<ChangedMetadata>;
  /** Deletes a file. Errors: `not_found`. */
  delete(key: string): Promise<void>;
  /** Deletes up to 100 files, each checked by the rule. `failed` lists the others, with the reasons. */
  deleteMany(keys: readonly string[]): Promise<{ deleted: string[]; failed: { key: string; error: string }[] }>;
}
