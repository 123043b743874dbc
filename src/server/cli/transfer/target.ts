import { UsageError } from "../errors.ts";

export interface Target {
  /** As given: `shared/films`. */
  name: string;
  namespace: string;
  table: string;
  /** `/api/db/…/tables/TABLE` */
  path: string;
}

/** `NAMESPACE/TABLE` or `NAMESPACE/INSTANCE/TABLE`. Errors: `UsageError`. */
export function parseTarget(name: string): Target {
  const parts = name.split("/");
  const [namespace = "", second = "", third] = parts;
  if (parts.length < 2 || parts.length > 3 || parts.includes("")) {
    throw new UsageError(`"${name}" must be NAMESPACE/TABLE, or NAMESPACE/INSTANCE/TABLE`);
  }
  const table = third ?? second;
  const instance = third === undefined ? "" : `/${encodeURIComponent(second)}`;
  const path = `/api/db/${encodeURIComponent(namespace)}${instance}/tables/${encodeURIComponent(table)}`;
  return { name, namespace, table, path };
}
