export {
  type DeclaredColumn,
  type DeclaredFts,
  type DeclaredIndex,
  type DeclaredMigration,
  type DeclaredReference,
  type DeclaredTable,
  declaredMigration,
  SchemaMismatch,
} from "./declared.ts";
export { type DirectoryLock, lockDirectory } from "./directory-lock.ts";
export { createStorageEngine, type StorageEngineOptions } from "./engine.ts";
export { quoteIdentifier, quoteText } from "./identifiers.ts";
export { createInstanceFiles, type InstanceFiles, type InstanceFilesOptions } from "./instance-files.ts";
export { QueryError } from "./query-processes.ts";
export { openSystemFile } from "./system.ts";
export type {
  Change,
  ChangeListener,
  DatabaseFile,
  OpenedFile,
  OpenOptions,
  ReadOptions,
  Row,
  SqlValue,
  Statement,
  StorageEngine,
  Sync,
  Transaction,
} from "./types.ts";
