export interface StoredFile {
  key: string;
  size: number;
  httpMetadata: { contentType: string };
  customMetadata: { [key: string]: string };
  uploaded: string;
}

export interface BucketAccessor {
  put(
    key: string,
    bytes: Uint8Array | Blob,
    options?: { contentType?: string; metadata?: { [key: string]: string } },
  ): Promise<StoredFile>;
  /** Returns the file's content; null when there is no such file. */
  get(key: string): Promise<Blob | null>;
  head(key: string): Promise<StoredFile | null>;
  delete(key: string): Promise<boolean>;
  /**
   * Lists files. With `delimiter`, keys that continue after the next slash are grouped into `folders`, each listed once up to that
   * slash.
   */
  list(options?: { prefix?: string; delimiter?: "/"; limit?: number; cursor?: string }): Promise<{
    /** The files of the page; `contentType` is present with `delimiter`. */
    items: { key: string; size: number; contentType?: string; uploaded: string }[];
    folders?: string[];
    /** Whether more files follow. */
    hasMore: boolean;
    cursor: string | null;
    /** The former name of `items`, until 0.4. */
    objects: { key: string; size: number; contentType?: string; uploaded: string }[];
    /** The former name of `hasMore`, until 0.4. */
    truncated: boolean;
  }>;
}
