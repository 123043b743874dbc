import { AppError, forbidden } from "../kernel/errors.ts";
import type { Principal } from "./principal.ts";
import { EVERY_SCOPE } from "./scopes.ts";

type Right = readonly [area: string, kind: string, name: string, action: string];

/**
 * The door of every endpoint that belongs to service keys alone. `missingStatus` is what the area answers without a key
 * (401, but 403 in push); a key without the scope is 403 everywhere. Spec: Errors, per-endpoint conditions; decisions 3.
 */
export function requireServiceKey(principal: Principal, right: Right, missingStatus: 401 | 403 = 401): void {
  if (principal.kind === "server") return;
  if (principal.kind !== "serviceKey") throw new AppError(missingStatus, "Service key required");
  if (!principal.scopes.allows(...right)) throw forbidden();
}

/** The door of what no scope names: a key that has scopes does not do it. Errors: 403. Decisions 3. */
export function refuseScopedKey(principal: Principal): void {
  if (principal.kind === "serviceKey" && principal.scopes !== EVERY_SCOPE) throw forbidden();
}

/** Any service key, whatever its scopes; without one, `missingStatus`. */
export function requireAnyServiceKey(principal: Principal, missingStatus: 401 | 403 = 401): void {
  if (principal.kind === "serviceKey" || principal.kind === "server") return;
  throw new AppError(missingStatus, "Service key required");
}

/** Before the body says which action is asked for: a key with at least one of `rights`, else 401 or 403. */
export function requireOneRight(principal: Principal, rights: readonly Right[]): void {
  requireAnyServiceKey(principal);
  if (principal.kind !== "serviceKey") return;
  const { scopes } = principal;
  if (!rights.some((right) => scopes.allows(...right))) throw forbidden();
}
