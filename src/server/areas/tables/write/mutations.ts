import { notFound } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { Table } from "../records/namespaces.ts";
import { denied, type Grant, type RecordRights } from "../rules/access.ts";
import { together } from "../rules/decisions.ts";
import { type Asking, createAsking, sentIn, touch, type WriteGrants } from "./asking.ts";
import { applyChanges, type Patch, resolvePatch, sentNames, settledPatch } from "./changes.ts";
import type { Precondition } from "./conditions.ts";
import { refuseFixed } from "./fixed.ts";
import { assertMeets } from "./preconditions.ts";
import type { RecordWrites } from "./record-writes.ts";
import { dependingField, mayNotTell } from "./telling.ts";
import { createUpsert, type Upsert } from "./upserts.ts";
import type { WriteContext } from "./write-context.ts";

export interface ChangeOptions {
  /** Stored record, if it was already read in this transaction. */
  known?: TableRecord;
  /** Condition on the stored record. Errors: 412. */
  condition?: Precondition | null;
}

/** The four changes of a record inside a transaction, shared by batch, batch by filter and `app`. */
export interface Mutations {
  insert(context: WriteContext, grants: WriteGrants, table: Table, body: JsonObject, index: number): TableRecord;
  update(
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    id: string,
    patch: Patch,
    options?: ChangeOptions,
  ): TableRecord;
  delete(context: WriteContext, grants: WriteGrants, table: Table, id: string, options?: ChangeOptions): void;
  upsert: Upsert;
}

export function createMutations(deps: { rights: RecordRights; writes: RecordWrites }): Mutations {
  const { writes } = deps;
  const asking = createAsking(deps.rights);
  const { behindRule, covers, hides, mayChange, present, shown, telling } = asking;
  const mayAsk = createMayAsk(covers);

  /** Returns the stored record, if the caller may know of it. Errors: 404; 401 when a rule would have seen the record. */
  const find = (
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    { id, known }: { id: string; known: TableRecord | undefined },
    grant: Grant,
  ): TableRecord => {
    touch(context, table, id);
    if (known === undefined) {
      context.stored.refuseMore();
      const record = table.store.get(context.tx, id, behindRule(context, grants.read, table));
      if (record !== null) return record;
    } else if (!hides(context, grants.read, table, known)) return known;
    if (context.principal.kind === "anonymous" && grant.kind === "record") throw denied(context.principal);
    throw notFound(`There is no record "${id}" in ${table.model.name}`);
  };

  /**
   * Returns the changed fields. Changes that depend on stored values are refused before the update rule sees a record, and
   * whatever these values are: the outcome would reveal them to a caller that may not read the record. [TB113]
   */
  const resolved = (context: WriteContext, grants: WriteGrants, table: Table, patch: Patch, record: TableRecord) => {
    const depending = dependingField(table.model, patch, context.prepared.files);
    if (depending !== null && !covers(context, grants.read, table, { record })) {
      throw mayNotTell(context.principal, depending);
    }
    try {
      return resolvePatch(table, patch, { stored: record, ...context.prepared });
    } catch (cause) {
      if (covers(context, grants.read, table, { record })) throw cause;
      throw denied(context.principal);
    }
  };

  return {
    insert(context, granted, table, body, index) {
      const grants = present(context, granted, table, ["insert"]);
      const record = writes.prepare(context, table, body, index);
      if (!covers(context, grants.insert, table, { record, sent: () => sentIn(context, sentNames(body)) }))
        throw denied(context.principal);
      if (context.prepared.isTrial) return record;
      const about = { record, sent: body };
      const inserted = telling(context, grants, table, about, () => writes.insert(context, table, record));
      return shown(context, grants, table, { record: inserted, sent: body });
    },

    update(context, granted, table, id, asked, { known, condition = null } = {}) {
      const grants = present(context, granted, table, ["update"]);
      const record = find(context, grants, table, { id, known }, grants.update);
      const isReadable = () => covers(context, grants.read, table, { record });
      const patch = settledPatch(asked, record, isReadable);
      const filter = condition?.filterNow(context) ?? null;
      const changes = resolved(context, grants, table, patch, record);
      const next = () => applyChanges(table.model, record, changes, patch.deletions);
      const mayUpdate = () =>
        covers(context, grants.update, table, { record, next, sent: () => sentIn(context, patch.sent()) });
      const isAllowed = filter === null ? mayUpdate : () => mayAsk(context, grants, table, record, mayUpdate);
      if (!mayChange(context, record, isAllowed)) throw denied(context.principal);
      refuseFixed(context, table.model, { stored: record, changes }, isReadable);
      if (filter !== null) assertMeets(context, filter, record);
      if (context.prepared.isTrial) return record;
      const isEmpty = Object.keys(changes).length === 0 && patch.deletions.length === 0;
      const { deletions } = patch;
      const change = () => (isEmpty ? record : writes.update(context, table, record, { changes, deletions }));
      const written = telling(context, grants, table, { record, sent: changes }, change);
      return shown(context, grants, table, { record: written, sent: patch.values });
    },

    delete(context, granted, table, id, { known, condition = null } = {}) {
      const grants = present(context, granted, table, ["delete"]);
      const record = find(context, grants, table, { id, known }, grants.delete);
      const filter = condition?.filterNow(context) ?? null;
      const mayDelete = () => covers(context, grants.delete, table, { record });
      const isAllowed = filter === null ? mayDelete : () => mayAsk(context, grants, table, record, mayDelete);
      if (!mayChange(context, record, isAllowed)) throw denied(context.principal);
      if (filter !== null) assertMeets(context, filter, record);
      writes.delete(context, table, record);
    },

    upsert: createUpsert({ asking, writes }),
  };
}

/**
 * Returns the check whether a condition may be evaluated: for a caller that may not read the record, its result would reveal stored
 * values. [TB302]
 */
const createMayAsk =
  (covers: Asking["covers"]) =>
  (
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    record: TableRecord,
    mayChangeIt: () => boolean,
  ): boolean =>
    together([() => covers(context, grants.read, table, { record }), mayChangeIt]).every((isAllowed) => isAllowed);
