import type { JsonValue } from "../../../kernel/json/json.ts";
import type { AuditActor } from "../../../kernel/observing/request-trace.ts";

/** A change to be audited. */
export interface AuditedChange {
  /** Kind and verb: `record.update`. */
  action: string;
  /** Path of what was changed: `db/shared/notes/ID`. */
  target: string;
  /**
   * The value before the change. Absent: there was none, or it does not matter. Both values are cut and without secrets in the log.
   */
  before?: unknown;
  after?: unknown;
}

/**
 * Describes a change. `isShown`: false once so many changes came before it that one entry counts all of them: no value has to be
 * read.
 */
export type AboutChange = (asked: { isShown: boolean }) => AuditedChange;

/**
 * Records a change that the caller of the current request made outside of a transaction of the server's; does nothing for callers
 * who are not audited. Resolves when it is on disk.
 */
export type RecordChange = (change: AuditedChange) => Promise<void>;

/** An entry of the audit log. */
export interface AuditEntry {
  action: string;
  target: string;
  /** Milliseconds since 1970. */
  at: number;
  actor: AuditActor;
  address: string | null;
  requestId: string | null;
  before: JsonValue;
  after: JsonValue;
}

/** Kind of an entry: those about sign-ins are kept apart from those about changes. */
export type AuditKind = "change" | "session";

/** The JSON of one entry. */
export interface AuditText {
  kind: AuditKind;
  text: string;
}

/** A row with the entries of some writes of a file, in the file's own table until the log has them. */
export interface AuditRow {
  seq: number;
  /** Dedupe key: the log takes entries with the same id once. */
  id: string;
  kind: AuditKind;
  /** Time at which the last of the entries was written. */
  at: number;
  /** JSON of `AuditEntry[]`. */
  entries: string;
}

/** A file with entries that the log does not have yet. */
export interface AuditSource {
  /**
   * Returns the first rows, in order, of about `bytesMax` bytes of entries, but at least one if any waits. All of them are on disk.
   */
  unread(bytesMax: number): AuditRow[];
  /** Notes that the log has the rows up to and including this one on disk. */
  taken(throughSeq: number): void;
}

/** Takes entries to the log. */
export interface AuditSink {
  /** Returns the prefix of the targets of a file's records: `db/shared`. */
  placeOf(path: string): string;
  /** Called when rows of a file are on disk, and when a file that has some is opened. */
  onWaiting(source: AuditSource): void;
  /** Called when a file is closed. Rows that it still has are passed when it is opened again. */
  onClosed(source: AuditSource): void;
  /** Resolves when everything that waits is in the log, or could not be written there. */
  flush(): Promise<void>;
}
