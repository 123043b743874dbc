import type { FieldProblems } from "../../../../kernel/errors.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { TableModel } from "../model/model.ts";
import { refuse } from "../model/validation.ts";
import type { WriteContext } from "./write-context.ts";

/**
 * Refuses changes of fields that are `fixed` after the insert, for all but service keys and the server. A stored value may be sent
 * back by who may read the record; to others its acceptance would tell them the value, so that they may not name the field.
 * `isReadable` is called only where a change names such a field. `target`: the field by which an upsert has found the record. Errors:
 * 400 naming the fields. [TB620]
 */
export function refuseFixed(
  { principal }: WriteContext,
  { fixed }: TableModel,
  { stored, changes, target = null }: { stored: TableRecord; changes: TableRecord; target?: string | null },
  isReadable: () => boolean,
): void {
  if (principal.kind === "serviceKey" || principal.kind === "server") return;
  const named = fixed.filter((name) => name !== target && Object.hasOwn(changes, name));
  if (named.length === 0) return;
  const mayCompare = isReadable();
  const problems: FieldProblems = {};
  for (const name of named) {
    if (mayCompare && Bun.deepEquals(changes[name], stored[name])) continue;
    problems[name] = { code: "invalid_value", message: `${name} is fixed: it cannot be changed after the insert` };
  }
  if (Object.keys(problems).length > 0) refuse(problems);
}
