/** A backup or a restore that cannot be done, for a reason that the message says whole. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

/** What stands at the head of an archive, as `backup.json`. */
export interface ArchiveHeader {
  format: "platform-backup";
  version: number;
  /** The version of the program that made it. */
  platform: string;
  /** ISO 8601: when the backup began. */
  createdAt: string;
}

/** One line of the manifest, which stands at the end of an archive as `manifest.ndjson`. */
export interface FileFacts {
  /** Relative to the data directory, with `/` on every system. */
  path: string;
  size: number;
  /** In hexadecimal digits. */
  sha256: string;
}

export interface BackupSummary {
  file: string;
  createdAt: string;
  fileCount: number;
  /** Bytes of the files in it. */
  contentBytes: number;
  /** Bytes of the archive. */
  sizeBytes: number;
  /** Stored files that are not in the data directory: their buckets keep them in object stores. */
  elsewhereCount: number;
  /** Some of the files in the data directory that are none of the server's, and so are not in the backup. */
  strangers: readonly string[];
  strangerCount: number;
}
