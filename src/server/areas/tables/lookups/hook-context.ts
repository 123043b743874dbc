import type { AppAccess } from "../../../config/app/index.ts";
import type { HookContext } from "../../../config/types.ts";
import type { RuleCall } from "./calls.ts";

/** `app` with lookups in the hook's own file. */
export function hookContext(app: AppAccess, { context }: RuleCall): HookContext {
  const { namespace, instanceId, table } = context;
  // Inherits, because the accessors of `app` are made at their first use.
  return Object.assign(Object.create(app) as AppAccess, { namespace: namespace ?? "", instanceId, table });
}
