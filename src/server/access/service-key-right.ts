import { AppError, forbidden } from "../../kernel/errors.ts";
import { EVERY_SCOPE } from "./keys/scopes.ts";
import type { Principal } from "./principal.ts";

type Right = readonly [area: string, kind: string, name: string, action: string];

/**
 * Requires a service key with a right. `missingStatus` is the status without a key: 401, or 403 in push [PU8]. A key without the
 * scope is 403.
 */
export function requireServiceKey(principal: Principal, right: Right, missingStatus: 401 | 403 = 401): void {
  if (principal.kind === "server") return;
  if (principal.kind !== "serviceKey") throw new AppError(missingStatus, "Service key required");
  if (!principal.scopes.allows(...right)) throw forbidden();
}

/** Refuses keys with scopes, for operations that no scope covers. Errors: 403. */
export function refuseScopedKey(principal: Principal): void {
  if (principal.kind === "serviceKey" && principal.scopes !== EVERY_SCOPE) throw forbidden();
}

/** Requires any service key, whatever its scopes; without one, `missingStatus`. */
export function requireAnyServiceKey(principal: Principal, missingStatus: 401 | 403 = 401): void {
  if (principal.kind === "serviceKey" || principal.kind === "server") return;
  throw new AppError(missingStatus, "Service key required");
}

/** Requires a key with at least one of `rights`, before the body names the action. Errors: 401, 403. */
export function requireOneRight(principal: Principal, rights: readonly Right[]): void {
  requireAnyServiceKey(principal);
  if (principal.kind !== "serviceKey") return;
  const { scopes } = principal;
  if (!rights.some((right) => scopes.allows(...right))) throw forbidden();
}

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
