import type { UploadOptions } from "./types.ts";

/** What is uploaded where. */
export interface UploadTask {
  /** The path of the bucket. */
  bucket: string;
  key: string;
  file: Blob;
  contentType: string;
  metadata: UploadOptions["metadata"];
  /** Bytes of the file that have been sent. */
  onLoaded(bytes: number): void;
  signal: AbortSignal;
}
