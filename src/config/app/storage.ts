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
  list(options?: { prefix?: string; limit?: number; cursor?: string }): Promise<{
    objects: { key: string; size: number; uploaded: string }[];
    truncated: boolean;
    cursor: string | null;
  }>;
}
