import { badField } from "../../../../kernel/errors.ts";
import { type JsonObject, type JsonValue, ownValue } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import { withInstants } from "../model/instants.ts";
import type { Column, TableModel } from "../model/model.ts";
import { idProblem, refuse } from "../model/validation.ts";
import { preparedOf } from "../query/prepared-reads.ts";
import type { Table } from "../records/namespaces.ts";
import { denied, type Grant } from "../rules/access.ts";
import { together } from "../rules/decisions.ts";
import { type Asking, sentIn, touch, type WriteGrants } from "./asking.ts";
import { applyChanges, parsePatch, refuseOperators, resolvePatch, sentNames, settledPatch } from "./changes.ts";
import type { Precondition } from "./conditions.ts";
import { refuseFixed } from "./fixed.ts";
import { assertMeets } from "./preconditions.ts";
import type { RecordWrites } from "./record-writes.ts";
import { referringOf } from "./referring.ts";
import { dependingField, mayNotTell } from "./telling.ts";
import type { WriteContext } from "./write-context.ts";

/** Updates the record with this value of a unique field, or inserts it. [TB33] [TB35] [TB140] */
export type Upsert = (
  context: WriteContext,
  grants: WriteGrants,
  table: Table,
  body: JsonObject,
  options: { target: Column; index: number; condition?: Precondition | null },
) => { record: TableRecord; isNew: boolean };

export function createUpsert({ asking, writes }: { asking: Asking; writes: RecordWrites }): Upsert {
  const { covers, mayChange, present, readingNow, shown, telling } = asking;
  return (context, granted, table, body, { target, index, condition = null }) => {
    refuseOperators(body);
    const grants = present(context, granted, table, ["insert", "update"]);
    const asked = upsertAsks(context, grants, table);
    const wanted = ownValue(withInstants(table.model, body), target.name) ?? null;
    checkTarget(table, target, wanted);
    const filter = condition?.filterNow(context) ?? null;
    const reading = asked.read || filter !== null ? readingNow(context, grants.read, table) : ANY;
    const stored = wanted === null ? null : visible(context, table, { target, wanted }, reading);
    if (stored === HIDDEN) {
      parsePatch(table.model, table.validator, body);
      throw denied(context.principal);
    }
    const sent = () => sentIn(context, sentNames(body));
    if (stored === null) {
      const record = writes.prepare(context, table, body, index);
      // Without a stored record, only an update rule that allows all records applies.
      const byUpdate = asked.either && grants.update.kind === "all" && grants.update.again === null;
      if (!covers(context, grants.insert, table, { record, sent }) && !byUpdate) throw denied(context.principal);
      if (context.prepared.isTrial) return { record, isNew: true };
      const about = { record, sent: body };
      const inserted = telling(context, grants, table, about, () => writes.insert(context, table, record));
      return { record: shown(context, grants, table, { record: inserted, sent: body }), isNew: true };
    }
    touch(context, table, String(stored["id"]));
    const isReadable = () => covers(context, grants.read, table, { record: stored });
    const patch = settledPatch(parsePatch(table.model, table.validator, body), stored, isReadable);
    const depending = dependingField(table.model, patch, context.prepared.files);
    const changes = resolvePatch(table, patch, { stored, ...context.prepared });
    const next = applyChanges(table.model, stored, changes, patch.deletions);
    const isAllowed = () => {
      const [isReadable, byUpdate, byInsert] = together([
        () => (!asked.read && filter === null) || covers(context, grants.read, table, { record: stored }),
        () => covers(context, grants.update, table, { record: stored, next: () => next, sent }),
        () => asked.either && covers(context, grants.insert, table, { record: next, sent }),
      ]);
      return isReadable === true && (byUpdate === true || byInsert === true);
    };
    if (!mayChange(context, stored, isAllowed)) throw denied(context.principal);
    refuseFixed(context, table.model, { stored, changes, target: target.name }, isReadable);
    if (depending !== null && !covers(context, grants.read, table, { record: stored })) {
      throw mayNotTell(context.principal, depending);
    }
    if (filter !== null) assertMeets(context, filter, stored);
    if (context.prepared.isTrial) return { record: stored, isNew: false };
    const isEmpty = Object.keys(changes).length === 0;
    const change = () => (isEmpty ? stored : writes.update(context, table, stored, { changes, deletions: [] }));
    const record = telling(context, grants, table, { record: stored, sent: patch.values }, change);
    return { record: shown(context, grants, table, { record, sent: patch.values }), isNew: false };
  };
}

/** Grant for a caller that need not read the record. */
const ANY: Grant = { kind: "all", saidBy: "config", again: null };
const HIDDEN = "hidden";

/**
 * Returns the stored record, HIDDEN, or null. A record that the caller may not read by its grant alone is not read at all.
 * [TB118]
 */
function visible(
  { tx }: WriteContext,
  table: Table,
  { target, wanted }: { target: Column; wanted: NonNullable<JsonValue> },
  reading: Grant,
): TableRecord | typeof HIDDEN | null {
  const { store } = table;
  const stored =
    reading.kind === "none" ? null : store.getBy(tx, target, wanted, preparedOf(table).one(target, reading));
  if (stored !== null || reading.kind === "all" || reading.kind === "record") return stored;
  const value = store.codec.toValue(target, wanted);
  return referringOf(table).exists(tx, { column: target, value }) ? HIDDEN : null;
}

/**
 * Returns the rules that decide about an upsert. `either`: the insert or the update rule, instead of the fitting one. `read`: a
 * stored record that the caller may not read is refused. [TB35] [TB140]
 */
function upsertAsks({ principal }: WriteContext, { read, insert, update }: WriteGrants, { model }: Table) {
  // Scopes are exact: no rule decides.
  if (principal.kind === "serviceKey") return { either: false, read: false };
  const declared = model.config.access?.upsert;
  if (declared === "either") return { either: true, read: false };
  const either = declared === undefined && isByAuth(insert) && isByAuth(update);
  // A table without any readable record for this caller hides no particular one.
  return { either, read: !either || read.kind !== "none" };
}

/** Whether the grant depends on the caller alone, and on no record of any table. */
const isByAuth = (grant: Grant): boolean => {
  if (grant.kind === "none") return grant.again === null;
  return grant.kind === "all" && grant.saidBy !== "filter" && grant.again === null;
};

/** Returns the unique field by which an upsert finds a stored record. Errors: 400 for another field. [TB34] */
export function conflictColumn(model: TableModel, name: string): Column {
  const target = model.byName.get(name);
  if (target?.isUnique === true) return target;
  throw badField("conflictTarget", "invalid_value", `conflictTarget must be id or a unique field, got "${name}"`);
}

/** Checks the conflict target. Errors: 400 for a body without its value. */
export function checkHasTarget(body: JsonObject, { name }: Column): void {
  const value = ownValue(body, name);
  if (value === undefined || value === null) throw badField(name, "required", `${name} is required to upsert`);
}

/** Refuses a value that SQLite would convert and then find another record by (5 and "5"). Errors: 400. */
function checkTarget({ validator }: Table, { name }: Column, wanted: JsonValue): void {
  const problem = name === "id" ? idProblem(wanted) : ownValue(validator.ofChanges({ [name]: wanted }) ?? {}, name);
  if (problem !== null && problem !== undefined) refuse({ [name]: problem });
}
