import type { JsonValue } from "../../../kernel/json/json.ts";
import type { AuditActor } from "../../../kernel/observing/request-trace.ts";

/** What somebody has changed. */
export interface AuditedChange {
  /** Its kind and what was done: `record.update`. */
  action: string;
  /** What was changed, as a path: `db/shared/notes/ID`. */
  target: string;
  /** Absent: there was nothing, or it does not matter. Both are cut and without secrets in the log. */
  before?: unknown;
  after?: unknown;
}

/** `isShown`: false where so many changes came before it that all have one entry, which counts them: no value has to be read. */
export type AboutChange = (asked: { isShown: boolean }) => AuditedChange;

/**
 * Writes down what the caller of the current request has changed outside of a transaction of the server's; nothing for callers who
 * are not audited. Resolves when it is on disk.
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

/** Entries about sign-ins are kept apart from those about changes. */
export type AuditKind = "change" | "session";

/** An entry as JSON. */
export interface AuditText {
  kind: AuditKind;
  text: string;
}

/** Entries of some writes of a file, in its own table until the log has them. */
export interface AuditRow {
  seq: number;
  /** The log takes entries with the same id once. */
  id: string;
  kind: AuditKind;
  /** When the last of them was written. */
  at: number;
  /** JSON of `AuditEntry[]`. */
  entries: string;
}

/** A file with entries that the log does not have yet. */
export interface AuditSource {
  /** The first rows, in order, of about `bytesMax` bytes of entries, but at least one if any waits. All of them are on disk. */
  unread(bytesMax: number): AuditRow[];
  /** The log has the rows up to and including this one on disk. */
  taken(throughSeq: number): void;
}

/** Takes entries to the log. */
export interface AuditSink {
  /** What the targets of a file's records begin with: `db/shared`. */
  placeOf(path: string): string;
  /** Called when rows of a file are on disk, and when a file that has some is opened. */
  onWaiting(source: AuditSource): void;
  /** Called when a file is closed. Rows that it still has are passed when it is opened again. */
  onClosed(source: AuditSource): void;
  /** Resolves when everything that waits is in the log, or could not be written there. */
  flush(): Promise<void>;
}
