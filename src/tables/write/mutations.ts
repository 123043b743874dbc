import type { TableRecord } from "../../config/types.ts";
import { notFound } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { Table } from "../namespaces.ts";
import { denied, type Grant, type RecordRights } from "../rules/access.ts";
import { createAsking, refuseOperators, touch, type WriteGrants } from "../rules/asking.ts";
import { applyChanges, type Patch, resolvePatch } from "./changes.ts";
import type { RecordWrites } from "./record-writes.ts";
import { createUpsert, type Upsert } from "./upserts.ts";
import type { WriteContext } from "./write-context.ts";

/** The four changes of a record inside a transaction. Batch, batch-by-filter and `app` use them. */
export interface Mutations {
  insert(context: WriteContext, grants: WriteGrants, table: Table, body: JsonObject, index: number): TableRecord;
  /** `known`: the stored record, if it was already read in this transaction. */
  update(
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    id: string,
    patch: Patch,
    known?: TableRecord | null,
  ): TableRecord;
  delete(context: WriteContext, grants: WriteGrants, table: Table, id: string, known?: TableRecord | null): void;
  upsert: Upsert;
}

export function createMutations(deps: { rights: RecordRights; writes: RecordWrites }): Mutations {
  const { writes } = deps;
  const asking = createAsking(deps.rights);
  const { covers, mayChange, shown } = asking;

  /** The stored record, if the caller may know of it. Errors: 404; 401 where a rule would have seen the record. */
  const find = (
    context: WriteContext,
    grants: WriteGrants,
    table: Table,
    { id, known }: { id: string; known: TableRecord | null },
    grant: Grant,
  ): TableRecord => {
    const record = known ?? table.store.get(context.tx, id);
    touch(context, table, id);
    const isHidden =
      record !== null && grants.read.kind === "filter" && !covers(context, grants.read, table, { record });
    if (record !== null && !isHidden) return record;
    if (context.principal.kind === "anonymous" && grant.kind === "record") throw denied(context.principal);
    throw notFound(`There is no record "${id}" in ${table.model.name}`);
  };

  return {
    insert(context, grants, table, body, index) {
      refuseOperators(body);
      const record = writes.prepare(context, table, body, index);
      if (!covers(context, grants.insert, table, { record })) throw denied(context.principal);
      return writes.insert(context, table, record);
    },

    update(context, grants, table, id, patch, known = null) {
      const record = find(context, grants, table, { id, known }, grants.update);
      const changes = resolvePatch(table.validator, patch, record);
      const next = applyChanges(table.model, record, changes, patch.deletions);
      const isAllowed = () => covers(context, grants.update, table, { record, next });
      if (!mayChange(context, record, isAllowed)) throw denied(context.principal);
      const isEmpty = Object.keys(changes).length === 0 && patch.deletions.length === 0;
      const { deletions } = patch;
      const written = isEmpty ? record : writes.update(context, table, record, { changes, deletions });
      return shown(context, grants, table, { record: written, patch });
    },

    delete(context, grants, table, id, known = null) {
      const record = find(context, grants, table, { id, known }, grants.delete);
      const isAllowed = () => covers(context, grants.delete, table, { record });
      if (!mayChange(context, record, isAllowed)) throw denied(context.principal);
      writes.delete(context, table, record);
    },

    upsert: createUpsert({ asking, writes }),
  };
}
