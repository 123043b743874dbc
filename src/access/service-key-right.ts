import { AppError, forbidden } from "../kernel/errors.ts";
import type { Principal } from "./principal.ts";

/**
 * The door of every endpoint that belongs to service keys alone. `missingStatus` is what the area answers without a key
 * (401, but 403 in push); a key without the scope is 403 everywhere. Spec: Errors, per-endpoint conditions; decisions 3.
 */
export function requireServiceKey(
  principal: Principal,
  right: readonly [area: string, kind: string, name: string, action: string],
  missingStatus: 401 | 403 = 401,
): void {
  if (principal.kind === "server") return;
  if (principal.kind !== "serviceKey") throw new AppError(missingStatus, "Service key required");
  if (!principal.scopes.allows(...right)) throw forbidden();
}
