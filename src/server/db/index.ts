export { auditRowsOf } from "./audit/file-audit.ts";
export type {
  AuditEntry,
  AuditedChange,
  AuditKind,
  AuditRow,
  AuditSink,
  AuditSource,
  AuditText,
  RecordChange,
} from "./audit/types.ts";
export { entryText, originOf, startOfAction, startOfTarget } from "./audit/write-audits.ts";
export { bothCaptures } from "./capture/both.ts";
export type { CommitCapture, FileCapture } from "./capture/types.ts";
export { createStorageEngine } from "./engine.ts";
export { instanceBounds, scarceDescriptors, socketsMax } from "./files/descriptors.ts";
export { DirectoryInUse, type DirectoryLock, lockDirectory } from "./files/directory-lock.ts";
export { isEmptyFile } from "./files/file-identity.ts";
export { holdRemovals, RemovalHold } from "./files/removal-hold.ts";
export { quoteIdentifier } from "./identifiers.ts";
export { createInstanceFiles, type InstanceFiles } from "./instances/instance-files.ts";
export type { InstanceCreations } from "./instances/instance-quota.ts";
export { openUpgraded } from "./instances/upgraded-file.ts";
export { readMeta } from "./meta.ts";
export { layOut, NewerFileError, requireKnownVersion } from "./migrations.ts";
export { creating, foundIn } from "./missing-table.ts";
export { holdsRecords, openUnchanged } from "./open-unchanged.ts";
export { deleteOutboxRows, mayHaveOutboxRows, readOutboxRows } from "./outbox/rows.ts";
export {
  type Actor,
  jobId,
  NO_ORIGIN,
  type Origin,
  type OutboxRow,
  SERVER_ACTOR,
  type StoredOutboxRow,
} from "./outbox/types.ts";
export type { AnswerText } from "./processes/text-answer.ts";
export { createQuickPage } from "./reads/quick-page.ts";
export {
  BUCKET_FUNCTION,
  type HighlightRequest,
  type PageBounds,
  type RankedWords,
  type RankRequest,
  type SentStatement,
} from "./reads/requests.ts";
export type { FormerDatetimes } from "./schema/datetimes.ts";
export type {
  DeclaredColumn,
  DeclaredTable,
} from "./schema/declared.ts";
export { EMBEDDINGS_TABLE, embeddedName, TOKEN, unembeddedName } from "./schema/embeddings.ts";
export { geoIndexName } from "./schema/geo-index.ts";
export { linksName } from "./schema/links.ts";
export { type RehearsalJob, type RehearsedFile, rehearseFiles } from "./schema/schema-rehearsal.ts";
export { indexName, primaryKeyIndexName } from "./schema/sql.ts";
export { ftsTokenizer } from "./schema/tokenizer.ts";
export { MOVES_TABLE, TOMBSTONES_TABLE } from "./schema/tombstones.ts";
export type { DeclaredOptions, DeclaredValues } from "./schema/types.ts";
export { SERVER_CALLER } from "./server-caller.ts";
export { openSystemFile, SYSTEM_FILE } from "./system.ts";
export type {
  Change,
  DatabaseFile,
  LastSync,
  OpenedFile,
  OutboxOptions,
  ReadCaller,
  SqlValue,
  StorageEngine,
  Sync,
  TableStart,
  Transaction,
} from "./types.ts";
export type { CommitGate, Commits } from "./writer/commit-gate.ts";
