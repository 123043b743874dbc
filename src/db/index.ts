export {
  type DeclaredColumn,
  type DeclaredTable,
  declaredMigration,
} from "./declared.ts";
export { ftsTokenizer, indexName, primaryKeyIndexName } from "./declared-sql.ts";
export { instanceBounds, socketsMax } from "./descriptors.ts";
export { DirectoryInUse, lockDirectory } from "./directory-lock.ts";
export { createStorageEngine } from "./engine.ts";
export { holdsRecords } from "./holds-records.ts";
export { quoteIdentifier } from "./identifiers.ts";
export { createInstanceFiles, type InstanceFiles } from "./instance-files.ts";
export { layOut } from "./migrations.ts";
export type { HighlightRequest, PageBounds } from "./query-protocol.ts";
export { type RehearsalJob, type RehearsedFile, rehearseFiles } from "./schema-rehearsal.ts";
export { SERVER_CALLER } from "./server-caller.ts";
export { openSystemFile } from "./system.ts";
export type {
  Change,
  DatabaseFile,
  OpenedFile,
  ReadCaller,
  SqlValue,
  StorageEngine,
  Transaction,
} from "./types.ts";
