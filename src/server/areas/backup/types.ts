/** A backup or restore that failed; the message contains the whole reason. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

/** The first entry of an archive, `backup.json`. */
export interface ArchiveHeader {
  format: "platform-backup";
  version: number;
  /** Version of the program that made the backup. */
  platform: string;
  /** ISO 8601: the start of the backup. */
  createdAt: string;
}

/** One line of the manifest, the last entry of an archive, `manifest.ndjson`. */
export interface FileFacts {
  /** Relative to the data directory, with `/` on every system. */
  path: string;
  size: number;
  /** Hash of the content, in hexadecimal. */
  sha256: string;
}

export interface BackupSummary {
  file: string;
  createdAt: string;
  fileCount: number;
  /** Bytes of the files in the archive, uncompressed. */
  contentBytes: number;
  /** Bytes of the archive. */
  sizeBytes: number;
  /** Number of stored files outside the data directory: their buckets keep them in object stores. */
  elsewhereCount: number;
  /** Some of the files in the data directory that do not belong to the server and are not in the backup. */
  strangers: readonly string[];
  strangerCount: number;
}
