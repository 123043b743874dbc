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
  /** null when there is no such file. */
  get(key: string): Promise<Blob | null>;
  head(key: string): Promise<StoredFile | null>;
  delete(key: string): Promise<boolean>;
  /** With `delimiter`, keys that go on after the next slash are `folders`, each named once up to that slash. */
  list(options?: { prefix?: string; delimiter?: "/"; limit?: number; cursor?: string }): Promise<{
    /** `contentType` is there with `delimiter`. */
    objects: { key: string; size: number; contentType?: string; uploaded: string }[];
    folders?: string[];
    truncated: boolean;
    cursor: string | null;
  }>;
}
