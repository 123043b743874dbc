import type { TableRecord } from "../config/types.ts";
import { notFound } from "../kernel/errors.ts";
import { type JsonObject, type JsonValue, ownValue } from "../kernel/json.ts";
import { type Door, denied, type Grant } from "./access.ts";
import { applyChanges, type Patch, parsePatch, refuseManyFields, resolvePatch } from "./changes.ts";
import { together } from "./decisions.ts";
import { pick } from "./list-query.ts";
import type { Column } from "./model.ts";
import type { Table } from "./namespaces.ts";
import type { RecordWrites, WriteContext } from "./record-writes.ts";
import { idProblem, isOperator, refuse } from "./validation.ts";

/** The grants a write needs, asked once before the request's form is examined. */
export interface WriteGrants {
  read: Grant;
  insert: Grant;
  update: Grant;
  delete: Grant;
}

/** The four ways to change a record, inside a transaction. All others (batch, batch-by-filter, app) are made of them. */
export interface Mutations {
  insert(context: WriteContext, grants: WriteGrants, table: Table, body: JsonObject, index: number): TableRecord;
  update(context: WriteContext, grants: WriteGrants, table: Table, id: string, patch: Patch): TableRecord;
  delete(context: WriteContext, grants: WriteGrants, table: Table, id: string): void;
  upsert(
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    body: JsonObject,
    options: { target: Column; index: number },
  ): { record: TableRecord; isNew: boolean };
}

export function createMutations(deps: { door: Door; writes: RecordWrites }): Mutations {
  const { door, writes } = deps;

  const covers = (
    { principal, decisions }: WriteContext,
    grant: Grant,
    table: Table,
    about: { record: TableRecord; next?: TableRecord },
  ): boolean => door.covers(grant, principal, table.model, decisions, about);

  /** The stored record, if it exists for this caller. Errors: 404, or 401 where a rule would have looked at it. */
  const find = (context: WriteContext, grants: WriteGrants, table: Table, id: string, grant: Grant): TableRecord => {
    const record = table.store.get(context.tx, id);
    touch(context, table, id);
    const isHidden =
      record !== null && grants.read.kind === "filter" && !covers(context, grants.read, table, { record });
    if (record !== null && !isHidden) return record;
    if (context.principal.kind === "anonymous" && grant.kind === "record") throw denied(context.principal);
    throw notFound(`There is no record "${id}" in ${table.model.name}`);
  };

  /** The record as the answer shows it: who may change but not read it gets the id and the values of their own. */
  const shown = (
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    written: { record: TableRecord; patch: Patch },
  ): TableRecord => {
    const { record, patch } = written;
    return covers(context, grants.read, table, { record }) ? record : pick(record, Object.keys(patch.values));
  };

  return {
    insert(context, grants, table, body, index) {
      refuseOperators(body);
      const record = writes.prepare(context, table, body, index);
      if (!covers(context, grants.insert, table, { record })) throw denied(context.principal);
      return writes.insert(context, table, record);
    },

    update(context, grants, table, id, patch) {
      const record = find(context, grants, table, id, grants.update);
      const changes = resolvePatch(table.validator, patch, record);
      const next = applyChanges(table.model, record, changes, patch.deletions);
      if (!covers(context, grants.update, table, { record, next })) throw denied(context.principal);
      const isEmpty = Object.keys(changes).length === 0 && patch.deletions.length === 0;
      const { deletions } = patch;
      const written = isEmpty ? record : writes.update(context, table, record, { changes, deletions });
      return shown(context, grants, table, { record: written, patch });
    },

    delete(context, grants, table, id) {
      const record = find(context, grants, table, id, grants.delete);
      if (!covers(context, grants.delete, table, { record })) throw denied(context.principal);
      writes.delete(context, table, record);
    },

    upsert(context, grants, table, body, { target, index }) {
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
      // Both are asked, whatever the first one says: a hidden record takes as long as one that may not be changed.
      const [isReadable, byUpdate, byInsert] = together([
        () => !asked.read || covers(context, grants.read, table, { record: stored }),
        () => covers(context, grants.update, table, { record: stored, next }),
        () => asked.either && covers(context, grants.insert, table, { record: next }),
      ]);
      if (!isReadable || !(byUpdate || byInsert)) throw denied(context.principal);
      const isEmpty = Object.keys(changes).length === 0;
      const record = isEmpty ? stored : writes.update(context, table, stored, { changes, deletions: [] });
      return { record: shown(context, grants, table, { record, patch }), isNew: false };
    },
  };
}

/** The record is one of those that this write is about. */
export const touch = ({ touched }: WriteContext, { model }: Table, id: string): void => {
  touched.add(`${model.name} ${id}`);
};

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

/** Operators change what is stored; an insert has nothing stored yet, and an upsert may be one. Errors: 400. */
function refuseOperators(body: JsonObject): void {
  refuseManyFields(body);
  for (const [name, value] of Object.entries(body)) {
    if (!isOperator(value)) continue;
    refuse({ [name]: { code: "invalid_value", message: `${name}: operators work in updates only` } });
  }
}
