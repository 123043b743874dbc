// Public exports of "platform/admin".
export { deleteField, increment } from "../tables/writes.ts";
export { type ErrorCode, type FieldProblem, PlatformError } from "../transport/errors.ts";
export type { InsertOf, RecordOf } from "../types/records.ts";
export { type AdminClient, type AdminOptions, createAdminClient } from "./admin.ts";
export type { Administration } from "./administration.ts";
export { type Administrator, createAdministrator, type SignedInKey } from "./administrator.ts";
export type * from "./backups.ts";
export type * from "./history.ts";
export type * from "./live.ts";
export type * from "./operations.ts";
export type * from "./push.ts";
export { type SqlPlace, type SqlStatement, sqlErrorPlace, sqlStatements } from "./script.ts";
export type * from "./stores.ts";
export type * from "./tables.ts";
export type * from "./users.ts";
