import type { TableRecord } from "../../config/types.ts";
import { type JsonObject, type JsonValue, ownValue } from "../../kernel/json.ts";
import type { Column } from "../model/model.ts";
import { idProblem, refuse } from "../model/validation.ts";
import type { Table } from "../namespaces.ts";
import { denied, type Grant } from "../rules/access.ts";
import { type Asking, refuseOperators, touch, type WriteGrants } from "../rules/asking.ts";
import { together } from "../rules/decisions.ts";
import { applyChanges, parsePatch, resolvePatch } from "./changes.ts";
import type { RecordWrites, WriteContext } from "./record-writes.ts";

/** Updates the record with this value of a unique field, or inserts it. [TB33] [TB35] [TB140] */
export type Upsert = (
  context: WriteContext,
  grants: WriteGrants,
  table: Table,
  body: JsonObject,
  options: { target: Column; index: number },
) => { record: TableRecord; isNew: boolean };

export function createUpsert({ asking, writes }: { asking: Asking; writes: RecordWrites }): Upsert {
  const { covers, mayChange, shown } = asking;
  return (context, grants, table, body, { target, index }) => {
    refuseOperators(body);
    const asked = upsertAsks(context, grants, table);
    const wanted = ownValue(body, target.name) ?? null;
    checkTarget(table, target, wanted);
    const stored = wanted === null ? null : table.store.getBy(context.tx, target, wanted);
    if (stored === null) {
      const record = writes.prepare(context, table, body, index);
      // There is no stored record that an update rule could look at: only one that allows all of them speaks here.
      const byUpdate = asked.either && grants.update.kind === "all";
      if (!covers(context, grants.insert, table, { record }) && !byUpdate) throw denied(context.principal);
      return { record: writes.insert(context, table, record), isNew: true };
    }
    touch(context, table, String(stored["id"]));
    const patch = parsePatch(table.model, table.validator, body);
    const changes = resolvePatch(table.validator, patch, stored);
    const next = applyChanges(table.model, stored, changes, patch.deletions);
    const isAllowed = () => {
      // All are asked, whatever the first one says: a hidden record takes as long as one that may not be changed.
      const [isReadable, byUpdate, byInsert] = together([
        () => !asked.read || covers(context, grants.read, table, { record: stored }),
        () => covers(context, grants.update, table, { record: stored, next }),
        () => asked.either && covers(context, grants.insert, table, { record: next }),
      ]);
      return isReadable === true && (byUpdate === true || byInsert === true);
    };
    if (!mayChange(context, stored, isAllowed)) throw denied(context.principal);
    const isEmpty = Object.keys(changes).length === 0;
    const record = isEmpty ? stored : writes.update(context, table, stored, { changes, deletions: [] });
    return { record: shown(context, grants, table, { record, patch }), isNew: false };
  };
}

/**
 * Which rules decide about an upsert. `either`: the insert rule or the update rule, instead of the one that fits what happens.
 * `read`: a stored record that the caller may not read is refused. [TB35] [TB140]
 */
function upsertAsks({ principal }: WriteContext, { read, insert, update }: WriteGrants, { model }: Table) {
  // A scope is no rule: it names what its key may do.
  if (principal.kind === "serviceKey") return { either: false, read: false };
  const declared = model.config.access?.upsert;
  if (declared === "either") return { either: true, read: false };
  const either = declared === undefined && isByAuth(insert) && isByAuth(update);
  // A table of which this caller may read nothing at all hides no single record.
  return { either, read: !either || read.kind !== "none" };
}

/** Decided by who asks: no record was looked at, and none would be. */
const isByAuth = (grant: Grant): boolean =>
  grant.kind === "none" || (grant.kind === "all" && grant.saidBy !== "filter");

/** What would find a record by another value than it says (5 and "5") finds none. Errors: 400. */
function checkTarget({ validator }: Table, { name }: Column, wanted: JsonValue): void {
  const problem = name === "id" ? idProblem(wanted) : ownValue(validator.ofChanges({ [name]: wanted }) ?? {}, name);
  if (problem !== null && problem !== undefined) refuse({ [name]: problem });
}
