import { forbidden } from "../../../../kernel/errors.ts";
import type { Principal } from "../../../access/principal.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { TableModel } from "../model/model.ts";
import type { Table } from "./namespaces.ts";

// The table of users has addresses twice: `email` is null where others may not see it, and everything that asks the table sees that
// one. So a hidden address matches no filter, sorts as null and is in no aggregate; nothing has to remember to hide it. The server and
// keys that may read accounts ask the other table, `Table.full`, where `email` is the address.

/** Whether the caller sees every address: the server, and keys that may read accounts. */
export function seesAddresses(principal: Principal): boolean {
  if (principal.kind === "serviceKey") return principal.scopes.allows("auth", "admin", "*", "read");
  return principal.kind === "server";
}

/** Returns the user's own address, for filters; undefined for callers who are no users. */
export const ownAddressOf = (principal: Principal): { id: string; email: string | null } | undefined =>
  principal.kind === "user" ? { id: principal.auth.id, email: principal.auth.email } : undefined;

/** Returns the table as the caller sees it. */
export const seenBy = (principal: Principal, table: Table): Table =>
  table.full !== null && seesAddresses(principal) ? table.full : table;

/** Returns the record with the address for the user whose record it is. Fields that are not part of it stay so. */
export function withOwnAddress(principal: Principal, model: TableModel, record: TableRecord): TableRecord {
  if (!model.isUsers || principal.kind !== "user" || record["id"] !== principal.auth.id) return record;
  return record["email"] === undefined ? record : { ...record, email: principal.auth.email };
}

/** Refuses what only accounts do. Errors: 403 that names their endpoints. */
export function refuseAccountWrites(model: TableModel, actions: readonly string[]): void {
  if (!model.isUsers) return;
  if (actions.includes("insert")) {
    throw forbidden(
      `Records of ${model.name} come with accounts: POST /api/auth/signup, POST /api/auth/admin/users, or its import`,
    );
  }
  if (actions.includes("delete")) {
    throw forbidden(
      `Records of ${model.name} go with accounts: DELETE /api/auth/me, or DELETE /api/auth/admin/users/ID`,
    );
  }
}
