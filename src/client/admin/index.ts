// Everything that a server or a script can import from "platform/admin".
export { deleteField, increment } from "../tables/operators.ts";
export { type ErrorCode, type FieldProblem, PlatformError } from "../transport/errors.ts";
export type { InsertOf, RecordOf } from "../types/records.ts";
export { type AdminClient, type AdminOptions, createAdminClient } from "./admin.ts";
export type { Administration } from "./administration.ts";
export { type Administrator, createAdministrator, type SignedInKey } from "./administrator.ts";
export type * from "./history-types.ts";
export type * from "./live-types.ts";
export type { AdminBroadcast } from "./operations.ts";
export { type SqlPlace, type SqlStatement, sqlErrorPlace, sqlStatements } from "./sql/script.ts";
export type * from "./tables/administration.ts";
export type * from "./types.ts";
export type * from "./user-types.ts";
