import type { Principal } from "./principal.ts";

/** The callers who may see the declared tables: `api.schemaEndpoint` of the config. */
export type SchemaEndpoint = boolean | "authenticated";

const READ = ["system", "*", "*", "read"] as const;

/**
 * Decides for `/api/schema` and the tables in `/swagger/json` alike. A service key with scopes needs `system:*:*:read`, even where
 * everyone may read. [SY4] [AC2]
 */
export function maySeeSchema(principal: Principal, endpoint: SchemaEndpoint): boolean {
  if (endpoint === false) return false;
  if (principal.kind === "serviceKey") return principal.scopes.allows(...READ);
  return endpoint === true || principal.kind !== "anonymous";
}
